"""What a confined thread may not do; each case runs in a process, since audit hooks stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tmconvert
from tests.cli.runner import environment

ROOT = Path(tmconvert.__file__).absolute().parents[1]
PROGRAM = """
import ctypes, json, os, pickle, socket, subprocess, sys, types
from tmconvert.frontends.torch.tracing.programs.confinement import Confined, Confinement
sys.path.insert(0, os.getcwd())
caught = ""
try:
    with Confinement("net"):
        try:
            CASE
        except Exception:  # as libraries do
            pass
except Confined as error:
    caught = str(error)
print(caught)
open("net/code.py").close()  # nothing is confined afterwards
"""


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("open('net/code.py')", "it would open net/code.py"),
        ("open(b'../elsewhere', 'w')", "it would open ../elsewhere"),
        ("import code_here", "it would execute"),
        ("sys.path.append('net'); import code", ""),  # the one of the standard library is first
        ("sys.path.insert(0, 'net'); import other", "it would execute"),
        ("exec(compile('1', os.path.abspath('net/code.py'), 'exec'))", "it would execute"),
        ("pickle.loads(pickle.dumps(types.SimpleNamespace))", "it would open a pickle"),
        ("socket.create_connection(('127.0.0.1', 9))", "it would open a connection"),
        ("socket.socket().connect(('127.0.0.1', 9))", "it would open a connection"),
        ("subprocess.run(['true'])", "it would start a program"),
        ("os.system('true')", "it would start a program"),
        ("ctypes.CDLL(os.path.abspath('net/library.so'))", "it would load the native library"),
        ("import xml.dom.minidom, sqlite3, numpy.ma", ""),
        ("exec('1'); open(os.__file__).close()", ""),
    ],
)
def test_what_is_confined(tmp_path: Path, case: str, reason: str) -> None:
    (tmp_path / "net").mkdir()
    for name in ("net/code.py", "net/other.py", "code_here.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "program.py").write_text(PROGRAM.replace("CASE", case))
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    assert done.stdout.startswith(reason) if reason else not done.stdout.strip()
