"""ATIF trajectories: which are one agent, and who spawned whom."""

from collections.abc import Iterator, Sequence
from typing import Any

from stretto.importers.atif.files import Links, Trajectory
from stretto.importers.kit.fields import list_at, text_at
from stretto.importers.kit.strand import paths


class Family:
    """The agents of a run: trajectories, less those in which another goes on."""

    def __init__(self, found: Sequence[Trajectory]) -> None:
        """`found` are the trajectories of one run."""
        self.found = found
        self.links = Links(found)
        self.later = self._continuations()
        self.parents = self._parents()
        self.paths = paths(self.parents)

    def root(self) -> Trajectory:
        """The first that nobody spawned; the first of all where everybody was."""
        agents = [each for each in self.found if each.key in self.parents]
        return next((each for each in agents if self.parents[each.key] is None), agents[0])

    def _continuations(self) -> dict[str, Trajectory]:
        """Trajectories (by key) to that in which they go on."""
        later: dict[str, Trajectory] = {}
        taken: set[str] = set()
        for each in self.found:
            after = self.links.continued(each)
            if after is not None and after is not each and after.key not in taken:
                if not self._comes_after(each, after, later):
                    continue
                later[each.key] = after
                taken.add(after.key)
        return later

    def _comes_after(
        self, each: Trajectory, after: Trajectory, later: dict[str, Trajectory]
    ) -> bool:
        """Whether `after` does not lead back to `each`."""
        place: Trajectory | None = after
        while place is not None and place is not each:
            place = later.get(place.key)
        return place is None

    def _parents(self) -> dict[str, str | None]:
        """Key of every agent to that of its parent; continuations are no agents of their own."""
        going_on = {each.key for each in self.later.values()}
        home: dict[str, str | None] = {each.key: each.inside for each in self.found}
        leader = self._leaders()
        for each in self.found:
            for step in each.steps:
                for child in referred(self.links, each, step):
                    if child.inside is None or child.inside == each.inside:
                        home[child.key] = each.key
        return {
            key: leader.get(parent, parent) if parent is not None else None
            for key, parent in home.items()
            if key not in going_on
        }

    def _leaders(self) -> dict[str, str]:
        """Continuations (by key) to the trajectory that their agent began with."""
        leader: dict[str, str] = {}
        before = {after.key: key for key, after in self.later.items()}
        for key in before:
            place = key
            while place in before:
                place = before[place]
            leader[key] = place
        return leader


def referred(links: Links, home: Trajectory, step: Any) -> Iterator[Trajectory]:
    """The trajectories that a step refers to."""
    for result in list_at(step, "observation", "results"):
        for reference in list_at(result, "subagent_trajectory_ref"):
            child = links.child(home, reference)
            if child is not None:
                yield child


def runs(found: Sequence[Trajectory]) -> list[list[Trajectory]]:
    """Trajectories that belong together: in one document, or by reference."""
    links = Links(found)
    rank = {each.key: number for number, each in enumerate(found)}
    leader = {each.key: each.inside or each.key for each in found}

    def lead(key: str) -> str:
        while leader[key] != key:
            key = leader[key]
        return key

    for each in found:
        others = [child for step in each.steps for child in referred(links, each, step)]
        after = links.continued(each)
        for other in [*others, *([after] if after is not None else [])]:
            first, second = sorted((lead(each.key), lead(other.key)), key=rank.__getitem__)
            leader[second] = first
    groups: dict[str, list[Trajectory]] = {}
    for each in found:
        groups.setdefault(lead(each.key), []).append(each)
    return list(groups.values())


def model_of(trajectory: Trajectory) -> str | None:
    """The model of an agent: as it is stated, or that of its first step that names one."""
    named = (text_at(step, "model_name") for step in trajectory.steps)
    return text_at(trajectory.record, "agent", "model_name") or next(filter(None, named), None)


def changed_model(first: Trajectory, place: Trajectory) -> str | None:
    """The model of a continuation where it is not the one that its agent began with."""
    model = text_at(place.record, "agent", "model_name")
    return model if place is not first and model != model_of(first) else None
