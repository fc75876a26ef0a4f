"""One clean process in the sandbox; every run is a fork of it, and so costs no start of Python.

The clean process never runs a package: it reads files and limits from its input, forks, and says
how the fork ended. The fork lets go of all that it inherited but its own output, takes the limits
and the audit hook upon itself, runs the tests, and is gone. So no run can leave anything behind for
another one. Modules are imported from memory: that is much faster than from a disk.
"""

import atexit
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from shutil import which
from threading import Lock

from msgspec import Struct
from msgspec.json import decode, encode


class Ended(Struct, frozen=True):
    """How a fork ended."""

    code: int = 0
    """Its exit code, or minus the signal that killed it."""
    late: bool = False
    """Whether it was killed because its time by the clock was over."""
    said: str = ""
    """The last line that it wrote."""


class Forks:
    """The clean process, and whose turn it is."""

    def __init__(self) -> None:
        command = [*unshare(), sys.executable, "-I", "-S", "-B", "-c", _CLEAN]
        self._process = subprocess.Popen(
            command,
            env={},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # who interrupts us may want to go on
        )
        self._turn = Lock()

    def run(self, folder: str, files: Mapping[str, str], limits: Struct) -> Ended | None:
        """Run the tests among the files; `None` where the clean process itself is gone."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # both are pipes
        with self._turn:
            try:
                stdin.write(encode([folder, files, limits]) + b"\n")
                stdin.flush()
            except BrokenPipeError:
                return None
            line = stdout.readline()
        return decode(line, type=Ended) if line else None

    def close(self) -> None:
        """End the clean process."""
        self._process.kill()
        self._process.communicate()


_forks: dict[int, Forks] = {}
"""Process to its clean process: one that was forked off with ours must not share it."""


def fork_tests(folder: str, files: Mapping[str, str], limits: Struct) -> Ended | None:
    """As `Forks.run`; whoever finds the clean process gone starts another one for the next run."""
    own = os.getpid()
    if own not in _forks:
        _forks[own] = Forks()
    try:
        ended = _forks[own].run(folder, files, limits)
    except BaseException:  # the answer that nobody read must not be taken for that of the next run
        close()
        raise
    if ended is None:
        close()
    return ended


@atexit.register
def close() -> None:
    """End the clean process of this one, if it has one."""
    forks = _forks.pop(os.getpid(), None)
    if forks is not None:
        forks.close()


@lru_cache(maxsize=1)
def unshare() -> tuple[str, ...]:
    """The command that starts a process without network; empty where it is not permitted."""
    path = which("unshare")
    if path is None:
        return ()
    command = (path, "--user", "--map-root-user", "--net", "--")
    try:
        probe = subprocess.run([*command, sys.executable, "-I", "-S", "-c", ""], check=False)
    except OSError:
        return ()
    return command if probe.returncode == 0 else ()


_CLEAN = """
import gc, json, os, resource, select, signal, sys, time
from importlib.machinery import ModuleSpec
gc.disable()
def serve():
    for line in sys.stdin:
        folder, files, limits = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            return folder, files, limits, writing
        os.close(writing)
        end = time.monotonic() + limits["wall_seconds"]
        said, late = b"", False
        while not late:
            late = not select.select([reading], [], [], max(0.0, end - time.monotonic()))[0]
            some = b"" if late else os.read(reading, 65536)
            if not some:
                break
            said = (said + some)[-2**20:]
        if late:
            os.kill(child, signal.SIGKILL)
        os.close(reading)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        last = said.splitlines()[-1:]
        text = last[0].decode("utf-8", "replace") if last else ""
        print(json.dumps({"code": code, "late": late, "said": text}), flush=True)
    sys.exit()
folder, files, limits, writing = serve()
nothing = os.open(os.devnull, os.O_RDWR)
for inherited, own in ((nothing, 0), (writing, 1), (nothing, 2)):
    os.dup2(inherited, own)
os.closerange(3, 4096)
os.chdir(folder)
folder = os.getcwd()
for name, value in (
    ("RLIMIT_CPU", limits["cpu_seconds"]),
    ("RLIMIT_AS", limits["memory_bytes"]),
    ("RLIMIT_FSIZE", limits["file_bytes"]),
    ("RLIMIT_NOFILE", limits["open_files"]),
    ("RLIMIT_NPROC", limits["processes"]),
    ("RLIMIT_CORE", 0),
):
    resource.setrlimit(getattr(resource, name), (value, value))
class Files:
    def find_spec(name, path=None, target=None):
        return ModuleSpec(name, Files) if name + ".py" in files else None
    def create_module(spec):
        return None
    def exec_module(module):
        file = module.__name__ + ".py"
        exec(compile(files[file], file, "exec"), vars(module))
sys.meta_path.insert(0, Files)
refused = ("socket.", "subprocess.", "ctypes.", "os.exec", "os.fork", "os.posix_spawn",
           "os.system", "os.kill", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link",
           "os.symlink", "os.chmod", "os.chown", "os.truncate", "shutil.")
def guard(event, arguments):
    if event.startswith(refused):
        raise PermissionError(event)
    if event == "import" and arguments[0] in ("ctypes", "_ctypes", "_socket", "_posixsubprocess"):
        raise PermissionError("import of " + arguments[0])
    if event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        if not os.path.realpath(os.fspath(arguments[0])).startswith(folder + os.sep):
            raise PermissionError("open for writing")
sys.addaudithook(guard)
passed, failed = [], []
for file in sorted(files):
    if not (file.startswith("test_") and file.endswith(".py")):
        continue
    name = file[:-3]
    try:
        module = __import__(name)
    except Exception:
        failed.append(name)
        continue
    for test in sorted(vars(module)):
        if test.startswith("test_"):
            try:
                vars(module)[test]()
                passed.append(name + "." + test)
            except Exception:
                failed.append(name + "." + test)
print()
print(json.dumps({"passed": passed, "failed": failed}), flush=True)
os._exit(0)  # nothing is left to tidy up
"""
