"""The larger and the smaller of two int32 for ONNX operators that take none: before opset 12.

max(a, b) = (a + b + |a - b|) / 2, min(a, b) = (a + b - |a - b|) / 2, in int64, which holds each step.
No float that ONNX Runtime runs there holds every int32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .target_graph import Value

_OPERATORS = ("Max", "Min", "Relu", "Clip")


def chosen(
    g: Any, operator: str, inputs: Sequence[Value | None], options: dict[str, Any]
) -> Callable[[], Any] | None:
    """What appends ``operator`` on int32 by way of int64 to ``g``; None for what is not of that kind."""
    present = [value for value in inputs if value is not None]
    if operator not in _OPERATORS or any(value.dtype != np.int32 for value in present):
        return None
    if operator == "Clip":
        x, low, high = (*inputs, None, None)[:3]
        low = low if low is not None else _bound(g, options.get("min"))
        high = high if high is not None else _bound(g, options.get("max"))
        return lambda: _pair(g, "Sub", _pair(g, "Add", x, low), high)
    if operator == "Relu":
        return lambda: _pair(g, "Add", present[0], _bound(g, 0))
    side = "Add" if operator == "Max" else "Sub"
    return lambda: functools.reduce(lambda a, b: _pair(g, side, a, b), present)


def _bound(g: Any, value: Any) -> Value | None:
    return None if value is None else g.const(int(value), np.int32)


def _pair(g: Any, side: str, a: Any, b: Any) -> Any:
    """The larger (``side`` Add) or smaller (Sub) of int32 ``a`` and ``b``; None bounds nothing."""
    if a is None or b is None:
        return a
    wide_a, wide_b = g.cast(a, "int64"), g.cast(b, "int64")
    distance = g.op("Abs", g.op("Sub", wide_a, wide_b))
    doubled = g.op(side, g.op("Add", wide_a, wide_b), distance)
    return g.cast(g.op("Div", doubled, g.const(2, np.int64)), "int32")
