"""What the tests of the viewer share: a browser, traces and a run folder."""

import base64
import fcntl
import gzip
import json
import os
import re
import select
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stretto import store
from stretto.policies.scripted import Scripted
from stretto.tasks.scouts import Scouts
from stretto.team.engine import rollout
from stretto.team.protocols import Ask
from stretto.trace import Trace

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run "
    "--disable-component-update --disable-sync --hide-scrollbars --remote-debugging-pipe"
)


def find_chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One page of headless Chromium, spoken to over its DevTools pipe.

    What the page logs as an error or throws is kept in `complaints`, what it loads in `requests`.
    """

    def __init__(self, program: str, profile: Path) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._number, self._buffer = 0, b""
        theirs, self._writer = os.pipe()
        self._reader, back = os.pipe()
        arguments = [program, *FLAGS.split(), f"--user-data-dir={profile}", "about:blank"]
        self._process = _spawn(arguments, theirs, back)
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self._call(
            "Target.attachToTarget", {"targetId": page["targetId"], "flatten": True}
        )
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        os.close(self._writer)
        os.close(self._reader)
        os.kill(self._process, signal.SIGTERM)
        os.waitpid(self._process, 0)

    def call(self, method: str, **params: Any) -> Any:
        return self._call(method, params, session=self._session)

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a page and wait until its script is done."""
        self.complaints.clear()
        self.requests.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=f"{path.as_uri()}{fragment}")
        self.wait_for("document.readyState === 'complete'")
        if self.run("document.querySelector('.viewer') !== null"):
            self.wait_for("document.querySelector('.viewer').dataset.ready === 'yes'")

    def wait_for(self, condition: str, seconds: float = 20) -> None:
        deadline = time.monotonic() + seconds
        while not self.run(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{condition}; {self.complaints}")
            time.sleep(0.02)

    def run(self, script: str) -> Any:
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def size(self, width: int, height: int, dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def key(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **text)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: Path, whole: bool = True) -> None:
        image = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(image["data"]))

    def _call(
        self, method: str, params: dict[str, Any] | None = None, session: str | None = None
    ) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        os.write(self._writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _receive(self) -> Any:
        while b"\0" not in self._buffer:
            if not select.select([self._reader], [], [], 30)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._reader, 1 << 20)
            if not part:
                raise RuntimeError("the browser went away")
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def _note(self, event: Any) -> None:
        params = event.get("params", {})
        if event["method"] == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:600])
        elif event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])
        elif event["method"] == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.complaints.append(json.dumps(params["args"])[:600])
        elif event["method"] == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])


def _spawn(arguments: list[str], reads: int, writes: int) -> int:
    """Start a program that reads from descriptor 3 and writes to descriptor 4."""
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (reads, writes)]
    actions = [(os.POSIX_SPAWN_DUP2, ends[0], 3), (os.POSIX_SPAWN_DUP2, ends[1], 4)]
    actions += [(os.POSIX_SPAWN_OPEN, quiet, os.devnull, os.O_WRONLY, 0) for quiet in (1, 2)]
    process = os.posix_spawn(arguments[0], arguments, os.environ, file_actions=actions)
    for end in (reads, writes, *ends):
        os.close(end)
    return process


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("chromium is not installed")
    found = Browser(program, tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def _rule(ask: Ask) -> str:
    return {"none": "seven", "one": "five"}.get(ask.prompt.split()[-1][:-1], "stop")


@pytest.fixture(scope="session")
def scouts() -> list[Trace]:
    return rollout(Scouts(), {"lead": Scripted(_rule)}, range(4))


def decode_payload(page: str) -> Any:
    """What a page holds, read as the page itself reads it."""
    packed = re.search(r'<script type="application/gzip" id="payload">([^<]*)</script>', page)
    assert packed is not None
    return json.loads(gzip.decompress(base64.b64decode(packed[1])))


@pytest.fixture
def decoded() -> Any:
    return decode_payload


RESULT: dict[str, Any] = {
    "value": 0.7412,
    "optimum": 0.7721,
    "baselines": {"one_shot": 0.71, "guess": 0.5},
    "seconds": 90.5,
    "tokens_generated": 12000,
    "tokens_trained": 11000,
    "steps": 3,
    "seed": 7,
    "policy": {"kind": "lm", "model": "smollm2", "dtype": "bfloat16"},
    "task": {"family": "scouts", "reliability": 0.65},
    "decisions": {
        "states": ["One colour leads by none.", "One colour leads by one."],
        "choices": ["stop", "one"],
        "probabilities": [[0.1, 0.9], [0.25, 0.75]],
        "optimal": [[0.0, 1.0], [0.9, 0.1]],
    },
}


@pytest.fixture
def run_folder(tmp_path: Path, scouts: list[Trace]) -> Path:
    """A finished run of three steps."""
    folder = tmp_path / "first-run"
    folder.mkdir()
    (folder / "config.toml").write_text(
        'seed = 7\n\n[task]\nfamily = "scouts"\n\n[policy]\nkind = "lm"\n\n'
        '[policy.lm]\nmodel = "smollm2"\n\n[train]\nsteps = 9\n'
    )
    steps = [
        {"step": step, "seconds": 30.0 * step, "reward": 0.5 + step / 10, "value": 0.6 + step / 100}
        | {"entropy": 1.0, "loss": -0.25, "tokens_generated": 4000 * step, "episodes": 64}
        | {"tokens_trained": 3000 * step, "something_new": 1.5}
        for step in (1, 2, 3)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    (folder / "result.json").write_text(json.dumps(RESULT))
    store.write(folder / "traces.jsonl", scouts)
    return folder
