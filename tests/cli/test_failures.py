"""Whatever goes wrong: the message, the streams and the exit status."""

from __future__ import annotations

import errno
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.cli.runner import DATA, command_line, environment, model, run, spawn
from tmconvert import api_convert
from tmconvert.errors import GraphError, InternalError

CONV = model("op_s_conv_bn_relu")
ROOT = Path(__file__).parents[2]
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
        (
            b"",
            "error[TM1002]: this is not a model file that tmconvert reads\n  --> m.tm\n   = it is: empty\n",
        ),
        (PNG, "error[TM1002]: this is not a model file that tmconvert reads\n  --> m.tm\n"),
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
    assert outcome.stderr.startswith("error[TM1001]: cannot read the model file: it is a directory\n")


@pytest.mark.parametrize("debug", [False, True])
def test_unexpected_exceptions_are_defects(debug: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_convert, "to_onnx", raising(TypeError("no\nway")))
    outcome = run("onnx", CONV, "o.onnx", "--json", env={"TMCONVERT_DEBUG": "1"} if debug else {})
    assert outcome.status == 3
    assert outcome.json["error"]["code"] == "TM9000"
    assert (
        "error[TM9000]: TypeError: no\n  way\n   = help: this is a defect of tmconvert: please"
        in outcome.stderr
    )
    assert ("Traceback (most recent call last)" in outcome.stderr) is debug
    assert ("set TMCONVERT_DEBUG=1 to see it" in outcome.stderr) is not debug


def test_verbose_shows_the_traceback_of_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [("pass", "fuse_conv_bn")]
    monkeypatch.setattr(
        api_convert, "to_onnx", raising(GraphError("TM3011", "%x is used early", notes=notes))
    )
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
    monkeypatch.setattr(api_convert, "to_onnx", raising(error))
    outcome = run("onnx", CONV, "o.onnx")
    assert (outcome.status, outcome.stdout) == (status, "")
    assert outcome.stderr.startswith(said)


ENDED = """
import os, sys
from tmconvert.__main__ import main
import tmconvert.output.atomic as atomic
# the signal comes when the whole file lies beside its target
finish, number = atomic.StagedOutput.finish, int(sys.argv.pop(1))
def ended(self):
    finish(self)
    os.kill(os.getpid(), number)
atomic.StagedOutput.finish = ended
main()
"""
IMPORTING = """
import os, sys
from pathlib import Path
# the signal comes while a module is imported, which makes an ImportError of the exception
number, folder = int(sys.argv.pop(1)), Path("modules")
folder.mkdir()
(folder / "onnx.py").write_text(f"import os\\ntry:\\n  os.kill({os.getpid()}, {number})\\n"
    "except BaseException as error:\\n  raise ImportError('no') from error")
sys.path.insert(0, str(folder))
from tmconvert.__main__ import main
main()
"""
SIGNALS = {signal.SIGINT: "interrupted"} | {
    number: f"ended by {number.name}" for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
}


def ended(script: str, number: int, *args: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, str(int(number)), *map(str, args)],
        capture_output=True,
        text=True,
        env=environment(**env),
        timeout=60,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("script", [ENDED, IMPORTING], ids=["writing", "importing"])
def test_a_signal_leaves_nothing(script: str, number: signal.Signals, folder: Path) -> None:
    (folder / "temporary").mkdir()
    (folder / "o.onnx").write_text("older")
    env = {"TMPDIR": str(folder / "temporary"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = ended(script, number, "onnx", CONV, "o.onnx", **env)
    assert (done.returncode, done.stdout) == (128 + number, "")
    assert done.stderr.strip() == SIGNALS[number]
    assert (folder / "o.onnx").read_text() == "older"
    left = {path.name for path in folder.rglob("*")}
    assert left - {"modules", "onnx.py"} == {"o.onnx", "temporary"}


@pytest.mark.slow
def test_an_ignored_hangup_stays_ignored(folder: Path) -> None:
    """As under ``nohup``."""
    ignoring = f"import signal\nsignal.signal({int(signal.SIGHUP)}, signal.SIG_IGN)\n{ENDED}"
    done = ended(ignoring, signal.SIGHUP, "onnx", CONV, "o.onnx", "--no-verify")
    assert (done.returncode, [path.name for path in folder.iterdir()]) == (0, ["o.onnx"])


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


def shell(line: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    command = (
        shlex.join(command_line())[: -len("main()'")].replace("cli import", "__main__ import") + "main()'"
    )
    return subprocess.run(
        ["bash", "-c", line.replace("tmconvert", command)],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env=environment(PYTHONPATH=str(ROOT), **env),  # also where the working folder was removed
        timeout=100,
        check=False,
    )


NAME = "$'b\\xff.onnx'"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        (
            "tmconvert onnx {} o.onnx --no-verify >&-",
            1,
            "error[TM5001]: cannot write to stdout: it is closed",
        ),
        ("tmconvert onnx {} o.onnx --no-verify 2>&-", 0, "o.onnx  ("),
        ("tmconvert onnx {} o.onnx --no-verify 2>/dev/full", 0, "o.onnx  ("),
        ("tmconvert onnx {} o.onnx --no-verify 0<&-", 0, "o.onnx  ("),
        (f"tmconvert onnx {{}} {NAME}", 1, "the name is not UTF-8, which runtimes require"),
        ("mkdir g; cd g; rmdir ../g; tmconvert onnx {} o.onnx", 1, "error[TM5001]: "),
        ("tmconvert onnx {} -", 2, "- is not a file, and nothing is written to stdout"),
        ("tmconvert onnx {} o.tflite", 2, "o.tflite has the suffix .tflite; that of ONNX files is .onnx"),
    ],
)
def test_faults_of_the_environment(line: str, status: int, said: str, folder: Path) -> None:
    done = shell(line.format(shlex.quote(str(CONV))), folder)
    assert (done.returncode, said in done.stdout + done.stderr) == (status, True), done
    assert "defect" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_full_disk_behind_json_is_told_once(folder: Path) -> None:
    done = shell(f"tmconvert onnx {CONV} o.onnx --no-verify --json > /dev/full", folder)
    assert (done.returncode, done.stderr.count("error[")) == (1, 1)


def test_names_cannot_forge_lines(folder: Path) -> None:
    outcome = run("inspect", "a\nerror[TM9000]: forged")
    assert outcome.stderr.splitlines()[1] == "  --> a\\nerror[TM9000]: forged"
    outcome = run("onnx", CONV, "none/a\nerror[TM9000]: forged")
    assert "\nerror" not in outcome.stderr
    outcome = run("onnx", CONV, "a\nok: forged", "--no-verify")
    assert outcome.stdout.startswith("a\\nok: forged  (")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ImportError("libx.so: failed to map segment from shared object"), "TM5003"),
        (OSError(errno.ENOMEM, "no"), "TM5003"),
        (OSError(errno.ENOSPC, "no"), "TM5001"),
        (OSError(errno.EMFILE, "no"), "TM5001"),
        (SystemExit(0), "TM1023"),
    ],
)
def test_faults_of_the_machine_are_no_defects(
    error: BaseException, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_convert, "to_onnx", raising(error))
    outcome = run("onnx", CONV, "o.onnx")
    assert outcome.status == 1
    assert outcome.stderr.startswith(f"error[{code}]: ")
