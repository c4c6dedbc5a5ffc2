"""Runs runtimes that may abort in a process of their own.

LiteRT and OpenCV end their process on some files, by an assertion or a wild access. In a worker that is an
error of the file. One worker serves all runs of this process. It is started when a conversion begins
(``start``), so that it has imported the runtime when the file is written, and ends with this process, however
that ends.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..errors import VerificationError
from .messages import Message, read_message, send_message

_TOLD = 8  # lines of what a runtime wrote before its end
_MOST_TOLD = 1 << 16  # bytes


class Unavailable(Exception):
    """There can be no worker here; the file is run in this process."""


def command(module: str) -> list[str]:
    """A command that runs ``main`` of a module of ours, with this process's path of modules.

    ``python -m`` would look for them in the working folder first.
    """
    path = json.dumps([entry for entry in sys.path if isinstance(entry, str)])
    code = f"import sys; sys.path[:] = {path}; from {module} import main; main()"
    return [sys.executable, "-c", code]


class Worker:
    """A process that answers requests; see ``worker_process.py``. Raises Unavailable."""

    def __init__(self) -> None:
        if not sys.executable or getattr(sys, "frozen", False):
            raise Unavailable
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._is_ready = False
        try:
            self._said: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        except OSError as error:
            raise Unavailable from error
        try:
            self._process = subprocess.Popen(
                command(f"{__package__}.worker_process"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # NumPy computes nothing there
            )
        except OSError as error:
            self._said.close()
            raise Unavailable from error

    @property
    def is_living(self) -> bool:
        return self._process.poll() is None

    def ask(self, header: dict[str, Any], arrays: Sequence[np.ndarray] = ()) -> Message:
        """The answer to a request.

        Raises what the request raised there, and VerificationError TM4002 where the process ended on it.
        """
        with self._lock:
            try:
                self._await_ready()
                self._send(header, arrays)
                answer = self._read()
            except OSError:  # the pipe is closed
                answer = None
            except BaseException:  # Ctrl-C between a request and its answer, which nobody would read
                self.end()
                raise
            if answer is None:
                raise self._ended(header["runtime"])
        if "error" in answer.header:
            raise _error(answer.header["error"])
        return answer

    def begin(self, header: dict[str, Any]) -> None:
        """Sends what is not answered."""
        with self._lock:
            self._send(header)

    def _send(self, header: dict[str, Any], arrays: Sequence[np.ndarray] = ()) -> None:
        assert self._process.stdin is not None
        send_message(self._process.stdin, header, arrays)  # type: ignore[arg-type]

    def _read(self) -> Message | None:
        assert self._process.stdout is not None
        return read_message(self._process.stdout)  # type: ignore[arg-type]

    def _await_ready(self) -> None:
        if not self._is_ready:
            if self._read() is None:
                self.end()
                raise Unavailable
            self._is_ready = True

    def _ended(self, runtime: str) -> VerificationError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        how, said = _how(self._process.returncode), self._last_words()
        self.end()
        notes = [("it wrote", "\n".join(said))] if said else []
        notes.append(("help", "the file was run in another process; please report this as a defect"))
        return VerificationError("TM4002", f"{runtime} ended its process on the file ({how})", notes=notes)

    def _last_words(self) -> list[str]:
        with contextlib.suppress(OSError, ValueError):
            size = self._said.seek(0, os.SEEK_END)
            self._said.seek(max(0, size - _MOST_TOLD))
            return self._said.read().decode("utf-8", "replace").strip().splitlines()[-_TOLD:]
        return []

    def end(self) -> None:
        """Ends the process. Does nothing the second time."""
        process = self._process
        if os.getpid() == self.owner and process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, self._said):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]


_worker: Worker | None = None
_starting = threading.Lock()


def worker() -> Worker:
    """The worker of this process, a new one where it has ended. Raises Unavailable."""
    global _worker
    with _starting:
        if _worker is not None and (_worker.owner != os.getpid() or not _worker.is_living):
            _worker.end()
            _worker = None
        if _worker is None:
            _worker = Worker()
            atexit.register(_worker.end)
        return _worker


def start(runtime: Any) -> None:
    """Has the worker import what ``runtime`` needs, without waiting for it."""
    with contextlib.suppress(OSError, Unavailable):
        worker().begin({"do": "load", **about(runtime)})


def about(runtime: Any) -> dict[str, Any]:
    return {"runtime": runtime.name, "delegates": getattr(runtime, "delegates", True)}


def version(runtime: Any) -> str:
    """The runtime's version, as the worker has it."""
    return str(worker().ask({"do": "version", **about(runtime)}).header["version"])


def run(
    runtime: Any,
    paths: Sequence[Path],
    inputs: Mapping[str, np.ndarray],
    outputs: Sequence[str],
    shapes: Sequence[Sequence[int]] | None,
) -> list[np.ndarray]:
    """``runtime.run_here`` in the worker."""
    header = {
        "do": "run",
        **about(runtime),
        "paths": _absolute(paths),
        "inputs": list(inputs),
        "outputs": list(outputs),
        "shapes": None if shapes is None else [list(map(int, shape)) for shape in shapes],
    }
    return worker().ask(header, list(inputs.values())).arrays


def observe(path: Path, inputs: Mapping[str, np.ndarray]) -> list[tuple[str, np.ndarray, list[float]]]:
    """``observed.observed_here`` in the worker: names, arrays, and the step, low and high of each."""
    header = {
        "do": "observe",
        "runtime": "LiteRT",
        "paths": _absolute([path]),
        "inputs": list(inputs),
    }
    answer = worker().ask(header, list(inputs.values()))
    return [
        (name, array, numbers)
        for (name, *numbers), array in zip(answer.header["observed"], answer.arrays, strict=True)
    ]


def _absolute(paths: Sequence[Path]) -> list[str]:
    return [os.path.abspath(path) for path in paths]  # noqa: PTH100 (resolve would follow links)


def _how(status: int | None) -> str:
    if status is None:
        return "it does not answer"
    if status >= 0:
        return f"exit status {status:#x}" if status > 255 else f"exit status {status}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-status).name
    return f"signal {-status}"


def _error(told: Mapping[str, Any]) -> Exception:
    if told["kind"] == "MemoryError":
        return MemoryError()
    from . import runtimes

    kinds = {each.__name__: each for each in (runtimes.RuntimeTooOld, runtimes.UnknownOperator)}
    kind = kinds.get(told["kind"], VerificationError)
    error = kind(told["code"], told["message"], notes=[(label, text) for label, text in told["notes"]])
    error.__cause__ = RuntimeError(told["cause"]) if "cause" in told else None
    return error
