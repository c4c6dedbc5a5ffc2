"""Whatever goes wrong: the message, the streams and the exit status."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.cli.runner import DATA, command_line, environment, model, run, spawn
from tmconvert import api
from tmconvert.errors import GraphError, InternalError

CONV = model("op_s_conv_bn_relu")
CANARY = Path("/tmp/PWNED")
MODEL_COMMANDS: list[list[str]] = [
    ["onnx", "MODEL", "o.onnx"],
    ["tflite", "MODEL", "o.tflite"],
    ["caffe", "MODEL", "o.prototxt"],
    ["check", "MODEL", "--target", "onnx"],
    ["inspect", "MODEL"],
    ["verify", "MODEL", "o.onnx"],
]
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def raising(error: BaseException) -> Any:
    def replacement(*args: object, **options: object) -> NoReturn:
        raise error

    return replacement


@pytest.mark.parametrize("command", MODEL_COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "error[TM1001]: cannot read the model file: No such file or directory\n  --> m.tm\n"),
        (b"", "error[TM1002]: this is no model file that tmconvert reads\n  --> m.tm\n   = it is: empty\n"),
        (PNG, "error[TM1002]: this is no model file that tmconvert reads\n  --> m.tm\n"),
        (b"\x80\x04", "error[TM1003]: "),
    ],
    ids=["missing", "empty", "png", "truncated"],
)
def test_files_that_are_no_models(command: list[str], content: bytes | None, said: str, folder: Path) -> None:
    if content is not None:
        (folder / "m.tm").write_bytes(content)
    before = sorted(folder.iterdir())
    args = ["m.tm" if word == "MODEL" else word for word in command]
    outcome = run(*args)
    assert (outcome.status, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith(said)
    as_json = run(*args, "--json")
    assert (as_json.status, as_json.stderr) == (1, outcome.stderr)
    assert as_json.json["error"]["code"] == said[6:12]
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("hostile_*.tm")))
def test_hostile_files(name: str) -> None:
    outcome = run("inspect", model(name))
    assert (outcome.status, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("error[TM100")
    assert not CANARY.exists()


def test_a_folder_is_no_model(folder: Path) -> None:
    outcome = run("inspect", ".")
    assert (outcome.status, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("error[TM1001]: cannot read the model file: Is a directory\n")


@pytest.mark.parametrize("debug", [False, True])
def test_unexpected_exceptions_are_defects(debug: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "to_onnx", raising(TypeError("no\nway")))
    outcome = run("onnx", CONV, "o.onnx", "--json", env={"TMCONVERT_DEBUG": "1"} if debug else {})
    assert outcome.status == 3
    assert outcome.json["error"]["code"] == "TM9000"
    assert (
        "error[TM9000]: TypeError: no\nway\n   = help: this is a defect of tmconvert: please"
        in outcome.stderr
    )
    assert ("Traceback (most recent call last)" in outcome.stderr) is debug
    assert ("set TMCONVERT_DEBUG=1 to see it" in outcome.stderr) is not debug


def test_verbose_shows_the_traceback_of_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [("pass", "fuse_conv_bn")]
    monkeypatch.setattr(api, "to_onnx", raising(GraphError("TM3011", "%x is used early", notes=notes)))
    outcome = run("onnx", CONV, "o.onnx", "-v")
    assert (outcome.status, outcome.stdout) == (3, "")
    assert outcome.stderr.startswith("Traceback (most recent call last)")
    assert "error[TM3011]: %x is used early\n   = pass: fuse_conv_bn\n   = help: this is" in outcome.stderr
    assert "Traceback" not in run("onnx", CONV, "o.onnx").stderr


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (InternalError("TM9001", "no type"), 3, "error[TM9001]: no type\n"),
        (EOFError("no more"), 3, "error[TM9000]: EOFError: no more\n"),
        (OSError(errno.EPERM, "no"), 3, "error[TM9000]: PermissionError: [Errno 1] no\n"),
        (RecursionError(), 3, "error[TM9000]: RecursionError\n"),
        (MemoryError(), 1, "error[TM5003]: there is not enough memory\n"),
        (KeyboardInterrupt(), 130, "\ninterrupted\n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_statuses(error: BaseException, status: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "to_onnx", raising(error))
    outcome = run("onnx", CONV, "o.onnx")
    assert (outcome.status, outcome.stdout) == (status, "")
    assert outcome.stderr.startswith(said)


INTERRUPTED = """
import os, signal
from tmconvert.cli import main
import tmconvert.serialize.atomic as atomic
import tmconvert.conversion as conversion
# the signal comes when the whole file lies beside its target
finish = atomic.StagedOutput.finish
def interrupted(self):
    finish(self)
    os.kill(os.getpid(), signal.SIGINT)
atomic.StagedOutput.finish = interrupted
main()
"""


def test_interrupt_leaves_nothing(folder: Path) -> None:
    (folder / "o.onnx").write_text("older")
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "onnx", str(CONV), "o.onnx"],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\ninterrupted\n")
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("o.onnx", "older")]


def test_a_closed_pipe_is_quiet() -> None:
    process = subprocess.Popen(
        command_line("explain"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(PYTHONUNBUFFERED="1"),
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(60), said) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_full_disk_behind_stdout() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command_line("explain"),
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        1,
        b"error[TM5001]: cannot write to stdout: No space left on device\n",
    )


def test_odd_names_in_an_ascii_locale(folder: Path) -> None:
    outcome = spawn("inspect", "mod\u00e8le\x1b[31m.tm", PYTHONIOENCODING="ascii")
    assert (outcome.status, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("error[TM1001]: ")
    assert "  --> mod\\xe8le\\x1b[31m.tm\n" in outcome.stderr
