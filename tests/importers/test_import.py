"""Which importer reads a file, and what is said where none does."""

import json
from pathlib import Path

import pytest

import stretto
from stretto.errors import StrettoError
from stretto.importers import IMPORTERS, detect, import_paths
from stretto.importers.kit.heads import Head
from stretto.importers.plan import importer

from .transcripts import assistant, user, write

SURVEY = {
    "trace_id": "t",
    "task_id": "x",
    "events": [
        {"id": "e1", "t": 0, "type": "orchestrator_decision", "agent": "o"},
        {"id": "e2", "t": 1, "type": "spawn", "agent": "o", "to": "w"},
    ],
    "edges": [{"src": "e1", "dst": "e2", "type": "spawn"}],
    "rewards": {},
    "costs": {},
}


@pytest.fixture
def session(tmp_path):
    return write(tmp_path / "s.jsonl", user("hi", 0), assistant("m1", 1, "hello"))


def test_formats_are_told_by_content_and_not_by_name(tmp_path, session):
    survey = tmp_path / "looks-like.jsonl"
    survey.write_text(json.dumps(SURVEY, indent=1))
    odd = session.rename(tmp_path / "notes.txt")
    assert detect(survey) == "survey"
    assert detect(odd) == "claude-code"


def test_a_long_survey_file_is_told_by_its_beginning(tmp_path):
    events = [SURVEY["events"][0] | {"id": f"e{n}", "note": "x" * 100} for n in range(4000)]
    path = tmp_path / "long.json"
    path.write_text(json.dumps(SURVEY | {"events": events, "edges": []}, indent=1))
    assert detect(path) == "survey"
    assert len(stretto.load(path).events) == 4000


def test_a_first_line_longer_than_the_look_is_read_to_its_end(tmp_path):
    path = write(tmp_path / "s.jsonl", user("x" * 400_000, 0))
    assert detect(path) == "claude-code"


def test_a_folder_has_the_format_of_its_first_file_that_has_one(tmp_path, session):
    (tmp_path / "a.json").write_text('{"something": "else"}')
    assert detect(tmp_path) == "claude-code"


def test_an_unknown_file_names_what_was_looked_for_and_what_came_closest(tmp_path):
    path = tmp_path / "half.json"
    path.write_text('{"trace_id": "t", "spans": []}')
    with pytest.raises(StrettoError, match=r'claude-code, .*survey, .*closest is survey.*"events"'):
        detect(path)
    other = {"when": "2026-01-01T00:00:00Z", "what": "nothing"}
    with pytest.raises(StrettoError, match="no known format"):
        detect(write(tmp_path / "c.jsonl", other))


@pytest.mark.parametrize(
    "data", [b"", b"\n \n", b"\x00\xff\x80PNG", b'{"type":"user","mess', b"no"]
)
def test_what_holds_no_record_is_one_clear_line(tmp_path, data):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(data)
    for read in (import_paths, lambda paths: import_paths(paths, "claude-code")):
        with pytest.raises(StrettoError, match=r"bad\.jsonl") as caught:
            read([path])
        assert "\n" not in str(caught.value)


def test_missing_paths_and_empty_folders_are_named(tmp_path):
    with pytest.raises(StrettoError, match="no such file"):
        import_paths([tmp_path / "nowhere"])
    with pytest.raises(StrettoError, match="a folder without any of"):
        import_paths([tmp_path])
    with pytest.raises(StrettoError, match="nothing to import"):
        import_paths([])


def test_an_unknown_format_gets_a_suggestion(session):
    with pytest.raises(StrettoError, match='did you mean "claude-code"'):
        import_paths([session], "claude_code")


def test_several_formats_go_into_one_import(tmp_path, session):
    survey = tmp_path / "t.json"
    survey.write_text(json.dumps(SURVEY))
    imported = import_paths([survey, session])
    assert [trace.id for trace in imported.traces] == ["t", "S"]
    assert [(r.records, r.spawns, r.unpaired) for r in imported.report] == [(2, 1, 1), (2, 0, 0)]


def test_load_reads_a_transcript_and_its_folder(tmp_path, session):
    assert stretto.load(session) == stretto.load(tmp_path)


@pytest.mark.parametrize("name", IMPORTERS)
def test_every_importer_offers_all_functions(name):
    module = importer(name)
    assert module.recognise(Head(b"")).score == 0
    assert not list(module.sessions([]))
    assert callable(module.import_files)


def test_a_folder_of_several_formats_loses_no_file(tmp_path, session):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "t.json").write_text(json.dumps(SURVEY))
    (tmp_path / "notes.json").write_text('{"no": "trace"}')
    (tmp_path / "empty.jsonl").write_text("")
    imported = import_paths([tmp_path])
    assert sorted(trace.id for trace in imported.traces) == ["S", "t"]
    told = {Path(file.file).name: file.warnings for file in imported.report}
    assert set(told) == {"s.jsonl", "t.json", "notes.json", "empty.jsonl"}
    assert "no known format" in told["notes.json"][0].what
    assert "empty" in told["empty.jsonl"][0].what


def test_a_linked_folder_is_told_and_not_followed(tmp_path, session):
    """A link to the folder above would be followed for ever."""
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    imported = import_paths([tmp_path])
    assert [trace.id for trace in imported.traces] == ["S"]
    (told,) = [file for file in imported.report if file.file.endswith("loop")]
    assert "a linked folder (name it as a path of its own)" in told.warnings[0].what


def test_a_bad_file_of_a_folder_does_not_hide_the_others(tmp_path, session):
    (tmp_path / "bad.json").write_text(json.dumps(SURVEY | {"edges": [{"src": "e1"}]}))
    imported = import_paths([tmp_path])
    assert [trace.id for trace in imported.traces] == ["S"]
    (bad,) = [file for file in imported.report if file.file.endswith("bad.json")]
    assert "not read" in bad.warnings[0].what and "edges[0]" in bad.warnings[0].where
    with pytest.raises(StrettoError, match=r"edges\[0\]"):
        import_paths([tmp_path / "bad.json", session])


def test_a_format_that_is_given_is_the_only_one_that_is_read(tmp_path, session):
    (tmp_path / "t.json").write_text(json.dumps(SURVEY))
    imported = import_paths([tmp_path], "survey")
    assert [trace.id for trace in imported.traces] == ["t"]
    assert any("is not survey" in str(notice) for f in imported.report for notice in f.warnings)


def test_an_importer_of_another_package_is_named_by_its_module(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(SURVEY))
    assert [t.id for t in import_paths([path], "stretto.importers.survey.importer").traces] == ["t"]
    with pytest.raises(StrettoError, match="is it installed"):
        import_paths([path], "no_such.importer")
