"""The run page: what is there is shown, what is missing is said."""

import json
import re

import pytest

from stretto.errors import StrettoError
from stretto.viewer.facts import fixed, number, seconds
from stretto.viewer.heat_map import agreement
from stretto.viewer.report import run_report
from stretto.viewer.run_folder import Decisions, read_run
from stretto.viewer.run_page import curve_data


def facts_of(page):
    tiles = re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", page)
    return dict(tiles)


def test_a_finished_run(run_folder):
    page = run_report(run_folder)
    facts = facts_of(page)
    assert facts["task"] == "scouts"
    assert facts["model"] == "smollm2"
    assert facts["seed"] == "7"
    assert facts["time"] == "90.5 s"
    assert facts["tokens generated"] == "12,000"
    assert "finished after 3 steps at <strong>96.0 % of the exact optimum" in page
    assert re.search(r"learned policy</th><td>0\.7412</td><td>\u22120\.0309</td>", page)
    assert re.search(r"optimum</th><td>0\.7721</td>", page)
    assert page.index(">one shot<") < page.index(">guess<")
    assert "all 4 traces" in page
    assert "[train]" in page


def test_the_curve_holds_the_numbers(run_folder):
    data = curve_data(read_run(run_folder))
    assert data["steps"] == [1, 2, 3]
    series = {each["name"]: each["values"] for each in data["series"]}
    assert series == {"mean reward": [0.6, 0.7, 0.8], "exact value": [0.61, 0.62, 0.63]}
    lines = {each["name"]: each["value"] for each in data["lines"]}
    assert lines == {"optimum": 0.7721, "one shot": 0.71, "guess": 0.5}


def test_the_heat_map_marks_the_optimum(run_folder):
    page = run_report(run_folder)
    cells = re.findall(r'<td class="([^"]*)" style="--p:([\d.]+)%"', page)
    assert cells == [
        ("", "10.0"),
        ("strong best", "90.0"),
        ("best", "25.0"),
        ("strong also", "75.0"),
    ]
    assert "optimal in 1 of 2 states." in page


def test_agreement_weighs_visits():
    decisions = Decisions(
        states=["a", "b"],
        choices=["x", "y"],
        probabilities=[[0.6, 0.4], [0.6, 0.4]],
        optimal=[[0.5, 0.5], [0.0, 1.0]],
        visits=[3.0, 1.0],
    )
    assert agreement(decisions) == (1, 0.75)


def test_an_interrupted_run(run_folder):
    (run_folder / "result.json").unlink()
    with (run_folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "rew')
    traces = (run_folder / "traces.jsonl").read_bytes()
    (run_folder / "traces.jsonl").write_bytes(traces[:-300])
    page = run_report(run_folder)
    assert "interrupted at step 3 of 9" in page
    assert "Line 4 of metrics.jsonl is cut off and left out." in page
    assert "The last trace of traces.jsonl is cut off and left out." in page
    assert re.search(r"learned policy</th><td>0\.6300</td><td>unknown</td>", page)
    assert re.search(r"optimum</th><td>unknown</td>", page)
    facts = facts_of(page)
    assert (facts["task"], facts["model"], facts["dtype"]) == ("scouts", "smollm2", "unknown")
    assert "all 3 traces" in page


def test_a_run_that_was_killed_before_its_first_step(run_folder):
    for name in ("result.json", "metrics.jsonl", "traces.jsonl"):
        (run_folder / name).unlink()
    page = run_report(run_folder)
    assert "interrupted at step 0 of 9" in page
    assert "No step is recorded." in page
    assert "No trace is recorded." in page
    assert facts_of(page)["tokens trained"] == "unknown"


def test_a_task_without_an_oracle(run_folder):
    result = json.loads((run_folder / "result.json").read_text())
    result |= {"value": None, "optimum": None, "baselines": {}, "decisions": None}
    (run_folder / "result.json").write_text(json.dumps(result))
    page = run_report(run_folder)
    assert "finished after 3 steps<" in page
    assert re.search(r"learned policy</th><td>unknown</td><td>unknown</td>", page)
    assert "This task lists no states." in page


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("metrics.jsonl", '{"step": 1}\n{"step": "two"}\n', r"metrics\.jsonl:2: step: expected"),
        ("metrics.jsonl", '{"step": 1}\nnonsense\n{"step": 2}\n', r"metrics\.jsonl:2: JSON|jSON"),
        ("metrics.jsonl", '{"step": 1}\n{"step": null}', r"metrics\.jsonl:2: step: expected"),
        ("result.json", '{\n"value": 1,\n oops}', r"result\.json:3: "),
        ("result.json", '{"value": 1}', r"result\.json: object missing required field"),
        ("config.toml", "seed = \n", r"config\.toml: not a TOML file"),
    ],
)
def test_bad_input_names_file_and_line(run_folder, name, text, message):
    (run_folder / name).write_text(text)
    with pytest.raises(StrettoError, match=message):
        run_report(run_folder)


def test_a_ragged_table_is_refused(run_folder):
    result = json.loads((run_folder / "result.json").read_text())
    result["decisions"]["optimal"][1] = [1.0]
    (run_folder / "result.json").write_text(json.dumps(result))
    with pytest.raises(StrettoError, match=r"result\.json: decisions\.optimal: 2 states by 2"):
        run_report(run_folder)


def test_numbers_as_people_read_them():
    assert [number(value) for value in (None, 0, 1234567, -2.5, 7 / 3, 12345.678)] == [
        *("unknown", "0", "1,234,567", "\u22122.5", "2.333", "12,346"),
    ]
    assert [seconds(value) for value in (None, 0, 0.0123, 90, 150, 7300)] == [
        *("unknown", "0 s", "12.3 ms", "90 s", "2 min 30 s", "2 h 01 min"),
    ]
    assert [fixed(value) for value in (None, float("nan"), 1, -0.00004)] == [
        *("unknown", "unknown", "1.0000", "\u22120.0000"),
    ]
