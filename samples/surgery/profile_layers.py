"""Profiles a model: an Interpreter that measures the time of each call.

    python samples/surgery/profile_layers.py samples/digits.tm

Runs the reference kernels, whose times rank calls by their work; those of a runtime are others.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from typing import Any

import numpy as np

import tmconvert

RUNS = 5


class Profiler(tmconvert.Interpreter):
    """Adds up the seconds of each call, by the target of the call and the name of its result."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.seconds: dict[tuple[str, str], float] = defaultdict(float)
        self.inner = 0.0  # seconds in calls inside of the call that runs

    def run_node(self, node: Any) -> Any:
        outer, self.inner = self.inner, 0.0
        started = time.perf_counter()
        value = super().run_node(node)
        spent = time.perf_counter() - started
        if node.op.startswith("call_"):
            self.seconds[node.target, node.name] += spent - self.inner
        self.inner = outer + spent
        return value


def main(path: str) -> None:
    model = tmconvert.load(path)
    profiler = Profiler(model)
    inputs = [np.zeros(node.shape, node.dtype) for node in model.graph.inputs[1:]]
    for _ in range(RUNS):
        profiler.run(*inputs)
    total = sum(profiler.seconds.values())
    ranked = sorted(profiler.seconds.items(), key=lambda item: -item[1])
    print(f"{'call':<40} {'result':<24} {'ms':>8} {'%':>6}")
    for (target, name), seconds in ranked[:10]:
        print(f"{target:<40} {name:<24} {seconds / RUNS * 1e3:8.2f} {seconds / total * 100:6.1f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "samples/digits.tm")
