"""aten::softmax over one axis."""

from __future__ import annotations

import numpy as np

from ...ir.types import TensorType
from ..idioms import tflite
from ..layouts import SOURCE, LayoutRule, any_with
from ..op import FLOATS, Op, Tensor, integer
from ..results import normalized_axis


def _result(x: TensorType, dim: int) -> TensorType:
    normalized_axis(dim, x.rank)
    return x


def _layout(x: TensorType, dim: int) -> LayoutRule:
    return any_with(dim="axis") if x.rank == 4 else SOURCE


softmax = Op("aten::softmax", args=[Tensor("x", FLOATS), integer("dim")], result=_result, layout=_layout)


@softmax.reference
def softmax_ref(x: np.ndarray, dim: int) -> np.ndarray:
    """exp(x) over its sum along ``dim``, from the largest element down so that nothing overflows."""
    powers = np.exp(x - x.max(dim, keepdims=True))
    return powers / powers.sum(dim, keepdims=True)


def _swapped(rank: int, dim: int) -> list[int]:
    """The order of axes that swaps ``dim`` with the last one; its own inverse."""
    order = list(range(rank))
    order[dim], order[-1] = order[-1], order[dim]
    return order


@softmax.onnx(since=13)  # one axis
def softmax_onnx13(g, x, dim):
    return g.op("Softmax", x, axis=dim % len(x.shape))


@softmax.onnx(since=1)  # all axes from ``axis`` on as if they were one
def softmax_onnx1(g, x, dim):
    dim %= len(x.shape)
    if all(extent == 1 for extent in x.shape[dim + 1 :]):
        return g.op("Softmax", x, axis=dim)
    order = _swapped(len(x.shape), dim)
    moved = g.op("Transpose", x, perm=order, shape=[x.shape[axis] for axis in order])
    return g.op("Transpose", g.op("Softmax", moved, axis=len(order) - 1), perm=order, shape=x.shape)


@softmax.tflite()  # over the last axis only
def softmax_tflite(g, x, dim):
    dim %= len(x.shape)
    if dim == len(x.shape) - 1:
        return g.op("SOFTMAX", x, beta=1.0)
    order = _swapped(len(x.shape), dim)
    return tflite.transposed(g, g.op("SOFTMAX", tflite.transposed(g, x, order), beta=1.0), order)


@softmax.caffe()
def softmax_caffe(g, x, dim):
    return g.op("Softmax", x, axis=dim % len(x.shape))
