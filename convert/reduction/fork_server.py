"""Runs commands of tmconvert in forks of a process that has imported what they need, each with a time limit.

A run takes a fraction of the time of a new interpreter, and is a process of its own all the same.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

IMPORTS = ("tmconvert.cli.main", "tmconvert.conversion.pipeline", "onnx")
_PAUSE = 0.005  # seconds between two looks at a run


class ForkServer:
    """The client; ``run`` returns the exit status and the output, and -1 for a run beyond its time limit.

    >>> ForkServer(()).run(["--version"], 10.0, None)  # doctest: +SKIP
    (0, 'tmconvert 0.1.0')
    """

    def __init__(self, imports: Sequence[str]) -> None:
        words = [sys.executable, "-m", __name__, *IMPORTS, *imports]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def run(self, words: Sequence[str], seconds: float, folder: Path | None) -> tuple[int, str]:
        request = {"words": list(words), "seconds": seconds, "folder": str(folder or Path.cwd())}
        streams = self._process.stdin, self._process.stdout
        assert streams[0] is not None and streams[1] is not None
        streams[0].write(json.dumps(request).encode() + b"\n")
        streams[0].flush()
        reply = json.loads(streams[1].readline())
        return reply["status"], reply["output"]

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()


def _serve(imports: Sequence[str]) -> None:
    for each in imports:
        with suppress(ImportError):  # then the command states what is missing
            importlib.import_module(each)
    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        with tempfile.TemporaryFile() as output:
            number = os.fork()
            if number == 0:
                _run(request["words"], request["folder"], output.fileno())
            status = _wait(number, request["seconds"])
            output.seek(0)
            text = output.read().decode("utf-8", "replace")
        os.write(out, json.dumps({"status": status, "output": text}).encode() + b"\n")


def _run(words: Sequence[str], folder: str, output: int) -> None:
    """Runs a command in the fork, and ends it."""
    status = 70
    try:
        os.setsid()
        for stream in (1, 2):
            os.dup2(output, stream)
        os.chdir(folder)
        sys.argv = ["tmconvert", *words]
        runpy.run_module("tmconvert", run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _wait(number: int, seconds: float) -> int:
    """Returns the exit status of a process; ends it after its time."""
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(number, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            with suppress(ProcessLookupError):
                os.killpg(number, signal.SIGKILL)
            os.waitpid(number, 0)
            return TIMED_OUT
        time.sleep(_PAUSE)


TIMED_OUT = -1000

if __name__ == "__main__":
    _serve(sys.argv[1:])
