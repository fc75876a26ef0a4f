"""Which files are looked at, and what is said of those that are not read."""

import gzip
import json
import os
import zipfile

import pytest

from stretto.errors import StrettoError
from stretto.importers import IMPORTERS, detect, import_paths, plan
from stretto.importers.plan import importer

from .transcripts import assistant, user, write


@pytest.fixture
def session(tmp_path):
    return write(tmp_path / "s.jsonl", user("hi", 0), assistant("m1", 1, "hello"))


def told(folder):
    """What the plan says of the files that it leaves out, by the end of their names."""
    found = plan([folder]).skipped
    return {report.file.rpartition("/")[2]: report.warnings[0].what for report in found}


@pytest.mark.parametrize("name", ["os.path", "json.tool", "stretto.trace"])
def test_a_module_without_the_functions_is_no_importer(session, name):
    with pytest.raises(StrettoError, match='is no importer: it has no "recognise"'):
        import_paths([session], name)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def recognise(:\n", "SyntaxError"),
        ("from os import no_such_name\n", "ImportError: cannot import name 'no_such_name'"),
        ("import no_such_module\n", "No module named 'no_such_module'"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_module_that_cannot_be_imported_is_one_line(tmp_path, monkeypatch, session, source, said):
    package = tmp_path / "toys"
    package.mkdir()
    (package / "broken.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(StrettoError, match=r"toys\.broken") as caught:
        import_paths([session], "toys.broken")
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [".", "..x", "a..b", "os.", "docs/x.py"])
def test_a_name_that_is_no_module_is_one_line(name):
    with pytest.raises(StrettoError, match="cannot be imported"):
        importer(name)


@pytest.mark.parametrize("format", [name for name in IMPORTERS if name != "claude-code"])
def test_a_format_that_is_given_and_does_not_fit_at_all_is_refused(session, format):
    with pytest.raises(StrettoError, match=f"is not {format} .it looks like claude-code"):
        import_paths([session], format)


def test_a_torn_file_of_the_format_that_is_given_is_read(tmp_path):
    """One record of four that are whole: too few to be detected."""
    event = {"type": "user.message", "id": "a", "parentId": None, "data": {"content": "hi"}}
    torn = tmp_path / "torn.jsonl"
    torn.write_text('{"torn\n{"x": 1}\n{"x": 2}\n{"x": 3}\n' + json.dumps(event))
    with pytest.raises(StrettoError, match="closest is copilot-cli: 1 of its first 4 lines"):
        detect(torn)
    imported = import_paths([torn], "copilot-cli")
    assert [event.kind for event in imported.traces[0].events] == ["human"]
    assert any("no whole record" in str(notice) for notice in imported.report[0].warnings)


def test_files_with_other_endings_are_counted_in_one_line(tmp_path, session):
    """But for tables of labels, which are files like others."""
    for name in ("a.gz", "b.gz", "c.zip", "s.jsonl.bak", "README"):
        (tmp_path / name).write_bytes(b"x")
    said = "not read: 5 files with other endings (.gz 2, .bak 1, .zip 1, none 1)"
    assert told(tmp_path) == {tmp_path.name: said}
    only = tmp_path / "only"
    only.mkdir()
    (only / "c.zip").write_bytes(b"x")
    with pytest.raises(StrettoError, match=r"a folder without any of.*1 file with .* \(\.zip 1\)"):
        plan([only])


def test_many_endings_are_not_all_listed(tmp_path, session):
    for number in range(12):
        (tmp_path / f"x.e{number:02}").write_bytes(b"x")
    (said,) = told(tmp_path).values()
    assert said.endswith("(.e00 1, .e01 1, .e02 1, .e03 1, .e04 1, .e05 1 and 6 more)")


def test_names_that_are_no_text_can_be_told(tmp_path, session):
    (tmp_path / os.fsdecode(b"a.\xff")).write_bytes(b"x")
    (tmp_path / os.fsdecode(b"\xff.json")).symlink_to(tmp_path / "nowhere")
    for name, said in told(tmp_path).items():
        assert (name + said).encode().isascii() is False


def test_endings_in_capitals_are_looked_at(tmp_path, session):
    session.rename(tmp_path / "S.JSONL")
    assert detect(tmp_path) == "claude-code"
    assert told(tmp_path) == {}


def test_broken_links_and_pipes_are_told(tmp_path, session):
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.json")
    said = told(tmp_path)
    assert said["gone.jsonl"] == "not read: a link to nothing"
    assert said["pipe.json"].startswith("not read: is a pipe")
    session.unlink()
    with pytest.raises(StrettoError, match=r"no known format|nothing|pipe"):
        plan([tmp_path])


def test_a_folder_that_holds_only_a_link_to_nothing_says_so(tmp_path):
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StrettoError, match=r"any of .*\(gone.jsonl is a link to nothing\)"):
        plan([tmp_path])
    (tmp_path / "c.zip").write_bytes(b"x")
    with pytest.raises(StrettoError, match=r"link to nothing; 1 file with other .*\(.zip 1\)"):
        plan([tmp_path])


def test_a_folder_without_the_format_that_is_given_says_what_it_looks_like(tmp_path, session):
    with pytest.raises(StrettoError, match=r"s.jsonl: is not codex \(it looks like claude-code\)"):
        import_paths([tmp_path], "codex")
    session.write_text('{"a": 1}')
    with pytest.raises(StrettoError, match=r"s.jsonl: is not codex$"):
        import_paths([tmp_path], "codex")


def packed(name, data):
    if name.endswith(".gz"):
        return gzip.compress(data)
    return data.decode().encode("utf-16-le" if name.startswith("bare") else "utf-16")


@pytest.mark.parametrize(
    ("name", "said"),
    [("s.jsonl.gz", "gzip: unpack"), ("s.jsonl", "UTF-16"), ("bare.jsonl", "UTF-16")],
)
def test_what_is_packed_or_encoded_otherwise_is_named(tmp_path, session, name, said):
    path = tmp_path / name
    path.write_bytes(packed(name, session.read_bytes()))
    with pytest.raises(StrettoError, match=said):
        detect(path)
    with pytest.raises(StrettoError, match=said):
        import_paths([path], "claude-code")


@pytest.mark.parametrize("name", ["s.zip", "s.eval"])
def test_a_stored_archive_is_not_read_as_the_text_inside(tmp_path, session, name):
    path = tmp_path / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(session, "s.jsonl")
    with pytest.raises(StrettoError, match="an archive without samples of Inspect: unpack"):
        detect(path)
    with pytest.raises(StrettoError, match=r"is not claude-code.*a zip archive: unpack"):
        import_paths([path], "claude-code")
