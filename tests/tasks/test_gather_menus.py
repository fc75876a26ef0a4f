"""The menus of `gather`: nobody fills a table who does not read."""

from statistics import fmean

import pytest
from msgspec.structs import replace

from stretto.policies.scripted import Scripted
from stretto.tasks.gather import RETURN, SUBMIT, Gather
from stretto.tasks.gather.scripts import ROLES, scripts
from stretto.tasks.scripts import everyone, normalised
from stretto.team.engine import rollout

SIZES = {
    "10": {
        **{"entities": 1, "attributes": 1, "cells_per_document": 1},
        **{"redundancy": 4.0, "workers": 1},
    },
    "100": {"entities": 8},
}
UNREAD = {
    "first": lambda ask: ask.candidates[0],
    "last": lambda ask: ask.candidates[-1],
    "longest": lambda ask: max(ask.candidates, key=len),
    "shortest": lambda ask: min(ask.candidates, key=len),
    "most words": lambda ask: max(ask.candidates, key=lambda choice: choice.count(" ")),
    "fewest words": lambda ask: min(ask.candidates, key=lambda choice: choice.count(" ")),
    "alphabetically first": lambda ask: min(ask.candidates),
    "alphabetically last": lambda ask: max(ask.candidates),
    "seven": lambda ask: ask.candidates[7 % len(ask.candidates)],
    "length modulo seven": lambda ask: ask.candidates[len(ask.candidates) % 7 - 1],
}


def mean(size, policies, seeds=40):
    """Mean outcome of policies over instances of one size."""
    tasks = [Gather(**size, seed=seed) for seed in range(seeds)]
    traces = [rollout(task, policies, [task.seed])[0] for task in tasks]
    return fmean(trace.reward("outcome") or 0.0 for trace in traces)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
def test_who_does_not_read_gets_nowhere_near_who_does(size):
    known = scripts(Gather())
    low = mean(size, known["random"])
    greedy = normalised(mean(size, known["greedy"]), low, 1.0)
    for name, rule in UNREAD.items():
        reached = mean(size, everyone(ROLES, Scripted(rule)))
        assert normalised(reached, low, 1.0) < greedy / 3, name


def menus(task):
    (trace,) = rollout(task, scripts(task)["solo"], [0])
    return [event.decision.candidates for event in trace.events if event.decision]


def test_orders_differ_by_instance_agent_and_turn():
    task = Gather(entities=8, redundancy=6.0)
    places = [menu.index(SUBMIT) / (len(menu) - 1) for menu in menus(task) if len(menu) > 3]
    assert 0.35 < fmean(places) < 0.65 and {0.0, 1.0} <= set(places)
    starts = {menus(replace(task, seed=seed))[0].index(SUBMIT) for seed in range(60)}
    assert len(starts) == len(menus(task)[0])
    (trace,) = rollout(task, scripts(task)["oracle"], [0])
    first = {}
    for event in trace.events:
        if event.decision and event.agent != "0":
            first.setdefault(event.agent, event.decision.candidates.index(RETURN))
    assert len(set(first.values())) > 1


@pytest.mark.parametrize("fault", ["read", "report"])
def test_twins_have_menus_of_the_same_order(fault):
    """With and without a fault, and under every seed of an episode."""
    task = Gather(fault=fault, seed=2)
    both = [
        rollout(each, scripts(task)["oracle"], [0])[0] for each in (task, replace(task, fault=None))
    ]
    turns = [{e.id: e.decision.candidates for e in trace.events if e.decision} for trace in both]
    assert turns[0].keys() == turns[1].keys()
    for turn, menu in turns[0].items():
        kinds = [[choice.split()[:-1] for choice in each] for each in (menu, turns[1][turn])]
        assert kinds[0] == kinds[1]
    assert menus(task)[0] == menus(replace(task, fault=None))[0]
