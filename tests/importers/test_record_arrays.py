"""Records in a JSON array (`jq -s`, `--output-format json`) are read as the lines they would be."""

import json
from time import process_time

import pytest

from stretto import store
from stretto.errors import StrettoError
from stretto.importers import detect, import_paths
from stretto.importers.conformance import check_importer
from stretto.importers.kit.arrays import unrolled

from . import rollouts
from .transcripts import DATA, PARENT, REAL, child, side, write

ROLLOUT = (
    rollouts.meta(0, rollouts.ROOT),
    *rollouts.asked(1, "Go."),
    rollouts.says(2, "a\nb"),
    rollouts.tokens(2, total=10, last=10),
    rollouts.says(3, "c"),
)
FORMS = {"pretty": {"indent": 2}, "one line": {}}
BOTH = pytest.mark.parametrize(
    ("format", "records"), [("claude-code", PARENT), ("codex", ROLLOUT)], ids=["claude", "codex"]
)
FORMED = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def array(path, records, form=FORMS["pretty"]):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(list(records), **form))
    return path


def traces(*paths, format=None):
    return [store.encode(trace) for trace in import_paths(paths, format).traces]


@BOTH
@FORMED
def test_an_array_gives_what_its_lines_give(tmp_path, format, records, form):
    lines = write(tmp_path / "lines" / "s.jsonl", *records)
    path = array(tmp_path / "s.json", records, form)
    assert detect(path) == format
    assert traces(path) == traces(lines)
    (report,) = import_paths([path]).report
    assert (report.records, report.warnings) == (len(records), import_warnings(lines))


def import_warnings(path):
    """Of a file of lines, as they would be of `s.json` beside its folder."""
    text = str(path.parent.parent / "s.json")
    found = import_paths([path]).report[0].warnings
    return tuple(type(each)(each.where.replace(str(path), text), each.what) for each in found)


@BOTH
@FORMED
def test_an_array_that_is_cut_yields_its_whole_records(tmp_path, format, records, form):
    """Behind each record, behind the comma after it, and within the next one."""
    text = json.dumps(records, **form)
    whole = len(records) - 2
    end = len(json.dumps(records[:whole], **form).rstrip("\n]"))
    for more in (0, 1, 25):
        path = tmp_path / f"{more}.json"
        path.write_text(text[: end + more])
        (report,) = import_paths([path], format).report
        assert report.records == whole
        assert f"{path}:{whole + 1}" in [each.where for each in report.warnings]


@BOTH
@FORMED
@pytest.mark.parametrize("damage", ["first brace", "last brace", "a colon", "a quote", "its end"])
def test_a_damaged_item_costs_only_itself(tmp_path, format, records, form, damage):
    """What stands behind it is read, and it is one loss, whatever objects it holds."""
    harm = {
        "first brace": lambda item: item.removeprefix("{"),
        "last brace": lambda item: item.removesuffix("}"),
        "a colon": lambda item: item.replace('":', '"', 1),
        "a quote": lambda item: item.replace('"', "", 1),
        "its end": lambda item: item[: item.index("parts")] + "}",
    }[damage]
    parts = [{"a": 1}, {"type": "user"}, {"b": [{"c": 1}, {}]}]
    holder = {"x": 1, "parts": parts, "y": {"z": '"}, {"'}}
    items = [json.dumps(each, **form) for each in records]
    items.insert(2, harm(json.dumps(holder, **form)))
    path = tmp_path / "s.json"
    path.write_text(f"[{', '.join(items)}]")
    assert detect(path) == format
    (report,) = import_paths([path]).report
    assert (report.records, losses(report)) == (len(records), [f"{path}:3"])
    assert traces(path) == traces(array(tmp_path / "t" / "s.json", records))


def losses(report):
    said = ("left out", "not JSON")
    return [each.where for each in report.warnings if any(what in each.what for what in said)]


@BOTH
def test_several_damaged_items_are_several_losses(tmp_path, format, records):
    items = [json.dumps(each) for each in records]
    items[3:3] = ["{x}", items[0], '{"y": }', '{"z" 1}']
    path = tmp_path / "s.json"
    path.write_text(f"[{', '.join(items)}, oops]\n")
    (report,) = import_paths([path], format).report
    assert report.records == len(records) + 1
    places = [each.where for each in report.warnings]
    assert places == [f"{path}:{number}" for number in (4, 6, 7, len(items) + 1)]


def test_damage_is_passed_in_linear_time():
    """Each gap is tried once: quadratic, half a megabyte takes minutes."""
    began = process_time()
    for bad in (b'{"a":[},', b'{"a"},', b'{"a":1},"', b'{"a":"'):
        unrolled(b'[{"a":1},' + bad * (500_000 // len(bad)))
    assert process_time() - began < 4


@BOTH
def test_an_item_that_is_no_record_is_named_by_its_place(tmp_path, format, records):
    path = array(tmp_path / "s.json", [*records[:2], 7, *records[2:]])
    (report,) = import_paths([path]).report
    assert report.records == len(records)
    assert f"{path}:3" in [each.where for each in report.warnings]


@BOTH
def test_arrays_and_lines_that_were_put_together_are_all_read(tmp_path, format, records):
    path = tmp_path / "s.json"
    parts = (json.dumps(records[:1]), json.dumps(records[1:3], indent=2))
    path.write_text("\n".join([*parts, *map(json.dumps, records[3:])]) + "\n")
    assert traces(path, format=format) == traces(write(tmp_path / "s.jsonl", *records))


@BOTH
def test_an_array_of_other_things_is_not_taken(tmp_path, format, records):
    with pytest.raises(StrettoError):
        detect(array(tmp_path / "s.json", [{"name": "x"}, {"type": 3}]))


def test_a_session_in_an_array_brings_its_sub_agents_along(tmp_path):
    path = array(tmp_path / "S.json", PARENT)
    write(tmp_path / "S/subagents/agent-x1.jsonl", *(side(each, "x1") for each in child()))
    (trace,) = import_paths([path]).traces
    assert [agent.attrs["transcript"] for agent in trace.agents] == [True, True]


def test_the_threads_of_a_run_may_be_arrays(tmp_path):
    call = rollouts.calls(1, "spawn_agent", "s", message="look")
    array(
        tmp_path / "rollout-parent.json",
        [
            rollouts.meta(0, rollouts.ROOT),
            call,
            rollouts.output(2, "s", {"agent_id": rollouts.CHILD}),
        ],
    )
    own = [rollouts.spawned(2, rollouts.CHILD, rollouts.ROOT), rollouts.says(3, "found")]
    array(tmp_path / "rollout-child.json", own)
    (trace,) = import_paths([tmp_path]).traces
    assert [agent.id for agent in trace.agents] == ["0", "0/0"]


@BOTH
@FORMED
def test_the_rules_of_importers_hold(tmp_path, format, records, form):
    check_importer(format, [array(tmp_path / "s.json", records, form)])


@REAL
@pytest.mark.parametrize(
    "name",
    ["claude_code/irrlicht_orphan-cleanup.jsonl", "codex/agentv_0.142.4_single.jsonl"],
)
def test_a_real_session_as_an_array(tmp_path, name):
    path = tmp_path / (DATA / name).with_suffix(".json").name
    records = [json.loads(line) for line in (DATA / name).read_text().splitlines()]
    assert traces(array(path, records)) == traces(DATA / name)
