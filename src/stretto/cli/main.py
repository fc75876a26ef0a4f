"""The `stretto` command: one module a verb, loaded when it is called."""

import os
import signal
import sys
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import current_thread, main_thread
from typing import Any

from stretto.errors import SourceWarning, StrettoError, did_you_mean

_SHOW = warnings.showwarning

VERBS = {
    "train": "train a policy to orchestrate, from a recipe",
    "eval": "value a trained policy: exactly where its task has an oracle",
    "bench": "the exam of teams: run it, show its table, verify a submission",
    "import": "turn transcripts of a harness into traces",
    "export": "write traces for Perfetto, OpenTelemetry, Harbor and others",
    "redact": "take texts, names and secrets out of a trace file",
    "check": "validate a trace file",
    "measure": "makespan, work, critical path, parallelism, tokens",
    "audit": "judge estimators of credit against exact truth",
    "query": "SQL on tables of measures",
    "diff": "compare two traces, or two groups of traces",
    "replay": "run recorded episodes again and compare",
    "corpus": "the tagged pool of papers, and which of them Stretto implements",
    "report": "one self-contained HTML page for a trace file or a run",
}
"""Verb to what it does, in the order of `--help`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code is 0, 1 for a check that failed, 2 for a mistake, 130 for ^C.

    Other signals that end a program leave no half-written file either: 143 (TERM), 129 (HUP).
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Threads of torch that spin while they wait starve each other when anything else wants the
    # processor: steps were seen to take ten times as long. Must be set before torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    warnings.showwarning = _tell
    try:
        with _tidy_ends():
            return _dispatch(arguments)
    except StrettoError as error:
        print(f"stretto: {_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stretto: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _be_silent()
        return 0


@contextmanager
def _tidy_ends() -> Generator[None]:
    """Let a signal that ends the program unwind it, as ^C does; one that is ignored stays so."""
    before: dict[int, Any] = {}
    if current_thread() is main_thread():
        numbers = (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP"))
        usual = [n for n in numbers if n is not None and signal.getsignal(n) == signal.SIG_DFL]
        before = {number: signal.signal(number, _end) for number in usual}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _frame: Any) -> None:
    print(f"stretto: ended by {signal.Signals(number).name}", file=sys.stderr)
    raise SystemExit(128 + number)


def _tell(message: Warning | str, category: type[Warning], *place: Any, **rest: Any) -> None:
    """Say what is to know about a file in one line, without the line of code that read it."""
    if issubclass(category, SourceWarning):
        print(f"stretto: {message}", file=sys.stderr)
    else:
        _SHOW(message, category, *place, **rest)


def _be_silent() -> None:
    """The reader went away; what is left to say, and saying so, would fail as well."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_usage())
        return 0 if arguments else 2
    if arguments[0] == "--version":
        from stretto import __version__

        print(__version__)
        return 0
    verb, rest = arguments[0], arguments[1:]
    if verb not in VERBS:
        raise StrettoError(f'no command "{verb}"', hint=did_you_mean(verb, VERBS))
    return import_module(f"stretto.cli.{verb}_").main(rest)


def _usage() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {verb:<{width}}  {what}" for verb, what in VERBS.items())
    return (
        "usage: stretto COMMAND [ARGUMENT ...]\n\n"
        "Teams of LLM agents as orchestration traces: measure, credit, train.\n\n"
        f"commands:\n{verbs}\n\n"
        "`stretto COMMAND --help` says more; every command knows --json."
    )


def _one_line(error: StrettoError) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
