"""Runs runtimes that may abort in separate processes.

LiteRT, OpenCV and ONNX Runtime end their process on some files, by a failed assertion or an invalid memory
access. In a worker this becomes an error about the file, as does a run that takes longer than ``seconds_for``
allows. One worker serves all runs of this process. It is started when a conversion begins (``start``), so
that it has imported the runtime when the file is written, and ends with this process, however that ends.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tmconvert import errors
from tmconvert.errors import InternalError, UsageError, VerificationError
from tmconvert.ir.types import NamedArrays, Shapes

if TYPE_CHECKING:  # a worker is started before NumPy is imported here
    import numpy as np

    from tmconvert.verification.processes.messages import Message

_REPORTED = 8  # lines of what a runtime wrote before its end
_MOST_OUTPUT = 1 << 16  # bytes
_LIMIT = "TMCONVERT_RUNTIME_SECONDS"  # in the environment: a limit instead of the default one
_SECONDS, _BYTES_A_SECOND = 600.0, 1 << 18  # by default, and what a larger model has in addition


class Unavailable(Exception):
    """A worker process cannot be started; the file is run in this process."""


# Python's own start without ``site`` takes a third of the time. Hooks that find packages of a project that is
# being developed are of ``site``, so the package gets its place, and ``worker_process.py`` has a way back.
_START = """
import sys
sys.path[:] = {path}
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location({package!r}, {file!a}, submodule_search_locations={folders})
sys.modules[{package!r}] = package = module_from_spec(spec)
spec.loader.exec_module(package)
from {module} import main
main()
"""


def command(module: str) -> list[str]:
    """Returns a command that runs ``main`` of one of our modules, with this process's module path.

    ``python -m`` would look for them in the working folder first.
    """
    name = module.partition(".")[0]
    package = sys.modules[name]
    code = _START.format(
        path=ascii([entry for entry in sys.path if isinstance(entry, str)]),
        package=name,
        file=package.__file__,
        folders=ascii(list(package.__path__)),
        module=module,
    )
    return [sys.executable, "-S", "-c", code]


def environment() -> dict[str, str]:
    """Returns the variables for such a process: NumPy computes nothing there, so it starts no threads."""
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1"}


def seconds_for(size: int) -> float:
    """Returns the time limit for files and inputs of this many bytes. Raises UsageError TM6010."""
    given = os.environ.get(_LIMIT)
    if not given:
        return _SECONDS + size / _BYTES_A_SECOND
    with contextlib.suppress(ValueError):
        if 0 < float(given) <= threading.TIMEOUT_MAX:
            return float(given)
    raise UsageError("TM6010", f"{_LIMIT} must be a positive number of seconds, got {given!r}")


class Worker:
    """A process that answers requests; see ``worker_process.py``. Raises Unavailable."""

    def __init__(self) -> None:
        if not sys.executable or getattr(sys, "frozen", False):
            raise Unavailable
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._is_ready = False
        self._said_before = 0  # bytes that it wrote for earlier requests
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
                env=environment(),
            )
        except OSError as error:
            self._said.close()
            raise Unavailable from error

    @property
    def is_living(self) -> bool:
        return self._process.poll() is None

    def ask(self, header: dict[str, Any], arrays: Sequence[np.ndarray] = ()) -> Message:
        """Returns the result of a request.

        Raises the exception that the request raised in the worker, VerificationError TM4002 where the process
        ended on it or did not answer in time, and InternalError TM9000 where code of ours failed.
        """
        seconds = seconds_for(_size(header, arrays))
        with self._lock:
            try:
                with self._limited(seconds) as is_late:
                    answer = self._answer(header, arrays)
            except Unavailable:
                if is_late.is_set():
                    raise self._late(header["name"], seconds) from None
                raise
            except BaseException:  # Ctrl-C between a request and its answer, which nobody would read
                self.end()
                raise
            if answer is None and is_late.is_set():
                raise self._late(header["name"], seconds)
            if answer is None:
                raise self._ended(header["name"])
        if "error" in answer.header:
            raise _error(answer.header["error"])
        return answer

    def _answer(self, header: dict[str, object], arrays: Sequence[np.ndarray]) -> Message | None:
        """Reads an answer; None where the process ended."""
        try:
            self._await_ready()
            self._said_before = self._said.seek(0, os.SEEK_END)
            self._send(header, arrays)
            return self._read()
        except OSError:  # the pipe is closed
            return None

    @contextlib.contextmanager
    def _limited(self, seconds: float) -> Iterator[threading.Event]:
        """Kills the process after a time limit, and reports it by the event."""
        is_late, process = threading.Event(), self._process

        def kill() -> None:
            is_late.set()
            process.kill()

        timer = threading.Timer(seconds, kill)
        timer.daemon = True
        timer.start()
        try:
            yield is_late
        finally:
            timer.cancel()

    def begin(self, header: dict[str, object]) -> None:
        """Sends a request that is not answered."""
        with self._lock:
            self._send(header)

    def _send(self, header: dict[str, object], arrays: Sequence[np.ndarray] = ()) -> None:
        from tmconvert.verification.processes.messages import send_message

        assert self._process.stdin is not None
        send_message(self._process.stdin, header, arrays)  # type: ignore[arg-type]

    def _read(self) -> Message | None:
        from tmconvert.verification.processes.messages import read_message

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
        return VerificationError(
            "TM4002", (f"the process of {runtime} ended while it ran the file ({how})"), notes=notes
        )

    def _late(self, runtime: str, seconds: float) -> VerificationError:
        said = self._last_words()
        self.end()
        notes = [("it wrote", "\n".join(said))] if said else []
        notes.append(
            ("help", (f"{_LIMIT}=N in the environment allows N seconds; --no-verify skips verification"))
        )
        message = f"{runtime} did not finish within {seconds:.6g} s, and was terminated"
        return VerificationError("TM4002", message, notes=notes)

    def _last_words(self) -> list[str]:
        with contextlib.suppress(OSError, ValueError):
            size = self._said.seek(0, os.SEEK_END)
            self._said.seek(max(self._said_before, size - _MOST_OUTPUT))
            return self._said.read().decode("utf-8", "replace").strip().splitlines()[-_REPORTED:]
        return []

    def end(self) -> None:
        """Ends the process. A second call has no effect."""
        process = self._process
        if os.getpid() == self.owner and process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, self._said):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]


_worker: Worker | None = None
_starting = threading.Lock()


def _renew_lock() -> None:
    """In a fork: another thread of the parent may have held the lock, and does not exist here."""
    global _starting
    _starting = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def worker() -> Worker:
    """Returns the worker of this process, a new one where it has ended. Raises Unavailable."""
    global _worker
    with _starting:
        if _worker is not None and (_worker.owner != os.getpid() or not _worker.is_living):
            _worker.end()
            _worker = None
        if _worker is None:
            _worker = Worker()
            atexit.register(_worker.end)
        return _worker


def start_process() -> None:
    """Starts the worker before its runtime is known: its imports take as long as small conversions."""
    with contextlib.suppress(OSError, Unavailable):
        worker()


def start(runtime: object) -> None:
    """Makes the worker import the packages of ``runtime``, without waiting for it."""
    with contextlib.suppress(OSError, Unavailable):
        worker().begin({"do": "load", **about(runtime)})


def about(runtime: Any) -> dict[str, Any]:
    """Returns class and arguments from which the worker creates the runtime."""
    kind = type(runtime)
    made_by = f"{kind.__module__}:{kind.__qualname__}"
    return {"runtime": made_by, "settings": runtime.settings, "name": runtime.name}


def forget(runtime: object) -> None:
    """Makes the worker free what ``runtime`` keeps between runs, without waiting for it."""
    with _starting:
        living = _worker
    if living is not None and living.owner == os.getpid() and living.is_living:
        with contextlib.suppress(OSError):  # it ends now
            living.begin({"do": "forget", **about(runtime)})


def version(runtime: object) -> str:
    """Returns the runtime's version, as installed for the worker."""
    return str(worker().ask({"do": "version", **about(runtime)}).header["version"])


def run(
    runtime: object, paths: Sequence[Path], inputs: NamedArrays, outputs: Sequence[str], shapes: Shapes | None
) -> list[np.ndarray]:
    """Calls ``runtime.run_here`` in the worker."""
    header = {
        "do": "run",
        **about(runtime),
        "paths": _absolute(paths),
        "inputs": list(inputs),
        "outputs": list(outputs),
        "shapes": None if shapes is None else [list(map(int, shape)) for shape in shapes],
    }
    return worker().ask(header, list(inputs.values())).arrays


def observe(runtime: object, path: Path, inputs: NamedArrays) -> list[tuple[str, np.ndarray, list[float]]]:
    """Calls ``runtime.observe_here`` in the worker: names, arrays, and scale, low and high of each."""
    header = {"do": "observe", **about(runtime), "paths": _absolute([path]), "inputs": list(inputs)}
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


def _size(header: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> int:
    """Returns the bytes of files and arrays of a request."""
    size = sum(array.nbytes for array in arrays)
    for path in header.get("paths", ()):
        with contextlib.suppress(OSError):
            size += os.stat(path).st_size  # noqa: PTH116
    return size


def _error(report: Mapping[str, Any]) -> Exception:
    if report["kind"] == "MemoryError":
        return MemoryError()
    notes = [(label, text) for label, text in report["notes"]]
    if report["kind"] == "defect":
        defect = InternalError("TM9000", report["message"], notes=notes)
        defect.__cause__ = RuntimeError(report["cause"])
        return defect
    error = getattr(errors, report["kind"])(report["code"], report["message"], notes=notes)
    error.__cause__ = RuntimeError(report["cause"]) if "cause" in report else None
    return error
