"""Bags of embeddings, and single steps of recurrent layers."""

from typing import Any

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import Sample, rows

ONNX = ("onnx",)
TABLE = Const(normal(0, 6, 3))
INDICES, OFFSETS = np.array([1, 2, 4, 5, 4, 3, 2, 0]), np.array([0, 2, 2, 8])
BAGS: list[dict[str, Any]] = [
    *({"mode": mode} for mode in (0, 1, 2)),
    *({"mode": mode, "padding_idx": 4, "include_last_offset": True} for mode in (0, 1, 2)),
]
WEIGHTS = normal(1, 8)


def step(gates: int, states: int) -> list[Sample]:
    x, hx = normal(1, 2, 5), [normal(2 + i, 2, 4) for i in range(states)]
    weights = [Const(normal(5, 4 * gates, 5)), Const(normal(6, 4 * gates, 4))]
    biases = [Const(normal(7, 4 * gates)), Const(normal(8, 4 * gates))]
    state = hx if states > 1 else hx[0]
    return [Sample([x, state, *weights, *rest], {}) for rest in (biases, [None, None])]


SAMPLES: dict[str, list[Sample]] = {
    **rows(__file__, "SAMPLES", globals()),
    **{f"aten::{name}_cell": step(1, 1) for name in ("rnn_tanh", "rnn_relu")},
}
