"""The conformance test passes what keeps the rules, and names the rule that is broken."""

import json
import sys
from types import ModuleType

import pytest

from stretto.errors import StrettoError
from stretto.importers.conformance import check_importer
from stretto.importers.kit.reading import read_document
from stretto.importers.kit.report import Imported, Likeness, report_of
from stretto.importers.plan import importer, one_by_one
from stretto.trace import Agent, Event, Trace, content_hash

from .test_import import SURVEY
from .transcripts import LEAD, write


class Notes:
    """An importer of `{"notes": [...]}`, whose parts a test replaces by broken ones."""

    sessions = staticmethod(one_by_one)

    @staticmethod
    def recognise(head):
        document = head.document
        return Likeness(float(isinstance(document, dict) and "notes" in document))

    @staticmethod
    def trace(document, file):
        notes = document.get("notes")
        notes = notes if isinstance(notes, list) else []
        events = [Event(id=f"0#{n}", kind="decision", agent="0") for n in range(len(notes))]
        return Trace(id="n", attrs={"format": "notes"}, agents=(Agent(id="0"),), events=(*events,))

    @staticmethod
    def report(file, trace, warnings):
        return report_of(str(file), [trace], warnings=warnings)

    def import_files(self, files):
        (file,) = files
        document = read_document(file)
        trace = self.trace(document.value, file)
        return Imported((trace,), (self.report(file, trace, document.warnings),))


@pytest.fixture
def notes(tmp_path, monkeypatch):
    path = tmp_path / "notes.json"
    path.write_text(json.dumps({"notes": ["one", "two"]}, indent=1))

    def check(**broken):
        made = Notes()
        module = ModuleType("toy.notes")
        for name in ("recognise", "sessions", "import_files"):
            setattr(module, name, broken.get(name, getattr(made, name)))
        made.trace = broken.get("trace", made.trace)
        made.report = broken.get("report", made.report)
        monkeypatch.setitem(sys.modules, "toy", ModuleType("toy"))
        monkeypatch.setitem(sys.modules, "toy.notes", module)
        check_importer("toy.notes", [path])

    return check


def test_what_keeps_the_rules_passes(notes, tmp_path):
    notes()
    survey = tmp_path / "t.json"
    survey.write_text(json.dumps(SURVEY))
    check_importer("survey", [survey])


def test_the_importer_of_transcripts_passes_on_a_folder(tmp_path):
    folder = tmp_path / "sessions"
    folder.mkdir()
    write(folder / "S.jsonl", *LEAD)
    check_importer("claude-code", [folder])


def broken_by_damage(document, file):
    return Notes.trace({"notes": document["notes"] + []}, file)


def with_a_missing_text(document, file):
    event = Event(id="0#0", kind="decision", agent="0", content=content_hash("ab"))
    return Trace(id="n", attrs={"format": "x"}, agents=(Agent(id="0"),), events=(event,))


def of_nobody(document, file):
    event = Event(id="0#0", kind="decision", agent="7")
    return Trace(id="n", attrs={"format": "x"}, agents=(Agent(id="0"),), events=(event,))


def counting(document, file, calls=[0]):  # noqa: B006
    calls[0] += 1
    return Trace(id=f"n{calls[0]}", attrs={"format": "x"}, agents=(Agent(id="0"),))


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        ({"recognise": lambda head: Likeness(1.0)}, "for its own"),
        ({"trace": broken_by_damage}, "raises"),
        ({"trace": with_a_missing_text}, "a text that is not there"),
        ({"trace": of_nobody}, 'no agent "7"'),
        ({"trace": counting}, "gives other traces"),
        ({"report": lambda file, *_: report_of(str(file), [], spawns=3)}, "says 3 spawns"),
        ({"report": lambda file, *_: report_of(str(file), [])}, "no warning says so"),
        ({"import_files": lambda files: Imported((), ())}, "reads no trace"),
    ],
)
def test_a_broken_rule_is_named(notes, broken, rule):
    with pytest.raises(StrettoError, match=rule):
        notes(**broken)


def test_a_name_without_a_module_is_an_error():
    with pytest.raises(StrettoError, match="no format"):
        importer("notes")
