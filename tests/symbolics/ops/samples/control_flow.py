"""Calls with graphs inside."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.symbolics.ops.harness import Const, normal
from tmconvert.ir import InternalGraph, TensorType
from tmconvert.ir.emitter import empty_body
from tmconvert.symbolics.registry import catalogue

from .common import Sample, X

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

SAMPLES = {
    "tm::cond": [
        *(
            Sample([pred, [SMALL, WIDE]], either(total, with_constant, SMALL, WIDE), BOTH)
            for pred in (YES, NO)
        ),
        Sample([NO, [SMALL, WIDE]], either(*SWAPPED, SMALL, WIDE), BOTH),
        Sample([YES, [SMALL, WIDE]], either(nested, total, SMALL, WIDE), BOTH),
    ],
    "tm::loop": [
        Sample([pred, [COUNT, SMALL, WIDE]], {"carried": 2, "step": body(step, COUNT, SMALL, WIDE)}, BOTH)
        for pred in (YES, NO)
    ],
    "tm::scan": [
        Sample([[WIDE[0], SMALL, WIDE]], {"carried": 1, "scanned": 1, "step": STEP}, (*BOTH, "caffe")),
        Sample([[WIDE[0], LONG, WIDE]], {"carried": 1, "scanned": 1, "step": STEP}, BOTH),
        Sample([[WIDE[0], LONG, Const(WIDE)]], {"carried": 1, "scanned": 1, "step": STEP}, BOTH),
        Sample([[SMALL, WIDE]], {"carried": 0, "scanned": 2, "step": body(total, SMALL[0], WIDE[0])}, BOTH),
    ],
    "tm::function": [
        Sample(
            [[SMALL, WIDE]],
            {
                "body": body(
                    lambda g, x, y: g.call("aten::leaky_relu", g.call("aten::add", x, y), 0.25), SMALL, WIDE
                ),
                "operators": operators(["Add", [0, 1], [], 1], ["LeakyRelu", [2], [["alpha", 0.25]], 1]),
                "results": [3],
            },
        )
    ],
}
