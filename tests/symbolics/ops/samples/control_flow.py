"""Calls with graphs inside."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.symbolics.ops.harness import normal
from tmconvert.ir import InternalGraph, TensorType
from tmconvert.ir.emitter import empty_body
from tmconvert.symbolics.registry import catalogue

from .common import X, rows

SMALL, WIDE = X[0, 0], np.abs(X[0, 0]) + 1
YES, NO = np.array(True), np.array(False)


def body(build: Callable[..., Any], *arrays: np.ndarray) -> InternalGraph:
    """The graph of a function of an emitter and tensors like ``arrays``."""
    g, inputs = empty_body("body", [TensorType(array.dtype, array.shape) for array in arrays], catalogue())
    result = build(g, *inputs)
    g.graph.set_result(tuple(result) if isinstance(result, (list, tuple)) else (result,))
    return g.graph


def total(g: Any, x: Any, y: Any) -> Any:
    return g.call("aten::add", g.call("aten::relu", x), y)


def either(then: Any, otherwise: Any, *arrays: np.ndarray) -> dict[str, Any]:
    return {"then": body(then, *arrays), "otherwise": body(otherwise, *arrays)}


def with_constant(g: Any, x: Any, y: Any) -> Any:
    return g.call("aten::mul", x, g.constant(np.full((1, 7), 3, np.float32)))


def nested(g: Any, x: Any, y: Any) -> Any:
    positive = g.call("aten::gt", g.call("aten::sum", x, [0, 1], False), g.constant(0, "float32"))
    return g.call("tm::cond", positive, [x, y], **either(total, with_constant, SMALL, WIDE))


def step(g: Any, count: Any, x: Any, y: Any) -> Any:
    later = g.call("aten::add", count, g.constant(1, "int32"))
    return g.call("aten::lt", later, g.constant(4, "int32")), later, g.call("aten::add", x, y)


def operators(*rows: Any) -> list[Any]:
    return [list(row) for row in rows]


COUNT = np.array(0, np.int32)
BOTH = ("onnx", "tflite")
SWAPPED = (lambda g, x, y: (y, x), lambda g, x, y: (x, y))


def summed(g: Any, carry: Any, row: Any, around: Any) -> Any:
    after = g.call("aten::add", carry, row)
    return after, g.call("aten::mul", after, g.call("aten::sum", around, [0], False))


STEP = body(summed, WIDE[0], SMALL[0], WIDE)
LONG = normal(30, 15, 7)

SAMPLES = rows(__file__, "SAMPLES", globals())
