"""aten::softmax and aten::log_softmax over one axis, and aten::softmin."""

from __future__ import annotations

import math

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import SOURCE, LayoutRule, any_with
from tmconvert.symbolics.op import FLOATS, Op, Tensor, integer
from tmconvert.symbolics.results import normalized_axis
from tmconvert.symbolics.traits import AlongAxis, Bounded, Distribution, FixedRange, Trait


def _result(x: TensorType, dim: int) -> TensorType:
    normalized_axis(dim, x.rank)
    return x


def _layout(x: TensorType, dim: int) -> LayoutRule:
    return any_with(dim="axis") if x.rank == 4 else SOURCE


TRAITS: dict[str, list[Trait]] = {
    "softmax": [AlongAxis(), Distribution(), FixedRange(0, 1, in_int16=True), Bounded(0, 1)],
    "log_softmax": [FixedRange(-16, 0), Bounded(-math.inf, 0)],
    "softmin": [],
}
softmax, log_softmax, softmin = (
    Op(
        f"aten::{name}",
        args=[Tensor("x", FLOATS), integer("dim")],
        result=_result,
        layout=_layout,
        traits=traits,
    )
    for name, traits in TRAITS.items()
)
OPS = [softmax, log_softmax, softmin]


@softmax.reference
def softmax_ref(x: np.ndarray, dim: int) -> np.ndarray:
    """exp(x) over its sum along ``dim``, shifted by the maximum to avoid overflow."""
    powers = np.exp(x - x.max(dim, keepdims=True, initial=-np.inf))
    return powers / powers.sum(dim, keepdims=True)


@log_softmax.reference
def log_softmax_ref(x: np.ndarray, dim: int) -> np.ndarray:
    """The logarithm of softmax, without computing log(0)."""
    below = x - x.max(dim, keepdims=True, initial=-np.inf)
    return below - np.log(np.exp(below).sum(dim, keepdims=True))


softmin.reference(lambda x, dim: softmax_ref(-x, dim))
softmin.decompose(lambda g, x, dim: g.call("aten::softmax", g.call("aten::neg", x), dim))


def _swapped(rank: int, dim: int) -> list[int]:
    """Returns the permutation that exchanges ``dim`` with the last axis; it is its own inverse."""
    order = list(range(rank))
    order[dim], order[-1] = order[-1], order[dim]
    return order


def _add_symbolics(op: Op, onnx_type: str, tflite_type: str, **options: float) -> None:
    @op.onnx(since=13)  # one axis
    def softmax_onnx13(g, x, dim):
        return g.op(onnx_type, x, axis=dim % len(x.shape))

    @op.onnx(since=1)  # all axes from ``axis`` on as if they were one
    def softmax_onnx1(g, x, dim):
        dim %= len(x.shape)
        if all(extent == 1 for extent in x.shape[dim + 1 :]):
            return g.op(onnx_type, x, axis=dim)
        order = _swapped(len(x.shape), dim)
        moved = g.op("Transpose", x, perm=order, shape=[x.shape[axis] for axis in order])
        return g.op("Transpose", g.op(onnx_type, moved, axis=len(order) - 1), perm=order, shape=x.shape)

    @op.tflite()  # over the last axis only
    def softmax_tflite(g, x, dim):
        dim %= len(x.shape)
        if tflite_type == "SOFTMAX" and len(x.shape) == 1 and not is_symbolic(x.shape):
            # LiteRT 2.3's GPU takes the only axis for the batch
            row = g.op(tflite_type, idioms.tflite.reshaped(g, x, (1, *x.shape)), **options)
            return idioms.tflite.reshaped(g, row, x.shape)
        if dim == len(x.shape) - 1:
            return g.op(tflite_type, x, **options)
        order = _swapped(len(x.shape), dim)
        moved = idioms.tflite.transposed(g, x, order)
        return idioms.tflite.transposed(g, g.op(tflite_type, moved, **options), order)


_add_symbolics(softmax, "Softmax", "SOFTMAX", beta=1.0)
_add_symbolics(log_softmax, "LogSoftmax", "LOG_SOFTMAX")


softmax.caffe()(lambda g, x, dim: g.op("Softmax", x, axis=dim % len(x.shape)))


@log_softmax.decompose  # for Caffe
def log_softmax_difference(g, x, dim):
    return g.call("aten::sub", x, g.call("aten::logsumexp", x, [dim], True))
