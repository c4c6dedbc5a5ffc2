"""The commands that read files of users, run on one, and what Python tells audit hooks meanwhile."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cli.runner import Outcome, run
from tmconvert.verification.processes import worker

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
    elif event == "ctypes.dlopen" and args[0] and _is_of_folder_or_search(os.fsdecode(args[0])):
        _HEARD.append((event, args[0]))
    elif event == "import" and args[1] and _is_of_users(args[1]):  # of a library for Python
        _HEARD.append((event, args[1]))
    elif event == "exec" and _is_of_users(args[0].co_filename):
        _HEARD.append((event, args[0].co_filename))
    elif event == "open" and isinstance(args[0], str) and _is_forbidden(args[0], args[2]):
        _HEARD.append((event, args[0]))


def _is_of_folder_or_search(library: str) -> bool:
    """Whether a library is in the working folder, or is searched for; those of packages have whole paths."""
    return not Path(library).is_absolute() or _is_of_users(library)


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

# the same for workers, which run a file of any folder; they write what they hear to their stderr
_MARK = b"heard by the hook: "
_OF_WORKERS = f"""
import os, sys
def hear(event, args):
    path = str(args[0]) if args and event in ("ctypes.dlopen", "subprocess.Popen") else ""
    if event in {_FORBIDDEN} or event == "subprocess.Popen" or path.startswith({tempfile.gettempdir()!r}):
        os.write(2, {_MARK!r} + repr((event, args)).encode()[:200] + b"\\n")
sys.addaudithook(hear)
"""
_command = worker.command


def _command_with_hook(module: str) -> list[str]:
    *start, code = _command(module)
    return [*start, _OF_WORKERS + code]


worker.command = _command_with_hook


def _heard_by_worker() -> bytes:
    living = worker._worker
    if living is None or living._said.closed:
        return b""
    said = os.pread(living._said.fileno(), 1 << 20, 0)  # without moving the place at which the worker writes
    return b"".join(line for line in said.splitlines() if _MARK in line)


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
    assert not _heard_by_worker() and _MARK.decode() not in said
    assert not {character for character in "\x1b\x07\0" if character in said}, repr(said)
    assert not (folder / "ran").exists() and not (folder.parent / "elsewhere").exists()
    return outcome
