"""The process of ``bench.py``: loads a file in its runtime and times runs, by lines of JSON."""

from __future__ import annotations

import json
import os
import site
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.errors import TmconvertError, VerificationError


def main() -> None:
    """Answers requests until stdin ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries may not get among the answers
    site.main()  # hooks that find the packages of a project that is being developed
    state = _State()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            answer = getattr(state, request.pop("do"))(**request)
        except TmconvertError as error:
            answer = {"error": _report(error)}
        except Exception as error:  # each runtime has its own
            refused = VerificationError("TM4002", f"the runtime rejected the file: {error}")
            answer = {"error": _report(refused)}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _report(error: TmconvertError) -> dict[str, Any]:
    return {
        "kind": type(error).__name__,
        "code": error.code,
        "message": error.message,
        "notes": [list(note) for note in error.notes],
    }


class _State:
    """The loaded file."""

    def __init__(self) -> None:
        self._call: Callable[[], object] | None = None
        self._before: int | None = None

    def load(self, target: str, path: str, threads: int, inputs: str, signature: str) -> dict[str, Any]:
        from tmconvert.inspection.run_file import no_runtime
        from tmconvert.targets.registry import target_named

        known = target_named(target)
        runtime = known.runtime(Path(path))
        if runtime is None:
            raise no_runtime(known)
        load = getattr(runtime, "load", None)
        if load is not None:
            load()
        with np.load(inputs) as archive:
            fed = {name: archive[f"in{number}"] for number, name in enumerate(archive["names"].tolist())}
        self._before = _peak()
        self._call = known.signature_run(Path(path), signature, threads, fed)
        name = runtime.name
        version = getattr(runtime, "version_here", None) or runtime.version
        return {"runtime": f"{name} {version}"}

    def run(self, count: int, core: int | None = None) -> dict[str, Any]:
        assert self._call is not None
        if core is not None:
            os.sched_setaffinity(0, [core])
        times = []
        for _ in range(count):
            start = time.perf_counter_ns()
            self._call()
            times.append(time.perf_counter_ns() - start)
        return {"times": times}

    def memory(self) -> dict[str, Any]:
        now = _peak()
        is_known = now is not None and self._before is not None
        return {"bytes": now - self._before if is_known else None}  # type: ignore[operator]


def _peak() -> int | None:
    """Returns the most bytes that the process has had in memory; None on Windows."""
    try:
        import resource
    except ImportError:
        return None
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(used if sys.platform == "darwin" else used * 1024)
