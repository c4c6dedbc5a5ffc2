"""aten::one_hot, and tm::wrap_index, which makes negative indices non-negative."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.indices import from_the_front
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import INDICES, Op, Tensor, integer
from tmconvert.symbolics.results import same_as
from tmconvert.symbolics.traits import IndicesBelow

Array = np.ndarray


def _one_hot_result(x: TensorType, num_classes: int) -> TensorType:
    if num_classes < 1:
        raise ValueError(f"num_classes must be a positive integer, got {num_classes}")
    return TensorType(np.dtype(np.int64), (*x.shape, num_classes))


one_hot = Op(
    "aten::one_hot",
    args=[Tensor("x", INDICES), integer("num_classes")],
    result=_one_hot_result,
    traits=[IndicesBelow("num_classes")],
)
wrap_index = Op(
    "tm::wrap_index",
    args=[Tensor("x", INDICES), integer("extent")],
    result=same_as("x"),
    layout=ANY,
    traits=[IndicesBelow("extent")],
)
OPS = [one_hot, wrap_index]


@one_hot.reference
def one_hot_ref(x: Array, num_classes: int) -> Array:
    """int64 [..., num_classes]: 1 at the index ``x``, else 0. Source: torch.nn.functional.one_hot.

    Raises IndexError for other indices than 0 to ``num_classes - 1``, for which targets differ.
    """
    outside = x[(x < 0) | (x >= num_classes)]
    if outside.size:
        raise IndexError(f"index {outside[0]} is out of range for {num_classes} classes")
    return (x[..., None] == np.arange(num_classes)).astype(np.int64)


@one_hot.onnx(since=9)
def one_hot_onnx9(g, x, num_classes):
    if x.dtype != np.int64:
        x = g.op("Cast", x, to=7, dtype="int64")
    return g.op("OneHot", x, g.ints(num_classes), g.ints([0, 1]), axis=-1)


@one_hot.onnx(since=7)
def one_hot_onnx7(g, x, num_classes):
    column = (*x.shape, 1)
    x = g.op("Reshape", x, g.ints(column), shape=column)
    classes = g.const(np.arange(num_classes, dtype=x.dtype))
    return g.op("Cast", g.op("Equal", x, classes, dtype="bool"), to=7)


@one_hot.tflite()
def one_hot_tflite(g, x, num_classes):
    on, off = (g.const(np.array(value, np.int64)) for value in (1, 0))
    return g.op("ONE_HOT", x, g.ints(num_classes), on, off, axis=-1)


@wrap_index.reference
def wrap_index_ref(x: Array, extent: int) -> Array:
    """``x``, from -extent to extent - 1, as numbers from 0 to extent - 1."""
    return np.where(x < 0, x + np.array(extent, x.dtype), x)


wrap_index.onnx(since=7)(lambda g, x, extent: from_the_front(g, x, extent))
wrap_index.tflite()(lambda g, x, extent: idioms.tflite.wrapped(g, x, extent))


@one_hot.caffe()
def one_hot_caffe(g, x, num_classes):
    table = g.const(np.eye(num_classes, dtype=np.float32))
    return g.op("Embed", x, table, num_output=num_classes, input_dim=num_classes, bias_term=False)


@wrap_index.caffe()
def wrap_index_caffe(g, x, extent):
    below = idioms.caffe_numbers.step(g, g.op("Power", x, scale=-1.0))
    return g.op("Eltwise", x, below, operation="SUM", coeff=[1.0, float(extent)])
