"""Measures the latency of written files by turns, each in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from tmconvert.errors import TmconvertError, UsageError, VerificationError
from tmconvert.inspection.given_inputs import Inputs
from tmconvert.inspection.timed_inputs import timed_inputs
from tmconvert.progress import begin
from tmconvert.targets.recognize import target_of_file
from tmconvert.verification.processes.worker import command

SLICE = 0.004  # seconds of a turn, which is shorter than the time that a busy machine gives a process
LEAST_RUNS = 10
PROCESSES = 5  # one after the other for each file of several: each has its own layout of memory


class BenchResult(NamedTuple):
    """The latency of a file in milliseconds.

    ``low`` and ``high`` bound the middle 80 % of the runs. ``ratio`` compares the file with the first one: it
    is the median over the processes of the median over the turns of one file's time by the other's.
    ``memory`` are the bytes that loading and running the file add to the process; None where the system does
    not tell. ``shapes`` are those of the inputs.
    """

    path: Path
    runtime: str
    threads: int
    runs: int
    median: float
    low: float
    high: float
    best: float
    ratio: float
    memory: int | None
    shapes: dict[str, tuple[int, ...]]

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "path": str(self.path), "unit": "ms"}


def bench_files(
    paths: Sequence[Path],
    threads: int,
    seconds: float,
    warm_up: int,
    inputs: Inputs | None = None,
    sizes: Mapping[str, int] | None = None,
    signature: str = "",
) -> list[BenchResult]:
    """Returns the latency of each file, or of its ``signature``, on these inputs, or on zeros, with open
    ``sizes`` by name.

    Raises LoadError, UsageError, VerificationError.
    """
    if not paths:
        raise UsageError("TM6002", "no files to measure were given")
    for name, number in (("threads", threads), ("seconds", seconds)):
        if not number > 0:
            raise UsageError("TM6002", f"{name} must be positive, got {number}")
    begin("measure")
    with TemporaryDirectory(prefix="tmconvert-") as folder:
        timed = [
            _Timed(path, threads, arrays, Path(folder, f"{number}.npz"), signature)
            for number, (path, arrays) in enumerate(
                zip(paths, timed_inputs(paths, inputs, sizes, signature), strict=True)
            )
        ]
        _measure(timed, seconds, warm_up)
    return [_result(each, timed[0], threads) for each in timed]


def _measure(timed: Sequence[_Timed], seconds: float, warm_up: int) -> None:
    """Runs the files by turns, in several processes one after the other."""
    parts = PROCESSES if len(timed) > 1 else 1
    for part in range(1, parts + 1):
        until = seconds * part / parts
        if all(each.is_done(until) for each in timed):  # of slow files
            continue
        with ExitStack() as stack:
            for each in timed:
                stack.enter_context(each).prepare(warm_up)
            _take_turns(timed, until)
            for each in timed:
                each.measure_memory()


def _take_turns(timed: Sequence[_Timed], seconds: float) -> None:
    """Runs the files by turns until each was run for so long."""
    cores, turn = _cores(), 0
    while not all(each.is_done(seconds) for each in timed):
        order = [*timed[turn % len(timed) :], *timed[: turn % len(timed)]]
        core = cores[turn % len(cores)] if timed[0].threads == 1 and cores else None
        for each in order:
            each.measure(core)
        turn += 1


def _cores() -> list[int]:
    """Returns the cores that processes may be bound to; none where the system does not bind any."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _result(timed: _Timed, first: _Timed, threads: int) -> BenchResult:
    """Returns the statistics of a file."""
    times = np.concatenate(timed.turns) / 1e6
    low, median, high = (float(np.percentile(times, each)) for each in (10, 50, 90))
    return BenchResult(
        timed.path,
        timed.runtime,
        threads,
        len(times),
        median,
        low,
        high,
        float(times.min()),
        _ratio(timed, first),
        timed.memory,
        timed.shapes,
    )


def _ratio(timed: _Timed, first: _Timed) -> float:
    """Returns the time of a file by that of another, which ran in the same turns.

    The two turns of a few milliseconds on the same core meet the same load and the same clock rate, so their
    quotient is stable where the times are not. Half of the turns have to be disturbed before the median of a
    process moves, and half of the processes before the result does. The fastest runs are less stable: they
    are of the few moments in which the processor is fastest, which one file may meet more often.
    """
    quotients = [
        np.median(ours) / np.median(theirs) for ours, theirs in zip(timed.turns, first.turns, strict=True)
    ]
    bounds = [*first.starts[1:], len(quotients)]
    return float(np.median([np.median(quotients[i:j]) for i, j in zip(first.starts, bounds, strict=True)]))


class _Timed:
    """A file and its times. In its context, a process has loaded it and runs it on request."""

    def __init__(
        self, path: Path, threads: int, inputs: Mapping[str, np.ndarray], stored: Path, signature: str = ""
    ) -> None:
        """``stored`` is where the process finds the inputs."""
        arrays: dict[str, Any] = {f"in{number}": array for number, array in enumerate(inputs.values())}
        np.savez(stored, names=list(inputs), **arrays)
        self.shapes = {name: array.shape for name, array in inputs.items()}
        self.inputs, self.signature = str(stored), signature
        self.path, self.target, self.threads = path, target_of_file(path), threads
        self.runtime, self.runs, self.spent, self.count = "", 0, 0.0, 1
        self.turns = list[list[int]]()  # nanoseconds of the runs of each turn
        self.starts = list[int]()  # the first turn of each process
        self.memory: int | None = None
        self._process: Any = None

    def __enter__(self) -> _Timed:
        self._process = subprocess.Popen(
            command("tmconvert.inspection.bench_process"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def prepare(self, warm_up: int) -> None:
        """Loads the file and runs it ``warm_up`` times, at least once."""
        loaded = self._ask(
            do="load",
            target=self.target.name,
            path=str(self.path.absolute()),
            threads=self.threads,
            inputs=self.inputs,
            signature=self.signature,
        )
        self.runtime = loaded["runtime"]
        taken = self._ask(do="run", count=max(warm_up, 1))["times"]
        self.count = max(1, int(SLICE * 1e9 / max(min(taken), 1)))
        self.starts.append(len(self.turns))

    def measure(self, core: int | None) -> None:
        """Runs the file for one turn, on this core of the processor; None leaves it to the system."""
        taken = self._ask(do="run", count=self.count, core=core)["times"]
        self.turns.append(taken)
        self.runs += len(taken)
        self.spent += sum(taken)

    def is_done(self, seconds: float) -> bool:
        """Whether the file was run for so long, and often enough."""
        return self.spent >= seconds * 1e9 and self.runs >= LEAST_RUNS

    def measure_memory(self) -> None:
        found = self._ask(do="memory")["bytes"]
        self.memory = None if found is None else int(found)

    def _ask(self, **request: Any) -> dict[str, Any]:
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            line = b""
        if not line:
            raise VerificationError("TM4002", f"the process that ran {self.path} ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise _error(answer["error"])
        return answer


def _error(report: dict[str, Any]) -> TmconvertError:
    import tmconvert.errors as errors

    kind = getattr(errors, report["kind"], VerificationError)
    notes = [tuple(note) for note in report["notes"]]
    made: TmconvertError = kind(report["code"], report["message"], notes=notes)
    return made
