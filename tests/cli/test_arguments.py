"""Command lines keep the limits that their structs declare."""

from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import pytest
import tyro
from msgspec import Meta, Struct

from stretto.cli.arguments import parse
from stretto.cli.main import main
from stretto.errors import StrettoError


class Colour(Enum):
    RED = 1
    BLUE = 2


class Inner(Struct, frozen=True, kw_only=True):
    most_steps: Annotated[int, Meta(ge=1)] = 3


class Command(Struct, frozen=True, kw_only=True):
    file: Annotated[Path, tyro.conf.Positional]
    files: tuple[Path, ...] = ()
    out: Path | None = None
    share: Annotated[float, Meta(gt=0, le=1)] | None = None
    colour: Colour = Colour.RED
    word: Literal["a", "b"] = "a"
    inner: Inner = Inner()


def test_what_fits_comes_back_as_it_was_parsed():
    line = ["x", "--files", "y", "z", "--out", "o", "--share", "1", "--colour", "BLUE"]
    found = parse(Command, "try", [*line, "--inner.most-steps", "1"])
    assert found == Command(
        file=Path("x"),
        files=(Path("y"), Path("z")),
        out=Path("o"),
        share=1.0,
        colour=Colour.BLUE,
        inner=Inner(most_steps=1),
    )


@pytest.mark.parametrize(
    ("flag", "value", "limit"),
    [
        ("--share", "0", r"`float` > 0"),
        ("--share", "nan", r"`float` > 0"),
        ("--share", "1.5", r"`float` <= 1"),
        ("--inner.most-steps", "0", r"`int` >= 1"),
    ],
)
def test_a_limit_is_named_with_its_flag(flag, value, limit):
    with pytest.raises(StrettoError, match=f"^try: {flag}: expected {limit}"):
        parse(Command, "try", ["x", flag, value])


@pytest.mark.parametrize(
    "line",
    [
        *(
            f"bench run out {flag}"
            for flag in (
                "--workers 0",
                "--workers -3",
                "--attempts 0",
                "--tokens 0",
                "--tokens -5",
                "--tokens nan",
                "--timeout -1",
                "--timeout nan",
                "--timeout inf",
                "--retries -1",
                "--concurrency 0",
                "--instances 0",
                "--answer-tokens 0",
            )
        ),
        "measure x --workers 0",
    ],
)
def test_no_command_starts_beyond_its_limits(line, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert f"{line.split()[-2]}: expected" in said
    assert not list(tmp_path.iterdir()), "nothing was begun"
