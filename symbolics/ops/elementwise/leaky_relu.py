"""ReLU with a slope for negative values: one number (leaky_relu), or one per channel (prelu)."""

from __future__ import annotations

import math

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import ANY, NHWC, SOURCE, LayoutRule
from tmconvert.symbolics.op import FLOATS, Op, Tensor, number
from tmconvert.symbolics.results import same_as
from tmconvert.symbolics.traits import Homogeneous

Array = np.ndarray

leaky_relu = Op(
    "aten::leaky_relu",
    args=[Tensor("x", FLOATS), number("negative_slope", 0.01)],
    result=same_as("x"),
    layout=ANY,
    traits=[Homogeneous()],
)

leaky_relu.reference(lambda x, negative_slope: np.where(x > 0, x, x * np.array(negative_slope, x.dtype)))
leaky_relu.onnx(since=6)(lambda g, x, negative_slope: g.op("LeakyRelu", x, alpha=float(negative_slope)))
leaky_relu.tflite()(lambda g, x, negative_slope: _leaky(g, x, float(negative_slope)))


def _leaky(g, x, slope):
    """LEAKY_RELU; PRELU for slopes outside of [0, 1], where LiteRT 2.3's GPU is wrong: max(x, slope * x)."""
    is_float = x.dtype == np.float32 and x.qparams is None
    if 0 <= slope <= 1 or not is_float or len(x.shape) < 2 or not isinstance(x.shape[-1], int):
        return g.op("LEAKY_RELU", x, alpha=slope)
    slopes = np.full((*(1,) * (len(x.shape) - 2), x.shape[-1]), slope, x.dtype)
    return g.op("PRELU", x, g.const(slopes))


leaky_relu.caffe()(lambda g, x, negative_slope: g.op("ReLU", x, negative_slope=float(negative_slope)))


def _result(x: TensorType, weight: TensorType) -> TensorType:
    channels = x.shape[1] if x.rank > 1 else 1
    is_one = weight.size == 1  # of any rank, as ranks are aligned for TFLite
    if x.dtype != weight.dtype or not (is_one or (weight.rank == 1 and weight.size == channels)):
        raise ValueError(f"the weight {weight} must have one element, or one per channel of {x}")
    return x


def _layout(x: TensorType, weight: TensorType) -> LayoutRule:
    if weight.size == 1:
        return ANY
    return NHWC if x.rank == 4 else SOURCE


prelu = Op(
    "aten::prelu",
    args=[Tensor("x", FLOATS), Tensor("weight", FLOATS)],
    result=_result,
    layout=_layout,
    traits=[Homogeneous()],
)


def _slopes_shape(rank: int, size: int) -> tuple[int, ...]:
    """Returns the shape in which a weight of ``size`` elements broadcasts along axis 1."""
    return (size, *(1,) * (rank - 2)) if size > 1 else (1,) * rank


prelu.reference(lambda x, weight: np.where(x > 0, x, x * weight.reshape(_slopes_shape(x.ndim, weight.size))))


@prelu.onnx(since=7)
def prelu_onnx7(g, x, weight):
    shape = _slopes_shape(len(x.shape), math.prod(weight.shape))
    if weight.is_constant:
        slopes = g.const(weight.data.reshape(shape), name=weight.name)
    else:
        slopes = g.op("Reshape", weight, g.ints(shape), shape=shape)
    return g.op("PRelu", x, slopes)


@prelu.tflite()
def prelu_tflite(g, x, weight):
    size = math.prod(weight.shape)
    if size == 1 and weight.is_constant:
        return _leaky(g, x, float(weight.data.reshape(())))
    rank = len(x.shape)
    shape = (1,) * (rank - 1) if size == 1 else _slopes_shape(rank, size)
    if rank == 4:
        shape = (1, 1, size)  # channels-last
    return g.op("PRELU", x, idioms.tflite.reshaped(g, weight, shape))


@prelu.caffe()
def prelu_caffe(g, x, weight):
    if not weight.is_constant:
        g.refuse("Caffe's PReLU requires constant slopes")
    slopes = np.ascontiguousarray(weight.data).reshape(-1)
    if slopes.size == 1:
        return g.op("ReLU", x, negative_slope=float(slopes[0]))
    return g.op("PReLU", x, g.const(slopes), channel_shared=False)


OPS = [leaky_relu, prelu]
