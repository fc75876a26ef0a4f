"""A recipe says what it means, and a mistake in it is told by its key."""

import pytest

from stretto.errors import StrettoError
from stretto.learn.recipe import Recipe, dump, first_difference, keys, read_recipe, resolve

SCOUTS = {"family": "scouts"}


def refused(table):
    with pytest.raises(StrettoError) as error:
        resolve({"task": SCOUTS, **table}, "r.toml")
    return error.value


def test_a_bare_task_is_a_recipe_with_all_defaults_filled_in():
    recipe = resolve({"task": SCOUTS}, "r.toml")
    assert recipe.task["reliability"] == 0.65
    assert recipe == Recipe(task=recipe.task)


@pytest.mark.parametrize("family", ["scouts", "gather"])
def test_a_recipe_survives_being_written(family, tmp_path):
    path = tmp_path / "r.toml"
    recipe = resolve({"task": {"family": family}, "seed": 3, "train": {"kl": 0.5}}, "r.toml")
    path.write_text(dump(recipe))
    assert read_recipe(path) == recipe


def test_a_file_says_what_it_changes(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text(
        'seed = 4\n[task]\nfamily = "scouts"\nwidth = 3\n'
        '[policy]\nkind = "tabular"\n[train]\nsteps = 7\n'
    )
    recipe = read_recipe(path)
    assert (recipe.seed, recipe.task["width"], recipe.train.steps) == (4, 3, 7)
    assert (recipe.policy.kind, recipe.policy.learning_rate) == ("tabular", 0.1)


@pytest.mark.parametrize(
    ("table", "key", "hint"),
    [
        ({"sed": 1}, "sed", 'did you mean "seed"?'),
        ({"tarin": {}}, "tarin", 'did you mean "train"?'),
        ({"taks": {}}, "taks", 'did you mean "task"?'),
        ({"train": {"stepz": 1}}, "train.stepz", 'did you mean "steps"?'),
        ({"reward": {"cots": 1}}, "reward.cots", 'did you mean "cost"?'),
        ({"policy": {"knd": "lm"}}, "policy.knd", 'did you mean "kind"?'),
        (
            {"policy": {"tabular": {"learning_rat": 1}}},
            "policy.tabular.learning_rat",
            'did you mean "learning_rate"?',
        ),
        ({"policy": {"lm": {"modell": "x"}}}, "policy.lm.modell", 'did you mean "model"?'),
    ],
)
def test_an_unknown_key_is_named_whole_with_the_nearest_one(table, key, hint):
    error = refused(table)
    assert (error.what, error.where, error.hint) == (f"unknown key {key}", "r.toml", hint)


def test_an_unknown_key_far_from_all_lists_those_of_its_section():
    hint = refused({"train": {"qqqq": 1}}).hint
    assert "episodes" in hint
    assert "seed" not in hint


@pytest.mark.parametrize(
    ("table", "where", "what"),
    [
        ({"seed": "one"}, "seed", "expected `int`, got `str`"),
        ({"seed": -1}, "seed", ">= 0"),
        ({"train": 3}, "train", "expected `object`, got `int`"),
        ({"train": {"steps": "many"}}, "train.steps", "expected `int`, got `str`"),
        ({"train": {"steps": 0}}, "train.steps", ">= 1"),
        ({"train": {"steps": 1.5}}, "train.steps", "expected `int`"),
        ({"train": {"episodes": 1}}, "train.episodes", ">= 2"),
        ({"train": {"entropy": -0.1}}, "train.entropy", ">= 0"),
        ({"train": {"clip": -0.1}}, "train.clip", ">= 0"),
        ({"train": {"kl": float("nan")}}, "train.kl", ">= 0"),
        ({"train": {"checkpoint_every": 0}}, "train.checkpoint_every", ">= 1"),
        ({"train": {"keep_traces": -1}}, "train.keep_traces", ">= 0"),
        ({"reward": {"cost": -1}}, "reward.cost", ">= 0"),
        ({"reward": {"most": 0}}, "reward.most", ">= 1"),
        ({"policy": {"tabular": {"learning_rate": 0}}}, "policy.tabular.learning_rate", "> 0"),
        ({"policy": {"kind": "lmm"}}, "policy.kind", "lmm"),
        ({"policy": []}, "policy", "expected `object`, got `array`"),
        ({"task": "scouts"}, "task", "expected `object`, got `str`"),
    ],
)
def test_a_value_that_does_not_fit_is_told_by_its_key(table, where, what):
    error = refused(table)
    assert error.where == f"r.toml: {where}"
    assert what in error.what


@pytest.mark.parametrize(
    "table",
    [
        {"policy": {"tabular": {"learning_rate": float("inf")}}},
        {"train": {"entropy": float("inf")}},
        {"reward": {"cost": float("inf")}},
    ],
)
def test_an_infinite_value_is_refused(table):
    assert "inf" in str(refused(table))


def test_a_recipe_without_a_task_is_refused():
    with pytest.raises(StrettoError, match=r"^r\.toml: recipe: .*`task`"):
        resolve({}, "r.toml")
    with pytest.raises(StrettoError, match=r"^r\.toml"):
        resolve([], "r.toml")


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ({}, "task.family"),
        ({"family": "scots"}, 'did you mean "scouts"?'),
        ({"family": "scouts", "widht": 3}, 'did you mean "width"?'),
        ({"family": "scouts", "width": "eight"}, "task.width"),
        ({"family": "scouts", "reliability": 2.0}, "task.reliability"),
    ],
)
def test_a_mistake_in_the_task_names_the_file_too(task, told):
    error = refused({"task": task})
    assert told in str(error)
    assert error.where.startswith("r.toml: task")


def test_an_unknown_credit_method_gets_a_suggestion():
    error = refused({"train": {"credit": "rlooo"}})
    assert (error.where, error.hint) == ("r.toml: train.credit", 'did you mean "rloo"?')


def test_bad_toml_is_told_with_its_line(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text('seed = 1\n[task]\nfamily = "scouts\n')
    with pytest.raises(StrettoError, match=r"r\.toml: not a TOML file: .*line 3") as error:
        read_recipe(path)
    assert error.value.where == str(path)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"seed = \xe4", b"\0"])
def test_what_is_no_text_is_told(data, tmp_path):
    path = tmp_path / "r.toml"
    path.write_bytes(data)
    with pytest.raises(StrettoError, match="not a TOML file"):
        read_recipe(path)


def test_a_missing_recipe_is_told(tmp_path):
    with pytest.raises(StrettoError, match="no such file"):
        read_recipe(tmp_path / "gone.toml")


def test_every_key_has_a_dotted_name():
    found = keys(resolve({"task": SCOUTS}, "r.toml"))
    assert {"seed", "task.width", "policy.tabular.learning_rate", "train.steps"} <= set(found)
    assert len(found) == len(set(found))


def test_the_first_difference_is_named():
    first = resolve({"task": SCOUTS}, "r.toml")
    assert first_difference(first, first) is None
    other = resolve({"task": {**SCOUTS, "width": 3}}, "r.toml")
    assert first_difference(first, other) == "task.width"
    family = resolve({"task": {"family": "gather"}}, "r.toml")
    assert first_difference(first, family).startswith("task.")
