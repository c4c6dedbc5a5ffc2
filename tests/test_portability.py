"""What Windows lacks is used behind a question whether it is there; conversions work without it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.runner import environment
from tests.source_tree import FILES, ROOT, nodes
from tmconvert.output import atomic
from tmconvert.output.atomic import atomic_output

# modules and names of Python that Windows does not have
MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}
NAMES = {
    *("os.fork", "os.forkpty", "os.getuid", "os.geteuid", "os.getpgid", "os.killpg", "os.mkfifo", "os.nice"),
    *("os.O_CLOEXEC", "os.O_DIRECTORY", "os.O_NOFOLLOW", "os.O_NONBLOCK", "os.posix_fallocate", "os.setsid"),
    *("os.sched_getaffinity", "os.sched_setaffinity", "os.sysconf", "os.uname", "os.wait"),
    "os.waitstatus_to_exitcode",
    *("signal.SIGALRM", "signal.SIGHUP", "signal.SIGKILL", "signal.SIGPIPE", "signal.SIGQUIT"),
    *("signal.alarm", "signal.pthread_kill", "signal.setitimer", "mmap.MAP_PRIVATE", "mmap.PROT_READ"),
}
# uses, and how they are guarded
GUARDED = {
    "cli/batch/executors.py signal.SIGKILL": "only where processes are forked",
    "convert/inspection/bench.py os.sched_getaffinity": "asked for by hasattr",
    "convert/inspection/bench_process.py os.sched_setaffinity": "only with a core, which bench.py has of it",
    "convert/inspection/bench_process.py resource": "its import may fail",
    "convert/output/atomic.py os.posix_fallocate": "asked for by hasattr",
    "convert/output/leftovers.py fcntl": "its import may fail",
    "convert/output/leftovers.py os.O_CLOEXEC": "only with fcntl",
    "convert/output/leftovers.py os.O_NOFOLLOW": "only with fcntl",
    "convert/output/leftovers.py os.O_NONBLOCK": "only with fcntl",
    **dict.fromkeys(
        [
            f"convert/reduction/fork_server.py {name}"
            for name in (
                "os.fork",
                "os.killpg",
                "os.setsid",
                "os.waitstatus_to_exitcode",
                "signal.SIGKILL",
            )
        ],
        "started where os has fork",
    ),
}
LAST_WORDS = {name.rpartition(".")[2] for name in NAMES}


def uses(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in MODULES)
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield str(node.module)
        if isinstance(node, ast.Attribute) and node.attr in LAST_WORDS and ast.unparse(node) in NAMES:
            yield ast.unparse(node)
        if isinstance(node, ast.keyword) and node.arg in ("preexec_fn", "pass_fds", "start_new_session"):
            yield str(node.arg)


def test_what_windows_lacks_is_guarded() -> None:
    found = {f"{path.relative_to(ROOT)} {name}" for path in FILES for name in uses(path)}
    assert found == set(GUARDED)


def test_texts_are_utf8() -> None:
    """The encoding of Windows is another one, unless it is named."""
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("read_text", "write_text")
        and not node.args
        and all(keyword.arg != "encoding" for keyword in node.keywords)
    ]
    assert wrong == []


# Python as Windows has it, for a conversion
WITHOUT = """
import os, shutil, signal, subprocess, sys
for module in {modules!r}:
    sys.modules[module] = None
shutil._use_fd_functions = False
for name in {names!r}:
    module, name = name.split(".")
    if hasattr(sys.modules.get(module), name):
        delattr(sys.modules[module], name)
from tmconvert.output import leftovers
assert leftovers.fcntl is None
open(leftovers.hidden_name("o", ".onnx"), "w").close()
old = leftovers.hidden_name("o", ".onnx")
open(old, "w").close()
os.utime(old, (1, 1))
from tmconvert.cli import main
sys.argv = ["tmconvert", *sys.argv[1:]]
main()
"""


@pytest.mark.slow
def test_a_conversion_without_what_windows_lacks(tmp_path: Path) -> None:
    needed = {
        "os.waitstatus_to_exitcode",
        "os.uname",
        "signal.SIGKILL",
        "os.getuid",
        "os.geteuid",
        "os.sysconf",
    }
    program = WITHOUT.format(modules=sorted(MODULES - {"posix"}), names=sorted(NAMES - needed))
    model = str(ROOT / "samples/digits_qat.tm")
    done = subprocess.run(
        [sys.executable, "-c", program, "onnx", model, "o.onnx", "--qparams", "o.json"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "verified in ONNX Runtime" in done.stderr + done.stdout
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[1:] == ["o.json", "o.onnx"]  # a file of a day ago is removed, a new one may be in use
    assert names[0].startswith(".o.tmconvert-")


@pytest.mark.slow
def test_a_rename_waits_for_mappings_on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []
    replace = Path.replace

    def refusing(self: Path, target: Path) -> Path:
        tries.append(1)
        if len(tries) < 4:
            raise PermissionError(13, "the file is mapped")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refusing)
    monkeypatch.setattr(atomic, "IS_WINDOWS", True)
    monkeypatch.setattr(atomic, "_PAUSE", 0.001)
    with atomic_output(tmp_path / "o.bin") as file:
        file.write(b"x")
    assert (tmp_path / "o.bin").read_bytes() == b"x" and len(tries) == 4
