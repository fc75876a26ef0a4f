"""Run a generated package's tests in a process of its own, without network and within limits.

What holds, and what does not:

* The process is a fork of a clean one (`repair.forks`) that never runs a package. It has its own
  limits (`resource.setrlimit`): processor seconds, memory, size of a written file, number of open
  files and of processes (which does not bind root). It has an empty environment, no open file but
  its output, and works in an empty temporary folder that is removed afterwards.
* Network: where `unshare` is permitted, the process lives in a network namespace of its own, where
  not even the loopback is up. Everywhere, an audit hook (PEP 578) refuses sockets, subprocesses,
  `ctypes`, and every file that is opened for writing outside of the folder. Python code cannot
  remove the hook; native code could get round it, and a generated package has none.
* It is no prison: the code may read files that this user may read, and it can lie about its own
  tests, since both run in one process. Patches come from a menu, so neither can happen in `repair`.
* It needs POSIX: where Python has no module `resource`, every run is an error.

A run that is killed, does not end or says nothing readable is an *error*, never a pass or a fail.
"""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from tempfile import TemporaryDirectory

from msgspec import DecodeError, Struct, ValidationError
from msgspec.json import decode, encode

from stretto.tasks.repair.forks import fork_tests, unshare

MOST_KEPT = 65_536
"""Most results that are kept; the oldest one goes first."""


class Limits(Struct, frozen=True):
    """What a run may use."""

    cpu_seconds: int = 5
    """Processor time; the kernel ends a run that takes more."""
    wall_seconds: float = 60.0
    """Time by the clock, which a busy machine may need."""
    memory_bytes: int = 512 * 2**20
    file_bytes: int = 2**16
    """Most bytes of one written file."""
    open_files: int = 32
    processes: int = 1


class Ran(Struct, frozen=True):
    """How a run ended."""

    passed: tuple[str, ...] = ()
    """Names of the tests that passed, as in `test_tavok.test_one`."""
    failed: tuple[str, ...] = ()
    """Names of the tests that failed, or could not be loaded."""
    error: str = ""
    """Why there is no result; empty where there is one."""


def run_tests(files: Mapping[str, str], limits: Limits | None = None) -> Ran:
    """Run every `test_*.py` among `files` (name to text), in an empty temporary folder.

    Files can import each other. A test is a function `test_*` without arguments; it passes unless
    it raises.
    """
    limits = limits or Limits()
    with TemporaryDirectory(prefix="repair-") as folder:
        ended = fork_tests(folder, files, limits)
    if ended is None:
        return Ran(error="did not start")
    if ended.late:
        return Ran(error=f"did not end within {limits.wall_seconds:g} seconds")
    if ended.code < 0:
        return Ran(error=f"was killed by signal {-ended.code}")
    try:
        return decode(ended.said, type=Ran)
    except (DecodeError, ValidationError):
        return Ran(error=f"said nothing readable, exit code {ended.code}")


def cached_tests(files: Mapping[str, str]) -> Ran:
    """As `run_tests`, but what ran once is not run again: results are kept by content.

    An error is not kept: it says something about the machine, not about the files.
    """
    key = _key(files)
    if key in _kept:
        return _kept[key]
    ran = run_tests(files)
    if not ran.error:
        _keep(key, ran)
    return ran


def cached_batch(suites: Mapping[str, Mapping[str, str]]) -> dict[str, Ran]:
    """As `cached_tests` for several suites of one package: those that are new share a process.

    A file that is in two of them must be the same in both. Where the shared run is an error, each
    suite runs on its own.
    """
    new = {key: files for files in suites.values() if (key := _key(files)) not in _kept}
    if len(new) > 1:
        ran = run_tests({name: text for files in new.values() for name, text in files.items()})
        if not ran.error:
            for key, files in new.items():
                _keep(key, _part(ran, files))
    return {name: cached_tests(files) for name, files in suites.items()}


def _part(ran: Ran, files: Mapping[str, str]) -> Ran:
    """The results of those tests whose file is among these."""
    passed, failed = (
        tuple(test for test in tests if f"{test.partition('.')[0]}.py" in files)
        for tests in (ran.passed, ran.failed)
    )
    return Ran(passed, failed)


_kept: dict[bytes, Ran] = {}
"""Digest of names and texts to what came of them."""


def _key(files: Mapping[str, str]) -> bytes:
    return blake2b(encode(sorted(files.items())), digest_size=16).digest()


def _keep(key: bytes, ran: Ran) -> None:
    if len(_kept) >= MOST_KEPT:
        del _kept[next(iter(_kept))]
    _kept[key] = ran


@lru_cache(maxsize=1)
def isolation() -> str:
    """How the network is kept away: `namespace` (and the hook), or `hook` alone."""
    return "namespace" if unshare() else "hook"
