"""A run logs proxy against utility, and can end itself where they part."""

import json

import pytest
from msgspec import structs

from stretto.cli.train_ import main
from stretto.errors import StrettoError
from stretto.learn import run_folder, session
from stretto.learn.loop import train, warnings
from stretto.learn.recipe import dump, keys, read_recipe, resolve
from stretto.policies import tabular

GAME = {
    **{"family": "scouts", "reliability": 0.8, "width": 3, "horizon": 9},
    **{"scout_cost": 0.05, "round_cost": 0.03},
}
SPAWNING = {"parallel": 1.0, "most": 9}


@pytest.fixture(scope="module", autouse=True)
def small_table():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tabular, "SLOTS", 1_000)
        yield


def recipe(reward, steps=30, stops=True):
    settings = {"steps": steps, "episodes": 64, "warmup": 0, "keep_traces": 0}
    table = {
        "task": GAME,
        "reward": reward,
        "policy": {"kind": "tabular", "tabular": {"learning_rate": 0.1}},
        "train": {**settings, "stop_on_hacking": stops},
    }
    return resolve(table, "the test")


def run_of(given, folder):
    rows = []
    run = session.start(given, folder)
    return train(run, rows.append, lambda: False), run, rows


def test_a_hacked_run_ends_itself_and_goes_on_with_the_key_off(tmp_path):
    complete, run, rows = run_of(recipe(SPAWNING), tmp_path / "run")
    assert not complete
    assert 10 <= run.step == len(rows) < 30
    assert rows[-1]["proxy_correlation"] < -0.6
    assert rows[-1]["proxy"] > rows[0]["proxy"]
    assert rows[-1]["utility"] < rows[0]["utility"]
    assert run.halted.startswith("the proxy rises while the utility falls (correlation -0.")
    again = session.resume(run.folder, recipe(SPAWNING, stops=False))
    assert (again.step, again.seen) == (run.step, run.seen)
    assert train(again, rows.append, lambda: False)
    assert len(rows) == 30
    assert not read_recipe(run.folder / "config.toml").train.stop_on_hacking


def test_it_ends_again_where_the_key_is_still_on(tmp_path):
    _, run, _ = run_of(recipe(SPAWNING), tmp_path / "run")
    again = session.resume(run.folder)
    assert not train(again, lambda metrics: None, lambda: False)
    assert run.step < again.step < 30


def test_no_other_key_may_change(tmp_path):
    _, run, _ = run_of(recipe(SPAWNING, steps=2), tmp_path / "run")
    with pytest.raises(StrettoError, match=r"another reward\.parallel"):
        run_folder.reopen(run.folder, recipe({"parallel": 0.5, "most": 9}, steps=2, stops=False))


def test_a_run_that_is_paid_for_nothing_else_has_no_proxy(tmp_path):
    complete, run, rows = run_of(recipe({}), tmp_path / "run")
    assert complete
    assert {(row["proxy"], row["proxy_correlation"]) for row in rows} == {(None, None)}
    assert rows[-1]["utility"] > rows[0]["utility"]
    assert not run.halted


def test_the_command_says_why_it_ended_and_how_to_go_on(tmp_path, capsys):
    path = tmp_path / "r.toml"
    path.write_text(dump(recipe(SPAWNING)))
    folder = str(tmp_path / "run")
    assert main([str(path), "--out", folder]) == 130
    told = capsys.readouterr().err
    assert "of 30 steps: the proxy rises while the utility falls" in told
    assert f"stretto train --resume {folder} --train.no-stop-on-hacking" in told
    assert main(["--resume", folder, "--train.no-stop-on-hacking", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 30


# ---- what a run warns of

IDLE = {"family": "proxies", "ways": ["work", "rest"]}
HASTE = {"verifiers": {"weight": 2.0, "channels": ["haste"]}}
PADDED = {"channels": {"parallel": {"weight": 0.45, "most": 3}, **HASTE}}


def idle(reward, **settings):
    given = {"steps": 20, "episodes": 48, "warmup": 0, "keep_traces": 0, **settings}
    policy = {"kind": "tabular", "tabular": {"learning_rate": 0.2}}
    return resolve({"task": IDLE, "reward": reward, "policy": policy, "train": given}, "the test")


def test_spawning_for_nothing_is_told_with_what_shows_it(tmp_path):
    _, run, rows = run_of(idle(PADDED), tmp_path / "run")
    assert rows[-1]["spawning"] > rows[0]["spawning"] + 0.1
    assert rows[-1]["speedup"] < rows[0]["speedup"]
    found = session.finish(run)["warnings"]
    assert found == warnings(run)
    assert found[0].startswith("the proxy rose while the utility fell, as was sure at step 1")
    assert found[1:] == ["spawning rose while speed-up (work over critical path) stayed flat"]


def test_a_resumed_run_remembers_what_it_saw(tmp_path):
    run = session.start(idle(PADDED), tmp_path / "run")
    train(run, lambda metrics: None, lambda: run.step >= 12)
    again = session.resume(run.folder)
    assert again.seen == run.seen
    assert all(each.spawning is not None for each in again.seen)


def test_a_run_whose_spawns_are_not_paid_for_tells_neither(tmp_path):
    _, run, rows = run_of(idle({}, steps=12), tmp_path / "run")
    assert {(row["spawning"], row["speedup"]) for row in rows} == {(None, None)}
    assert session.finish(run)["warnings"] == []


def test_a_preset_that_pays_agents_apart_is_watched_too(tmp_path):
    """MAPoRL on a verifier that likes posing: the verdicts rise, what is wanted falls."""
    given = idle({"preset": "maporl"}, stop_on_hacking=True, steps=40, credit="grpo")
    given = structs.replace(given, task={"family": "proxies"})
    complete, run, rows = run_of(given, tmp_path / "run")
    assert not complete
    assert rows[-1]["proxy"] > rows[0]["proxy"]
    assert "the proxy rises while the utility falls" in run.halted


def test_the_command_shows_what_is_watched_and_warns(tmp_path, capsys):
    path = tmp_path / "r.toml"
    path.write_text(dump(idle(PADDED)))
    assert main([str(path), "--out", str(tmp_path / "run")]) == 0
    told = capsys.readouterr().out
    assert "  proxy " in told
    assert "  correlation -0.9" in told
    assert "warning: spawning rose while speed-up (work over critical path) stayed flat" in told
    path.write_text(dump(idle({}, steps=2)))
    assert main([str(path), "--out", str(tmp_path / "plain")]) == 0
    assert "proxy" not in capsys.readouterr().out.replace("proxies", "")


# ---- the recipe


def test_a_recipe_composes_channels_by_name(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text(
        '[task]\nfamily = "scouts"\n[reward]\npreset = "parl"\nbalance = "gradient"\n'
        "[reward.channels]\ntool_calls = 0.5\n"
        "[reward.channels.free_riding]\nweight = -1\noptional = true\nschedule = [[0, 1], [9, 0]]\n"
    )
    found = read_recipe(path)
    assert found.reward.channels == {
        "tool_calls": {"weight": 0.5},
        "free_riding": {"weight": -1.0, "schedule": ((0, 1), (9, 0)), "optional": True},
    }
    path.write_text(dump(found))
    assert read_recipe(path) == found
    assert "reward.channels.tool_calls.weight" in keys(found)


@pytest.mark.parametrize(
    ("reward", "told"),
    [
        ({"preset": "parll"}, 'r.toml: reward.preset: .*did you mean "parl"'),
        ({"balance": "grad"}, r"r.toml: reward.balance: .*grad"),
        ({"chanels": {}}, 'unknown key reward.chanels .*did you mean "channels"'),
        ({"channels": {"free_ridding": 1}}, r"reward\.channels\.free_ridding: .*free_riding"),
        ({"channels": {"tool_use": {"mots": 1}}}, r"reward\.channels\.tool_use: .*most"),
        ({"channels": {"tool_use": {"most": "x"}}}, r"reward\.channels\.tool_use\.most: "),
        ({"channels": {"tool_use": float("inf")}}, r"inf is no value"),
    ],
)
def test_mistakes_in_the_reward_are_told_by_their_key(reward, told):
    with pytest.raises(StrettoError, match=told):
        resolve({"task": GAME, "reward": reward}, "r.toml")


def test_a_channel_that_cannot_score_ends_the_run_with_its_name(tmp_path):
    given = recipe({"channels": {"verifiers": 1.0}}, steps=1)
    with pytest.raises(StrettoError, match='not scored on the reward channel "verifiers"'):
        run_of(given, tmp_path / "run")


@pytest.mark.parametrize("family", ["gather", "hops", "repair"])
def test_a_task_with_a_parameter_that_is_not_set_can_be_written_down(family, tmp_path):
    found = resolve({"task": {"family": family}}, "the test")
    assert None in found.task.values()
    path = tmp_path / "r.toml"
    path.write_text(dump(found))
    assert read_recipe(path) == found
