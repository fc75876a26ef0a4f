"""What an exporter writes in a format that is read is told by its content, wherever it is named."""

import pytest

from stretto.cli.main import main
from stretto.exporters import export, write
from stretto.importers import detect
from stretto.loading import load

from .sample import sample


@pytest.mark.parametrize("name", ["atif", "otlp", "survey", "verifiers"])
def test_it_is_read_again(tmp_path, capsys, name):
    trace = sample()
    (path,) = write(export([trace], name), tmp_path / "out.json")
    assert detect(path) == name
    assert {event.id for event in load(path).events} == {event.id for event in trace.events}
    assert main(["check", str(path)]) == 0
    assert "fine" in capsys.readouterr().out
