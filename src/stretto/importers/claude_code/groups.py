"""Claude Code transcripts on disk: which files belong together, told from their beginnings.

| what | where | joined by |
|---|---|---|
| a session | `<id>.jsonl` | |
| its sub-agents | `agent-<id>.jsonl` beside it (older) | session |
| | in `<id>/subagents/` (newer) | folder, else session |
| a workflow's agents, its journal | `<id>/subagents/workflows/<run>/` | session, folder |
| a workflow's snapshot | `<id>/workflows/<run>.json` | folder |
| what is known of a sub-agent | `agent-<id>.meta.json` beside its transcript | name |
| members of a team | `<id>.jsonl`, a session of their own | the team's name |
| a resumed or branched session | `<id>.jsonl`, which begins with records of another | records |
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from stretto.errors import StrettoError
from stretto.importers.claude_code.folders import folder_of
from stretto.importers.kit.arrays import lines_in

RECORDS = 16
"""Records with an id that are looked at."""
CHUNK = 1 << 20
"""Bytes that are searched at once."""
TEAM = b'"teamName"'
REACH = 300
"""Bytes behind `TEAM` in which the name stands."""
LEADS = ("team-lead", "lead", "main")
"""Names that the lead of a team goes by."""

ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Name of a session."""

Key = int
"""Hash of what files can have in common, a kind of thing and its id.

A folder can hold many files: two things that fall together only make a group larger.
"""


class _Message(Struct, gc=False):
    id: str | None = None


class _Record(Struct, gc=False, rename="camel"):
    """The fields of a record that say where it belongs."""

    uuid: str | None = None
    timestamp: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    is_sidechain: bool | None = None
    team_name: str | None = None
    agent_name: str | None = None
    message: _Message | str | None = None


class Look(Struct, frozen=True):
    """What the beginning of a transcript says of where it belongs."""

    keys: frozenset[Key] = frozenset()
    session: str = ""
    start: str = "~"
    """The first time, as it is written; behind all times where unknown."""
    is_agent: bool = False
    """Whether it is the transcript of a sub-agent."""
    teams: frozenset[str] = frozenset()
    is_member: bool = False
    """Whether it is the session of a member of a team."""


_decoder = msgspec.json.Decoder(_Record)


def sessions(files: Sequence[Path]) -> list[Sequence[Path]]:
    """Group transcripts by what belongs together, in order of their start.

    A session brings its sub-agents, workflows and the members of its team along; a part that is
    named alone stays alone. Files are only looked into, so memory is bounded by one group.
    """
    looks: dict[Path, Look] = {}
    shelf = _Shelf()
    for file in files:
        looks.setdefault(file, shelf.whole(file))
    known = {file.resolve(): file for file in looks}
    waiting = deque(looks)
    while waiting:
        file = waiting.popleft()
        for other, found in shelf.companions(file, looks[file]):
            same = known.setdefault(other.resolve(), other)
            if same not in looks:
                waiting.append(same)
            keys = found.keys | looks.get(same, found).keys
            looks[same] = msgspec.structs.replace(looks.get(same, found), keys=keys)
    groups = [
        sorted(group, key=lambda file: (*_rank(looks[file]), file)) for group in _joined(looks)
    ]
    groups.sort(key=lambda group: (min(looks[file].start for file in group), group))
    return [(*group, *_sidecars(group, looks)) for group in groups]


def _rank(look: Look) -> tuple[bool, bool, str]:
    return look.is_agent, look.is_member, look.start


class _Shelf:
    """The files of all folders, each looked into once."""

    def __init__(self) -> None:
        self.look = cache(_look)
        self.listed = cache(_listed)

    def whole(self, file: Path) -> Look:
        """As `look`; a session is searched to its end, as it can found a team at any time."""
        look = self.look(file)
        if look.is_agent or look.is_member or not look.keys:
            return look
        teams = _teams(file)
        return msgspec.structs.replace(look, teams=teams, keys=look.keys | _team_keys(teams))

    def companions(self, file: Path, look: Look) -> Iterator[tuple[Path, Look]]:
        """Transcripts of the sub-agents of a session, and of the members of its team."""
        if look.is_agent:
            return
        beside = file.parent
        places = [(beside, "agent-*.jsonl")]
        places += [(folder, "subagents/**/agent-*.jsonl") for folder in _homes(file, look)]
        for folder, pattern in places:
            for other in self.listed(folder, pattern):
                found = self.look(other)
                if found.session in ("", look.session) or folder_of(other) == look.session:
                    yield other, msgspec.structs.replace(found, keys=found.keys | look.keys)
        if look.teams and not look.is_member:
            for other in self.listed(beside, "*.jsonl"):
                found = self.look(other)
                if found.is_member and found.teams & look.teams:
                    yield other, found


def _listed(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern))


def _homes(file: Path, look: Look) -> list[Path]:
    """Folders that can hold what belongs to a session."""
    names = [file.with_suffix(""), file.parent / look.session, file.parent]
    return list(dict.fromkeys(names))


def _look(file: Path) -> Look:
    try:
        records = list(_records(file))
    except (OSError, StrettoError):
        return Look()
    ids = [record.session_id for record in records if record.session_id]
    members = [r for r in records if r.agent_name and r.agent_name not in LEADS and r.team_name]
    is_agent = _is_agent(records)
    teams = frozenset(record.team_name for record in members if record.team_name)
    keys = {key for record in records for key in _keys(record, bool(ids) and is_agent)}
    return Look(
        keys=_team_keys(teams) | keys,
        session=_session(file, ids),
        start=min((record.timestamp for record in records if record.timestamp), default="~"),
        is_agent=is_agent,
        teams=teams,
        is_member=bool(members) and not is_agent,
    )


def _session(file: Path, ids: Sequence[str]) -> str:
    """A resumed session begins with records of another, but its file has its own name."""
    is_id = ID.fullmatch(file.stem) is not None
    return file.stem if file.stem in ids or is_id else next(iter(ids), "")


def _team_keys(teams: Iterable[str]) -> frozenset[Key]:
    return frozenset(hash(("team", name)) for name in teams)


def _keys(record: _Record, is_part: bool) -> Iterator[Key]:
    """What a record has in common with others; a part of a session goes where that goes."""
    if record.session_id:
        yield hash(("session", record.session_id))
    if record.uuid and not is_part:
        yield hash(("record", record.uuid))
    if isinstance(record.message, _Message) and record.message.id and not is_part:
        yield hash(("message", record.message.id))


def _is_agent(records: Sequence[_Record]) -> bool:
    spoken = [record for record in records if record.message is not None]
    return bool(spoken) and all(record.is_sidechain or record.agent_id for record in spoken)


def _records(file: Path) -> Iterator[_Record]:
    """The first records; those without an id, as snapshots, do not count as looked at."""
    left = RECORDS
    for line in lines_in(file):
        try:
            record = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        yield record
        left -= record.uuid is not None
        if not left:
            return


def _teams(file: Path) -> frozenset[str]:
    """Names of the teams that a session was in."""
    found: set[str] = set()
    rest = b""
    with file.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            data = rest + chunk
            at = data.find(TEAM)
            while at >= 0:
                found |= _name_at(data, at + len(TEAM))
                at = data.find(TEAM, at + len(TEAM))
            rest = data[-REACH:]
    return frozenset(found)


def _name_at(data: bytes, place: int) -> set[str]:
    parts = data[place : place + REACH].split(b'"', 2)
    is_name = len(parts) == 3 and parts[0].strip() == b":"
    return {parts[1].decode("utf-8", "replace")} if is_name and parts[1] else set()


def _joined(looks: dict[Path, Look]) -> list[list[Path]]:
    """Files with a key in common, directly or by way of others."""
    above: dict[Key, Key] = {}

    def top(key: Key) -> Key:
        while above.setdefault(key, key) != key:
            above[key] = key = above[above[key]]
        return key

    groups: dict[Key, list[Path]] = {}
    own = {file: hash(("file", str(file))) for file in looks}
    for file, look in looks.items():
        for key in look.keys:
            above[top(key)] = top(own[file])
    for file in looks:
        groups.setdefault(top(own[file]), []).append(file)
    return list(groups.values())


def _sidecars(group: Sequence[Path], looks: dict[Path, Look]) -> list[Path]:
    """Files that are no transcripts but tell of them."""
    found: dict[Path, None] = {}
    for file in group:
        look = looks[file]
        places: Iterable[Path] = (file.with_suffix(".meta.json"), file.parent / "journal.jsonl")
        if not look.is_agent:
            homes = _homes(file, look)
            places = [path for home in homes for path in sorted(home.glob("workflows/wf_*.json"))]
            for home in homes:
                places += sorted(home.glob("subagents/workflows/*/journal.jsonl"))
        found |= {path: None for path in places if path.is_file() and path not in looks}
    return list(found)
