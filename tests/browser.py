"""Run JavaScript in Node, and pages in a headless Chromium that is driven through two pipes."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from importlib import resources

import pytest

NODE = shutil.which("node")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None or os.name == "nt", reason="chromium is not installed"
)
WEB = resources.files("nysplus.export") / "web"

# reads {model, rows}, writes the outputs of every row
OUTPUTS = """
(model, rows) => ({
    scores: rows.map(model.scores),
    predictions: rows.map(model.predict),
    probabilities: rows.map(model.probabilities),
    contributions: rows.slice(0, 20).map(model.contributions),
})
"""


def run_node(code):
    """Return the standard output of a program that may use the evaluator and Shapley values."""
    modules = [(WEB / name).read_text(encoding="utf-8") for name in ("evaluator.js", "shapley.js")]
    program = "".join([*modules, code])
    done = subprocess.run(
        [NODE, "--input-type=module", "-"],
        input=program,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_rows(X):
    """Return rows for JSON, with null for NaN."""
    return [[None if x != x else x for x in row] for row in X.tolist()]


def node_outputs(text, X):
    """Return the outputs of a model, given its JSON, for rows."""
    call = f"({OUTPUTS})(createModel({text}), {json.dumps(as_rows(X))})"
    return json.loads(run_node(f"console.log(JSON.stringify({call}));"))


class Browser:
    """A headless Chromium with one page, and the commands of its DevTools protocol."""

    def __init__(self, folder):
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()
        # Chromium reads commands from file descriptor 3 and writes answers to 4; those of the
        # pipes are first moved out of the way
        fds = f"exec 8<&{to_child} 9>&{from_child}; exec 3<&8 4>&9 8<&- 9>&-; "
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        options += ["--no-first-run", "--disable-background-networking", "--hide-scrollbars"]
        options += ["--disable-dev-shm-usage", f"--user-data-dir={folder}"]
        self._process = subprocess.Popen(
            ["bash", "-c", fds + 'exec "$@"', "bash", CHROMIUM, *options, "about:blank"],
            pass_fds=(to_child, from_child),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child)
        os.close(from_child)
        self._buffer, self._number, self.events, self._session = b"", 0, [], None
        pages = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in pages if target["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _message(self, deadline):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(deadline - time.monotonic(), 0))
            part = os.read(self._read, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("Chromium does not answer.")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def call(self, method, **params):
        """Return the answer to a command."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            command["sessionId"] = self._session
        self._send(command)
        deadline = time.monotonic() + 60
        while True:
            message = self._message(deadline)
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def _send(self, command):
        left = json.dumps(command).encode() + b"\0"
        while left:
            left = left[os.write(self._write, left) :]

    def run(self, code):
        """Return the value of an expression in the page."""
        found = self.call(
            "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def open(self, page, width=400, height=800, scheme="light", media="screen"):
        """Open a page, a path or an address, and wait until its scripts have run."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features, media=media)
        address = page if isinstance(page, str) else page.resolve().as_uri()
        self.call("Page.navigate", url=address)
        deadline = time.monotonic() + 30
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message(deadline))

    def key(self, key):
        """Press and release a key."""
        code = {"Space": " "}.get(key, key)
        text = {"text": " "} if key == "Space" else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=code,
                code=key,
                **(text if kind == "keyDown" else {}),
            )

    def drag(self, points):
        """Press the mouse at the first point, move it through the others and release it."""
        kinds = ["mousePressed", *["mouseMoved"] * (len(points) - 1)]
        for kind, (x, y) in zip(kinds, points, strict=True):
            self.call(
                "Input.dispatchMouseEvent",
                **{"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1},
            )
        x, y = points[-1]
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=x, y=y, button="left")

    def swipe(self, points):
        """Touch the first point, move through the others and let go."""
        kinds = ["touchStart", *["touchMove"] * (len(points) - 1)]
        for kind, (x, y) in zip(kinds, points, strict=True):
            self.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    @property
    def complaints(self):
        """Messages of the console and exceptions since the page was opened."""
        kinds = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}
        return [event for event in self.events if event.get("method") in kinds]

    @property
    def requests(self):
        """Addresses that were asked for since the page was opened."""
        sent = [e for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def screenshot(self, path):
        """Write a picture of the whole page."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def close(self):
        """End Chromium."""
        self._session = None
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (AssertionError, OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
