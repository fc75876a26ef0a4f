"""`stretto train RECIPE.toml`."""

import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import count, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import tyro

from stretto.cli.arguments import parse, print_json
from stretto.cli.progress import show_progress
from stretto.cli.result import comparison
from stretto.errors import StrettoError, did_you_mean
from stretto.learn.recipe import Recipe, keys, read_recipe, resolve

if TYPE_CHECKING:
    from stretto.learn.loop import Run

OWN_FLAGS = ("out", "resume", "json", "help")


class Train(Recipe, frozen=True, kw_only=True):
    """Train a policy to orchestrate, from a recipe.

    Every key of the recipe is a flag. ^C ends the run after the step under way, with a checkpoint.
    """

    recipe: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="RECIPE")] = None
    """A TOML file; not needed with --resume."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder of the new run; the next free one under `runs/` where absent."""
    resume: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder of a run to go on with."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Plain progress on standard error, and the result as one JSON object."""


def main(argv: Sequence[str]) -> int:
    """Train, or go on training."""
    command = _read(argv)
    recipe = _recipe(command)
    if command.resume is None:
        folder = command.out or _free_folder(command.recipe, recipe.seed)
        return _run(recipe, folder, resume=False, as_json=command.json)
    return _run(recipe, command.resume, resume=True, as_json=command.json)


def _run(recipe: Recipe, folder: Path, resume: bool, as_json: bool) -> int:
    from stretto.learn import session

    result = session.finished(folder, recipe) if resume else None
    if result is None:
        run = session.resume(folder, recipe) if resume else session.start(recipe, folder)
        result = _train(run, as_json)
    if result is None:
        return 130
    if as_json:
        print_json({**result, "folder": str(folder)})
    else:
        comparison(result, folder)
    return 0


def _train(run: "Run", as_json: bool) -> dict[str, Any] | None:
    """The result of a run that comes to its end; `None` for one that is interrupted."""
    from stretto.learn import session
    from stretto.learn.loop import train, warnings

    with _interrupts() as stopping:
        with show_progress(run, as_json) as show:
            complete = train(run, show, stopping)
        if complete:
            return session.finish(run)
    for warning in warnings(run):
        print(f"stretto: warning: {warning}", file=sys.stderr)
    done = f"{run.step} of {run.recipe.train.steps} steps"
    hint = f"stretto train --resume {run.folder}"
    if run.halted:
        done, hint = f"{done}: {run.halted}", f"{hint} --train.no-stop-on-hacking"
    print(f"stretto: interrupted after {done}; go on with: {hint}", file=sys.stderr)
    return None


def _read(argv: Sequence[str]) -> Train:
    """The command line, over the defaults that the recipe (or the run to resume) gives."""
    path = Path(argv[0]) if argv and not argv[0].startswith("-") else None
    resumed = _value_of("--resume", argv)
    if path is None and resumed is None and not {"-h", "--help"} & set(argv):
        hint = "stretto train RECIPE.toml, then flags; or --resume DIR"
        raise StrettoError("which recipe? It comes first", hint=hint)
    source = path or (Path(resumed) / "config.toml" if resumed else None)
    base = read_recipe(source) if source else resolve({"task": {"family": "scouts"}}, "defaults")
    family = _value_of("--task.family", argv)
    if family is not None and family != base.task["family"]:  # whose other keys would not fit
        task = resolve({"task": {"family": family}}, "--task.family").task
        base = msgspec.structs.replace(base, task=task)
    _require_known(argv, base)
    default = Train(**{name: getattr(base, name) for name in Recipe.__struct_fields__})
    return parse(Train, "train", argv, default)


def _recipe(command: Train) -> Recipe:
    given = {name: getattr(command, name) for name in Recipe.__struct_fields__}
    return resolve(msgspec.to_builtins(given), "the command line")


def _require_known(argv: Sequence[str], base: Recipe) -> None:
    known = {*keys(base), *OWN_FLAGS}
    for argument in argv:
        name = argument.removeprefix("--").split("=")[0].replace("-", "_").replace(".no_", ".")
        if argument.startswith("--") and name not in known:
            raise StrettoError(f"unknown flag --{name}", "train", did_you_mean(name, known))


def _value_of(flag: str, argv: Sequence[str]) -> str | None:
    for argument, following in zip_longest(argv, argv[1:]):
        if argument == flag:
            return following
        if argument.startswith(f"{flag}="):
            return argument.partition("=")[2]
    return None


def _free_folder(recipe: Path | None, seed: int) -> Path:
    name = f"{recipe.stem if recipe else 'run'}-seed{seed}"
    candidates = (Path("runs") / (f"{name}-{n}" if n > 1 else name) for n in count(1))
    return next(folder for folder in candidates if not folder.exists())


@contextmanager
def _interrupts() -> Generator[Callable[[], bool]]:
    """Turn the first ^C (or SIGTERM) into a polite request, and the second into an interrupt."""
    asked: list[int] = []

    def handle(number: int, _frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        print("stretto: finishing this step first; ^C again to stop now", file=sys.stderr)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
