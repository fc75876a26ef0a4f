"""A submission is verified by playing it again; whatever was touched is noticed."""

import json
import shutil
from hashlib import sha256

import pytest
from msgspec.structs import replace
from tests.bench.exams import submitted

from stretto import store
from stretto.bench.results import read_rows
from stretto.bench.submission import MANIFEST, TRACES, read_manifest, seal, trace_name
from stretto.bench.suite import FIRST, suite
from stretto.bench.verify import check, verify
from stretto.errors import StrettoError

CELLS = {cell.name: cell for cell in suite().cells}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return submitted(tmp_path_factory.mktemp("exam"), attempts=0)


@pytest.fixture
def home(made, tmp_path):
    shutil.copytree(made, tmp_path / "submission")
    return tmp_path / "submission"


def trace_file(home, seed=FIRST):
    return next(home.glob(f"{TRACES}/*/{seed}.jsonl"))


def refused(home, match, whole=True):
    with pytest.raises(StrettoError, match=match) as error:
        (verify if whole else check)(home)
    assert "\n" not in str(error.value)


def reseal(home, **changes):
    """What a forger would do: write all digests anew."""
    manifest = replace(read_manifest(home), **changes)
    if "episodes" not in changes:
        manifest = replace(manifest, episodes=tuple(digested(home, e) for e in manifest.episodes))
    seal(home, manifest)


def digested(home, each):
    name = trace_name(CELLS[each.cell], each.seed, each.attempt)
    path = home / TRACES / name
    return replace(each, sha256=sha256(path.read_bytes()).hexdigest()) if path.exists() else each


def forge(home, change):
    """Edit a trace and write all digests anew."""
    path = trace_file(home)
    (trace,) = store.read(path)
    path.write_bytes(store.encode_checked(change(trace)))
    reseal(home)


def test_what_was_computed_is_computed_again(made):
    rows = verify(made)
    assert sorted(rows, key=lambda row: row.key) == sorted(
        read_rows(made.parents[1]), key=lambda row: row.key
    )


def test_the_manifest_reports_no_numbers(made):
    assert "outcome" not in (made / MANIFEST).read_text()


def test_any_byte_of_a_trace(home):
    """Everywhere in the file, whatever the byte means."""
    path = trace_file(home)
    data = path.read_bytes()
    for place in range(0, len(data), 41):
        changed = bytearray(data)
        changed[place] ^= 1
        path.write_bytes(bytes(changed))
        refused(home, "digest differs", whole=False)
    path.write_bytes(data)
    check(home)


@pytest.mark.parametrize("field", [b'"logprobs":[-', b'"input":', b'"policy":"', b'"output":'])
def test_bytes_that_no_replay_could_check(home, field):
    path = trace_file(home)
    data = bytearray(path.read_bytes())
    place = data.index(field) + len(field)
    data[place] = ord("7") if data[place] != ord("7") else ord("6")
    path.write_bytes(bytes(data))
    refused(home, "digest differs", whole=False)


def test_any_byte_of_the_manifest(home):
    path = home / MANIFEST
    data = path.read_bytes()
    for place in range(0, len(data), 29):
        if not chr(data[place]).isalnum():
            continue
        changed = bytearray(data)
        changed[place] = ord("8") if data[place] != ord("8") else ord("9")
        path.write_bytes(bytes(changed))
        refused(home, ".", whole=False)


def test_a_byte_more_or_less(home):
    path = trace_file(home)
    data = path.read_bytes()
    for changed in (data + b"\n", data[:-1], b"", data * 2):
        path.write_bytes(changed)
        refused(home, "digest differs", whole=False)


def better(trace):
    return replace(trace, scores=tuple(replace(s, value=1.0) for s in trace.scores))


def earlier(trace):
    events = (*trace.events[:-1], replace(trace.events[-1], start=trace.events[-1].start / 2))
    return replace(trace, events=events)


def seen(trace):
    turn = next(n for n, event in enumerate(trace.events) if event.kind == "decision")
    event = trace.events[turn]
    decision = replace(event.decision, observation="0" * 32)
    changed = replace(event, decision=decision)
    events = (*trace.events[:turn], changed, *trace.events[turn + 1 :])
    return replace(trace, events=events)


def chosen(trace):
    turn = max(
        n for n, e in enumerate(trace.events) if e.decision and len(e.decision.candidates) > 1
    )
    event = trace.events[turn]
    other = (event.decision.chosen + 1) % len(event.decision.candidates)
    changed = replace(event, decision=replace(event.decision, chosen=other))
    return replace(trace, events=(*trace.events[:turn], changed, *trace.events[turn + 1 :]))


@pytest.mark.parametrize("change", [better, earlier, chosen])
def test_a_forger_who_writes_new_digests_is_caught_by_the_replay(home, change):
    forge(home, change)
    check(home)
    refused(home, "played again")


def test_a_forged_observation(home):
    forge(home, seen)
    refused(home, "played again|was dropped")


def test_what_only_the_policy_knew_is_covered_by_digests_alone(home):
    """Honest about the limit: new digests and new log-probabilities pass."""

    def unlikely(trace):
        events = tuple(
            replace(e, decision=replace(e.decision, logprobs=(-9.0,) * len(e.decision.candidates)))
            if e.decision
            else e
            for e in trace.events
        )
        return replace(trace, events=events)

    before = read_manifest(home).digest
    forge(home, unlikely)
    verify(home)
    assert read_manifest(home).digest != before


def test_texts_must_be_there(home):
    forge(home, lambda trace: replace(trace, contents={}))
    refused(home, "was dropped")


def test_an_intervention_is_no_episode(home):
    forge(home, lambda t: replace(t, attrs={**t.attrs, "interventions": {}}))
    refused(home, "forked or intervened")


def test_another_instance_in_its_place(home):
    other = trace_file(home, FIRST + 1).read_bytes()
    trace_file(home).write_bytes(other)
    reseal(home)
    refused(home, "its seed is")


def test_a_missing_trace(home):
    trace_file(home).unlink()
    refused(home, "the trace is missing", whole=False)


def test_a_file_that_nobody_named(home):
    (home / "results.jsonl").write_text("{}")
    refused(home, "does not name this file", whole=False)


def test_numbers_of_its_own(home):
    said = json.loads((home / MANIFEST).read_text())
    (home / MANIFEST).write_text(json.dumps({**said, "score": 1.0}))
    refused(home, "computed from the traces", whole=False)


@pytest.mark.parametrize("field", ["stretto", "generator", "split", "suite"])
def test_another_version(home, field):
    own = read_manifest(home).versions
    value = 99 if field == "suite" else "other"
    reseal(home, versions=replace(own, **{field: value}))
    refused(home, f"made with another {field}", whole=False)


def test_another_harness(home):
    harnesses = dict.fromkeys(read_manifest(home).harnesses, "0" * 32)
    reseal(home, harnesses=harnesses)
    refused(home, "another harness", whole=False)


def test_episodes_that_are_missing_twice_or_strange(home):
    whole = read_manifest(home).episodes
    strange = (*whole, replace(whole[0], seed=7, sha256=None, missing="limit"))
    for episodes, match in (
        (whole[1:], "no episode of"),
        ((*whole, whole[0]), "two episodes of"),
        (strange, "outside the split"),
        ((replace(whole[0], cell="hops-10-nowhere-clean"), *whole[1:]), "no cell"),
    ):
        reseal(home, episodes=episodes)
        refused(home, match, whole=False)


def without_traces(home, reasons):
    """Traces replaced by why there are none."""
    for path in home.glob(f"{TRACES}/*/*"):
        path.unlink()
    pairs = zip(read_manifest(home).episodes, reasons, strict=True)
    reseal(home, episodes=tuple(replace(e, sha256=None, missing=why) for e, why in pairs))


def test_forfeits_score_nothing(home):
    without_traces(home, ["invalid", "limit"])
    rows = verify(home)
    assert [row.values["outcome"] for row in rows] == [0.0, 0.0]
    assert [row.error for row in rows] == [None, None]


def test_errors_are_no_way_to_leave_out_what_went_badly(home):
    without_traces(home, ["error", "limit"])
    refused(home, "1 of 2 episodes of .* with a team are errors", whole=False)


def test_few_errors_are_not_scored(tmp_path):
    home = submitted(tmp_path, 12)
    first, *others = read_manifest(home).episodes
    trace_file(home, first.seed).unlink()
    reseal(home, episodes=(replace(first, sha256=None, missing="error"), *others))
    rows = {row.seed: row for row in verify(home)}
    assert rows[first.seed].error and rows[first.seed].values == {}
    assert len(rows) == 12


def only(home, keep, **changes):
    """A submission of the episodes that `keep` picks."""
    whole = read_manifest(home).episodes
    for each in whole:
        if not keep(each):
            trace_file(home, each.seed).unlink()
    reseal(home, episodes=tuple(each for each in whole if keep(each)), **changes)


@pytest.mark.parametrize(
    ("keep", "changes", "match"),
    [
        (lambda e: e.seed == FIRST + 1, {"instances": 1}, f"no episode of .*{FIRST}"),
        (lambda e: e.seed == FIRST + 1, {"cells": (), "harnesses": {}}, "names no cell"),
        (lambda e: True, {"instances": 1}, f"nobody asked for .*{FIRST + 1}"),
        (lambda e: False, {"cells": (), "harnesses": {}}, "names no cell"),
        (lambda e: False, {}, "no episode of"),
    ],
)
def test_nobody_picks_the_instances(home, keep, changes, match):
    only(home, keep, **changes)
    refused(home, match, whole=False)


def test_cells_are_named_once_and_have_no_company(home):
    manifest = read_manifest(home)
    reseal(home, cells=manifest.cells * 2)
    refused(home, "or one twice", whole=False)
    reseal(home, cells=manifest.cells, harnesses={**manifest.harnesses, "score": "1.0"})
    refused(home, "harnesses of other cells", whole=False)


def test_few_instances_are_told(made):
    assert "2 instances a cell, fewer than 30" in check(made).caveat


def test_attempts_alone_dilute_no_errors(tmp_path):
    home = submitted(tmp_path, 2, attempts=10, topologies=["centralized"])
    first, *others = sorted(read_manifest(home).episodes, key=lambda e: e.attempt is not None)
    assert first.attempt is None and len(others) == 21
    trace_file(home, first.seed).unlink()
    reseal(home, episodes=(replace(first, sha256=None, missing="error"), *others))
    refused(home, "1 of 2 episodes of .* with a team are errors", whole=False)


@pytest.mark.parametrize("reason", ["", "bad luck"])
def test_reasons_are_known_ones(home, reason):
    without_traces(home, ["limit", reason])
    refused(home, "not a manifest.*missing", whole=False)


@pytest.fixture(scope="module")
def duet(tmp_path_factory):
    """Five instances of `gather`, in most of which the team sends somebody, and alone."""
    return submitted(
        tmp_path_factory.mktemp("duet"),
        5,
        1,
        families=["gather"],
        bands=["100"],
        topologies=["centralized"],
    )


def test_alone_is_alone(duet, tmp_path):
    home = tmp_path / "submission"
    shutil.copytree(duet, home)
    verify(home)
    path = next(
        p
        for p in home.glob(f"{TRACES}/*/*[0-9].jsonl")
        if len(store.read(p)[0].agents) > 1 and "alone" not in p.name
    )
    path.with_suffix(".alone-0.jsonl").write_bytes(path.read_bytes())
    reseal(home)
    refused(home, "sends somebody, in an episode alone")


@pytest.mark.parametrize(
    "name",
    [
        "oracle",
        "Oracle",
        "majority",
        "best-of-n",
        "mine alone",
        "",
        " mine",
        "a|b",
        "a\nb",
        "a\x1b[2J",
        "\u202eelcaro",
        "x" * 101,
    ],
)
def test_names_that_pass_for_others(home, name):
    reseal(home, policy=name)
    refused(home, "name", whole=False)


def test_facts_that_are_none(home):
    reseal(home, about={"kind": "test", "score": 1.0})
    refused(home, '"about" holds "score"', whole=False)
    reseal(home, about={"kind": "test"}, split="the hard one")
    refused(home, "its split is called", whole=False)


@pytest.mark.parametrize("change", [{"id": "best"}, {"spec": {"family": "hops", "score": 1.0}}])
def test_a_header_that_says_something_else(home, change):
    forge(
        home,
        lambda trace: replace(
            trace, **{**change, "spec": {**trace.spec, **change.get("spec", {})}}
        ),
    )
    refused(home, "its id or its spec")


def test_links_and_folders_that_nobody_named(home, tmp_path):
    (home / "extra").mkdir()
    refused(home, "does not name this file or folder", whole=False)
    (home / "extra").rmdir()
    path = trace_file(home)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    refused(home, "is a link", whole=False)


def test_the_only_submission_below_a_folder(made, tmp_path):
    shutil.copytree(made, tmp_path / "one")
    assert check(tmp_path).home == tmp_path / "one"
    shutil.copytree(made, tmp_path / "two")
    refused(tmp_path, "more than one submission.*one.*two", whole=False)
