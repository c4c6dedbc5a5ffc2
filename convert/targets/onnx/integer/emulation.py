"""Emulates integer operators for ONNX opsets whose operators support only floats.

Before opset 12, for int32: max(a, b) = (a + b + |a - b|) / 2, min(a, b) = (a + b - |a - b|) / 2, in
int64, which holds each step. Before opset 9: products of matrices as sums of products of elements.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tmconvert.ir.types import name_of
from tmconvert.lowering.target_graph import Value
from tmconvert.targets.onnx.operators import spec


def emulate_integers(
    g: object, operator: str, inputs: Sequence[Value | None], options: dict[str, object]
) -> Callable[[], Any] | None:
    """Returns a function that emulates ``operator`` for ``g``; None for operators that need no emulation."""
    present = [value for value in inputs if value is not None]
    types = spec(operator).emulated
    if not types or any(name_of(value.dtype) not in types for value in present):
        return None
    if operator == "MatMul":
        return lambda: _matmul(g, *present)
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
    """Elementwise maximum (``side`` Add) or minimum (Sub) of int32 ``a`` and ``b``; None means unbounded."""
    if a is None or b is None:
        return a
    wide_a, wide_b = g.cast(a, "int64"), g.cast(b, "int64")
    distance = g.op("Abs", g.op("Sub", wide_a, wide_b))
    doubled = g.op(side, g.op("Add", wide_a, wide_b), distance)
    return g.cast(g.op("Div", doubled, g.const(2, np.int64)), "int32")


def _matmul(g: Any, a: Value, b: Value) -> Any:
    """[..., m, k] by [..., k, n], or vectors: the sum over k of [..., m, k, 1] x [..., 1, k, n].

    Sums are of int64, since ONNX Runtime's of int32 do not wrap around; it adds int64 as float64, which is
    exact for as many int32 as memory holds, and why int64 itself has no such way.
    """
    rank_a, rank_b, dtype = len(a.shape), len(b.shape), a.dtype.name
    a, b = g.cast(a, "int32"), g.cast(b, "int32")
    if rank_a > 1 and rank_b > 1:
        b = _unsqueeze(g, b, rank_b - 2)
    if rank_b > 1:
        a = _unsqueeze(g, a, rank_a)
    products = g.cast(g.op("Mul", a, b), "int64")
    axis = len(products.shape) - (1 if rank_b == 1 else 2)
    shape = (*products.shape[:axis], *products.shape[axis + 1 :])
    return g.cast(g.op("ReduceSum", products, axes=[axis], keepdims=0, shape=shape), dtype)


def _unsqueeze(g: Any, x: Value, axis: int) -> Any:
    return g.op("Unsqueeze", x, axes=[axis], shape=(*x.shape[:axis], 1, *x.shape[axis:]))
