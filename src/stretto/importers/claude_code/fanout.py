"""Claude Code transcripts, stage two: the agents of a workflow.

The call starts a script; the script spawns the agents, in the caller's name. Journal, snapshot and
the agents' own records say who there was and when; that it was this call is recorded by the run's
id. A result goes back to the script, which the caller hears of when the whole workflow has ended.
"""

from collections import Counter
from datetime import datetime

from stretto.importers.claude_code.calls import Call
from stretto.importers.claude_code.events import Lane, weave_tool
from stretto.importers.claude_code.team import FanOut, Team
from stretto.importers.claude_code.threads import order
from stretto.importers.claude_code.workflows import Member
from stretto.importers.kit.fields import known

MOST_AGENTS = 1000
"""Agents that the harness lets one workflow start; a larger count is damage."""


def begin_workflow(team: Team, lane: Lane, call: Call) -> int:
    """Add the call of a workflow, and the spawns of its agents."""
    number = weave_tool(team.loom, lane, call)
    assert lane.node.thread is not None
    paths = team.tree.fanned.get((lane.node.thread.key, call.index), ())
    for path in sorted(paths, key=lambda each: order(_begin(team.lanes[each]))):
        _spawn(team, lane, call, number, path)
    team.fan_outs.append(FanOut(call, lane.path, paths))
    return number


def _spawn(team: Team, lane: Lane, call: Call, number: int, path: str) -> None:
    child, member = team.lanes[path], team.lanes[path].node.member
    assert member is not None
    begin = _begin(child)
    seconds = team.loom.seconds(begin)
    place = float(call.position)
    if seconds is not None:
        place = max(place, lane.place_at(seconds))
    spawned = team.loom.add(
        lane.path,
        "spawn",
        place,
        begin,
        call.entry.source,
        to=path,
        tool=call.name,
        content=child.prompt,
        attrs=known(tool_use_id=call.block.id, workflow=call.run, phase=member.phase),
    )
    team.loom.link(number, spawned, "causal", "derived")
    team.spawns[path] = spawned


def end_workflows(team: Team) -> None:
    """Add what came back from the agents of all workflows, and those that are not here."""
    here = Counter[str | None]()
    for fan_out in team.fan_outs:
        here[fan_out.call.run] += len(fan_out.paths)
    for fan_out in team.fan_outs:
        ended = team.ended.get(fan_out.call.block.id)
        for path in fan_out.paths:
            back = _return(team, fan_out.call, team.lanes[path])
            team.loom.link(back, ended, "return", "derived")
        if fan_out.call.run is not None:
            _add_absent(team, fan_out, ended, here)


def _add_absent(team: Team, fan_out: FanOut, ended: int | None, here: Counter[str | None]) -> None:
    """Add the agents that the end of a workflow counts beyond those `here`; without it, say so."""
    run = fan_out.call.run
    attrs = team.loom.drafts[ended].event.attrs if ended is not None else {}
    count = attrs.get("agent_count", 0)
    absent = count - here[run] if count <= MOST_AGENTS else 0
    for _ in range(absent):
        team.add_unknown(fan_out)
    if absent > 0 or not here[run]:
        part = f"{absent} of the" if here[run] else "the"
        agents = f"{part} {count} agents" if absent > 0 else "the agents"
        what = f"{agents} of workflow {run} are not here: only its result is known"
        team.notices.append((fan_out.call.entry.source, what))
    here[run] += max(absent, 0)


def _begin(lane: Lane) -> datetime | None:
    if lane.node.member is not None and lane.node.member.begin is not None:
        return lane.node.member.begin
    times = (entry.record.timestamp for entry in lane.entries)
    return next((time for time in times if time is not None), None)


def _return(team: Team, call: Call, lane: Lane) -> int | None:
    member = lane.node.member
    if member is None or (member.result is None and member.state != "done"):
        return None
    end = _end(lane, member)
    return team.loom.add(
        lane.path,
        "return",
        lane.end_of_run(team.loom.seconds(end)),
        end,
        call.entry.source,
        to=lane.node.parent,
        content=team.loom.store(member.result),
        attrs={"via": "workflow"}
        | known(status=member.state, total_tokens=member.tokens, total_tool_use_count=member.calls),
    )


def _end(lane: Lane, member: Member) -> datetime | None:
    times = [entry.record.timestamp for entry in lane.entries]
    return max((time for time in times if time is not None), default=member.end)
