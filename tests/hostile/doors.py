"""The commands that read files of users, run on one, and what Python tells audit hooks meanwhile."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cli.runner import Outcome, run

# what reading a model may never do in this process; files are in the folder of the test or of programs
_FORBIDDEN = (
    *("pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "webbrowser.open"),
    *("socket.connect", "socket.getaddrinfo", "socket.bind", "urllib.Request"),
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_HEARD: list[tuple[str, str]] = []
_FOLDER: list[Path] = []

# {} is the hostile file, {good} a valid one of the same inputs and outputs
OF_MODELS = {
    "inspect": "inspect {}",
    "graph": "inspect --graph {}",
    "table": "inspect --tabular {}",
    "verify": "verify {good} {}",
    "verify source": "verify {} {good}",
    "run": "run {}",
    "compare": "compare {good} {}",
    "compare source": "compare {} {good}",
    "view": "view {} -o page.html",
    "check": "check {} --target tflite",
    "optimize": "optimize {} -o out.tm",
    "save": "save {} out.tm",
    "code": "code {} -o package",
    "onnx": "onnx {} out.onnx",
    "tflite": "tflite {} out.tflite",
    "caffe": "caffe {} out.prototxt",
    "integers": "tflite {} out.tflite --quantized --calibration data.npz",
    "calibrate": "calibrate {} -d data.npz -o out.tm",
    "params": "params check parameters.json {}",
    "usage": "inspect {} --usage python",
    "evaluate": "evaluate {good} {} -d data.npz",
    "evaluate source": "evaluate {} {good} -d data.npz",
    "lint": "lint {}",
    "bench": "bench {} --seconds 0.01",
    "trace": "trace {} -o out.tm",
    "parameters": "params show {}",
    "convert": "convert {} --to onnx --to tflite -o out",
}


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if not _FOLDER:
        return
    if event in _FORBIDDEN or (event == "subprocess.Popen" and args[0] != sys.executable):
        _HEARD.append((event, str(args)[:200]))
    elif event == "ctypes.dlopen" and args[0] and not Path(args[0]).is_absolute():
        _HEARD.append((event, args[0]))  # libraries of installed packages have whole paths
    elif event == "exec" and _is_of_users(args[0].co_filename):
        _HEARD.append((event, args[0].co_filename))
    elif event == "open" and isinstance(args[0], str) and _is_forbidden(args[0], args[2]):
        _HEARD.append((event, args[0]))


def _is_of_users(name: str) -> bool:
    """Whether code is of a file in the working folder, which is a stranger's."""
    is_file = not name.startswith("<")  # code that is made, as that of named tuples, has such a name
    return is_file and os.path.abspath(name).startswith(f"{_FOLDER[0]}{os.sep}")  # noqa: PTH100


def _is_forbidden(path: str, flags: object) -> bool:
    """Whether a file is a secret, or is opened for writing next to the working folder."""
    if "secret" in path:
        return "secret" in Path(path).parts
    if not isinstance(flags, int) or not flags & _WRITING or _is_of_users(path):
        return False
    return os.path.abspath(path).startswith(f"{_FOLDER[0].parent}{os.sep}")  # noqa: PTH100


sys.addaudithook(_hear)


class TooLong(BaseException):
    """A command took longer than a hostile file may make it."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises TooLong after some seconds, where the system has alarms."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def end(number: int, frame: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def enter(command: str, seconds: float = 20) -> Outcome:
    """Runs a command on hostile input, and asserts that it is a clean end: no defect, no code, no escape."""
    folder = Path.cwd()
    _HEARD.clear()
    _FOLDER.append(folder)
    try:
        with limited(seconds):
            outcome = run(*command.split(" "))
    finally:
        _FOLDER.pop()
    said = outcome.stdout + outcome.stderr
    assert outcome.status in (0, 1, 2), said
    assert not _HEARD, _HEARD
    assert not {character for character in "\x1b\x07\0" if character in said}, repr(said)
    assert not (folder / "ran").exists() and not (folder.parent / "elsewhere").exists()
    return outcome
