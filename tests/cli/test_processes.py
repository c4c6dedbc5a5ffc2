"""Processes of ``convert --jobs``: signals that come at odd moments, and a server that is killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from multiprocessing import forkserver
from pathlib import Path

import pytest

from tests.source_tree import ROOT
from tmconvert.cli.batch import executors
from tmconvert.cli.batch.work import Conversion, ModelWork

pytestmark = pytest.mark.skipif(not executors._FORKS, reason="processes are not forked here")
MODEL = ROOT / "samples/digits.tm"


def server() -> int:
    number = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    assert number
    return int(number)


@pytest.fixture
def work(tmp_path: Path) -> list[ModelWork]:
    shutil.copy(MODEL, tmp_path)
    return [
        ModelWork("digits.tm", (Conversion("onnx", (f"{number}.onnx",)),), str(tmp_path))
        for number in range(3)
    ]


def test_work_of_a_killed_server_is_done_again(work: list[ModelWork]) -> None:
    messages: list[str] = []
    for _, outcome in executors.executed(work, jobs=2):
        if not messages:
            with contextlib.suppress(ProcessLookupError):
                os.kill(server(), signal.SIGKILL)
        messages.append(outcome.message)
    assert messages == [""] * 3


def test_work_of_a_server_that_is_killed_while_it_is_asked_to_fork_is_done_again(
    work: list[ModelWork],
) -> None:
    executors.prepare()
    stopped = server()
    os.kill(stopped, signal.SIGSTOP)
    threading.Timer(0.3, os.kill, (stopped, signal.SIGKILL)).start()
    assert [outcome.message for _, outcome in executors.executed(work, jobs=2)] == [""] * 3


PROGRAM = """
import os, signal, sys, time
from tmconvert import signals
from tmconvert.cli.batch import executors
with signals.ending_by_signals():
    try:
        executors.prepare()
        print(len(os.listdir(sys.argv[1])), flush=True)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)
    except KeyboardInterrupt:
        os.kill(os.getpid(), signal.SIGINT)  # the second one ends the process at once
        time.sleep(10)
"""


def test_no_folder_is_left_by_a_process_that_ends_at_once() -> None:
    with tempfile.TemporaryDirectory(prefix="tm") as folder:  # its name is short: names of sockets are
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, folder],
            env={**os.environ, "TMPDIR": folder},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (130, "1\n", "\ninterrupted\n")
        assert not list(Path(folder).iterdir())


def test_a_second_interrupt_while_python_ends_shows_no_traceback() -> None:
    program = """
import os, signal, time
from tmconvert import signals
try:
    with signals.ending_by_signals():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)
except KeyboardInterrupt:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "\ninterrupted\n")


def test_an_interrupt_is_not_lost_while_processes_start() -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('ignored')"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever is there in this process
    try:
        with pytest.raises(KeyboardInterrupt), executors._deaf_to_interrupts():
            assert subprocess.check_output([sys.executable, "-c", program], text=True) == "ignored\n"
            signal.raise_signal(signal.SIGINT)  # os.kill may reach a thread of a runtime
    finally:
        signal.signal(signal.SIGINT, before)
