"""Drives a headless Chromium by the DevTools protocol over a pipe, with the standard library alone."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0  # seconds


def chromium() -> str | None:
    """The path of a Chromium; None where none is installed."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def _without_preloads() -> dict[str, str]:
    """The environment without libraries of the dynamic linker, such as the one of tools/on_processor.

    Chromium has signal handlers of its own, and ends where CPUID is answered by another handler.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("LD_")}


class Browser:
    """One page of a browser; ``events`` has what the protocol reported."""

    def __init__(self, writer: int, reader: int) -> None:
        self.writer, self.reader = writer, reader
        self.buffer = b""
        self.number = 0
        self.session: str | None = None
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the protocol, and returns its result."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        wanted = self.number
        while True:
            answer = self._next()
            if answer.get("id") == wanted:
                assert "error" not in answer, (method, answer["error"])
                return dict(answer["result"])
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            part = os.read(self.reader, 1 << 16)
            assert part, "the browser ended"
            self.buffer += part
        text, _, self.buffer = self.buffer.partition(b"\0")
        return dict(json.loads(text))

    def open(self, path: Path, width: int = 1280, height: int = 800, theme: str = "light") -> None:
        """Opens a file in a window of this size."""
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.events.clear()
        for domain in ("Page", "Runtime", "Network", "Log", "Performance"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait(
            "document.readyState === 'complete' && document.querySelector('.graph .boxes > *, .layers')"
        )

    def run(self, script: str) -> Any:
        """Evaluates an expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Waits until an expression holds."""
        end = time.monotonic() + PATIENCE
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, condition
            time.sleep(0.02)

    def frame(self) -> None:
        """Waits until what was changed is drawn."""
        self.run(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
        )

    def key(self, name: str, text: str = "") -> None:
        """Presses a key."""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, code=name, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, code=name)
        self.frame()

    def click(self, selector: str) -> None:
        """Clicks the middle of an element with the mouse."""
        box = self.run(
            f"(() => {{ const found = document.querySelector({json.dumps(selector)}); "
            "found.scrollIntoView({ block: 'nearest' }); const box = found.getBoundingClientRect(); "
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
        self.frame()

    def screenshot(self, path: Path) -> None:
        """Writes what the window shows as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def problems(self) -> list[str]:
        """Messages of the console, exceptions and violations of the policy."""
        found = []
        for event in self.events:
            if event["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                found.append(json.dumps(event["params"])[:500])
        return found

    def requests(self) -> list[str]:
        """The addresses that were requested, without the file itself and data in the page."""
        urls = [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in urls if not url.startswith(("file:", "data:", "blob:"))]


@contextmanager
def browser() -> Iterator[Browser]:
    """Starts a browser, and ends it."""
    program = chromium()
    assert program is not None
    to_read, to_write = os.pipe()  # the browser's file 3: what it reads
    from_read, from_write = os.pipe()  # its file 4: what it writes

    def arranged() -> None:
        first, second = os.dup(to_read), os.dup(from_write)
        os.dup2(first, 3)
        os.dup2(second, 4)

    process = subprocess.Popen(
        [program, *FLAGS, "about:blank"],
        preexec_fn=arranged,
        env=_without_preloads(),
        close_fds=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(from_write)
    try:
        yield Browser(to_write, from_read)
    finally:
        process.kill()
        process.wait()
        os.close(to_write)
        os.close(from_read)
