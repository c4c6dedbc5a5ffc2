"""aten::argmax and aten::argmin: the index of the first extreme element along one axis.

The result is int32, the index type of our sources and of TFLite; ATen's is int64.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import SOURCE, LayoutRule, any_with
from tmconvert.symbolics.op import NUMBERS, Op, Tensor, boolean, integer
from tmconvert.symbolics.ops.reductions.sort import topk_tflite
from tmconvert.symbolics.results import normalized_axis
from tmconvert.symbolics.traits import RanksElements

Array = np.ndarray

INT32 = np.dtype(np.int32)
ONNX_INT32 = 6  # TensorProto.DataType


def _result(x: TensorType, dim: int, keepdim: bool) -> TensorType:
    axis = normalized_axis(dim, x.rank)
    if x.shape[axis] == 0:
        raise ValueError(f"axis {dim} of {x} has no elements: its size is 0")
    return TensorType(INT32, (*x.shape[:axis], *[1] * keepdim, *x.shape[axis + 1 :]))


def _layout(x: TensorType, dim: int, keepdim: bool) -> LayoutRule:
    """Supports any layout in which channels-last keeps the order of the remaining axes."""
    return any_with(dim="axis") if x.rank == 4 and (keepdim or dim % 4 == 1) else SOURCE


def _op(name: str, kernel: Callable[..., Array], onnx_type: str, tflite_type: str) -> Op:
    op = Op(
        f"aten::{name}",
        args=[Tensor("x", NUMBERS), integer("dim"), boolean("keepdim", False)],
        result=_result,
        layout=_layout,
        traits=[RanksElements()],
    )

    @op.reference
    def arg_reduce_ref(x: Array, dim: int, keepdim: bool) -> Array:
        return kernel(x, axis=dim, keepdims=keepdim).astype(INT32)

    @op.onnx(since=6)
    def arg_reduce_onnx6(g, x, dim, keepdim):
        shape = g.result_types[0].shape
        index = g.op(
            onnx_type, x, axis=dim % len(x.shape), keepdims=int(keepdim), shape=shape, dtype=np.int64
        )
        return g.op("Cast", index, to=ONNX_INT32, dtype=INT32)

    @op.tflite()
    def arg_reduce_tflite(g, x, dim, keepdim):
        axis = dim % len(x.shape)
        if x.dtype == np.int64:  # which ARG_MAX does not take
            index = topk_tflite(g, x, 1, axis, name == "argmax", True)[1]
            return idioms.tflite.reshaped(g, index, g.result_types[0].shape)
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        index = g.op(tflite_type, x, g.ints(axis), output_type="INT32", shape=shape, dtype=INT32)
        return idioms.tflite.reshaped(g, index, g.result_types[0].shape)

    @op.caffe()  # indices are floats, as all numbers are
    def arg_reduce_caffe(g, x, dim, keepdim):
        if name == "argmin":
            x = g.op("Power", x, scale=-1.0)
        return idioms.caffe.reshaped(
            g, idioms.caffe_numbers.largest_at(g, x, dim % len(x.shape), 1), g.result_types[0].shape
        )

    return op


argmax = _op("argmax", np.argmax, "ArgMax", "ARG_MAX")
argmin = _op("argmin", np.argmin, "ArgMin", "ARG_MIN")
OPS = [argmax, argmin]
