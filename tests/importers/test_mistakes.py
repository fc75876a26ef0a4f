"""What an importer of somebody gets wrong is one line, whatever it is."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from stretto.errors import StrettoError
from stretto.importers import IMPORTERS, detect, import_paths
from stretto.importers.conformance import check_importer
from stretto.importers.kit.heads import Head
from stretto.importers.kit.report import Imported, Likeness
from stretto.importers.mistakes import raised
from stretto.importers.plan import one_by_one

from .transcripts import assistant, user, write


def failing(error):
    def fail(*_):
        raise error

    return fail


def giving(value):
    return lambda *_: value


def recognise(head):
    return Likeness(float(b"careless" in head.data))


def careless_with(monkeypatch, **functions):
    """Install the importer `careless`, with some functions of its own."""
    module = ModuleType("toy.careless")
    usual = {
        "recognise": recognise,
        "sessions": one_by_one,
        "import_files": giving(Imported((), ())),
    }
    for name, function in (usual | functions).items():
        setattr(module, name, function)
    monkeypatch.setitem(sys.modules, "toy", ModuleType("toy"))
    monkeypatch.setitem(sys.modules, "toy.careless", module)
    monkeypatch.setitem(IMPORTERS, "careless", "toy.careless")


@pytest.fixture
def session(tmp_path):
    return write(tmp_path / "s.jsonl", user("hi", 0), assistant("m1", 1, "hello"))


@pytest.fixture
def path(tmp_path):
    """A file that is read by taking for granted what it need not have."""
    path = tmp_path / "c.json"
    path.write_text('{"careless": true}')
    return path


MISTAKE = 'this is a mistake of the importer "careless", please report it'


def test_a_mistake_in_one_file_does_not_hide_the_other_sessions(
    tmp_path, monkeypatch, session, path
):
    careless_with(monkeypatch, import_files=failing(KeyError("")))
    imported = import_paths([tmp_path])
    assert [trace.id for trace in imported.traces] == ["S"]
    (bad,) = [file for file in imported.report if file.file == str(path)]
    assert str(bad.warnings[0]) == f"{path}: not read: KeyError: ''; {MISTAKE}"


def test_a_mistake_keeps_its_cause(monkeypatch, path):
    careless_with(monkeypatch, import_files=failing(KeyError("")))
    with pytest.raises(StrettoError, match=MISTAKE) as caught:
        import_paths([path])
    assert isinstance(caught.value.__cause__, KeyError)


def test_the_test_of_importers_sees_the_mistake_itself(tmp_path, monkeypatch, path):
    careless_with(monkeypatch, import_files=failing(KeyError("")))
    with pytest.raises(KeyError):
        check_importer("careless", [path])
    with pytest.raises(KeyError):
        check_importer("careless", [tmp_path])


@pytest.mark.parametrize(
    ("function", "wrong", "said"),
    [
        ("recognise", failing(KeyError("rec")), "KeyError: 'rec'"),
        ("recognise", giving(1.0), "TypeError: recognise gives float, not Likeness"),
        ("sessions", failing(KeyError("sess")), "KeyError: 'sess'"),
        ("sessions", giving(None), "TypeError: 'NoneType' object is not iterable"),
        ("sessions", giving(["c.json"]), "TypeError: sessions gives str, not Path"),
        ("sessions", giving([[]]), "ValueError: sessions gives a group without files"),
        ("import_files", giving(None), "TypeError: import_files gives NoneType, not Imported"),
        ("import_files", failing(ValueError()), "ValueError"),
    ],
)
def test_every_function_is_told(monkeypatch, path, function, wrong, said):
    careless_with(monkeypatch, **{function: wrong})
    for format in (None, "careless"):
        with pytest.raises(StrettoError) as caught:
            import_paths([path], format)
        assert str(caught.value) == f"{path}: {said}; {MISTAKE}"


def test_one_in_recognising_names_the_importer_in_a_folder_too(
    tmp_path, monkeypatch, session, path
):
    """Which one it is matters, as all of them look at every file."""

    def fail_on_careless(head: Head) -> Likeness:
        return recognise(head) if b"careless" not in head.data else failing(KeyError("rec"))()

    careless_with(monkeypatch, recognise=fail_on_careless)
    assert detect(tmp_path) == "claude-code"
    imported = import_paths([Path(tmp_path)])
    assert [trace.id for trace in imported.traces] == ["S"]
    (bad,) = [file for file in imported.report if file.file == str(path)]
    assert bad.warnings[0].what == f"not read: KeyError: 'rec'; {MISTAKE}"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError(), "ValueError"),
        (ValueError(""), "ValueError"),
        (ValueError("\n"), "ValueError"),
        (ValueError("\nx\ny"), "ValueError: x"),
        (KeyError("a"), "KeyError: 'a'"),
    ],
)
def test_an_error_is_one_line(error, line):
    assert raised(error) == line
