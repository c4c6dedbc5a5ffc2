"""aten::local_response_norm: x / (k + alpha / size * sum of squares of the nearest channels) ^ beta."""

from __future__ import annotations

import math

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import NHWC, SOURCE
from tmconvert.symbolics.op import FLOATS, Op, Tensor, integer, number
from tmconvert.symbolics.traits import IntegerSteps, Spatial
from tmconvert.symbolics.windows import reduced, widened

Array = np.ndarray


def _result(x: TensorType, size: int, alpha: float, beta: float, k: float) -> TensorType:
    if x.rank < 3:
        raise ValueError(f"expected at least one spatial dimension, got {x}")
    if size < 1 or size % 2 == 0:  # PyTorch and ONNX lay even windows differently
        raise ValueError(f"size {size} is not an odd number")
    return x


local_response_norm = Op(
    "aten::local_response_norm",
    args=[
        Tensor("x", FLOATS), integer("size"), number("alpha", 1e-4), number("beta", 0.75), number("k", 1.0),
    ],
    result=_result,
    layout=lambda x, **options: NHWC if x.rank == 4 else SOURCE,
    traits=[Spatial(), IntegerSteps(lambda g, **given: idioms.integer_steps.local_response_norm(g, **given))],
)  # fmt: skip


@local_response_norm.reference
def local_response_norm_ref(x: Array, size: int, alpha: float, beta: float, k: float) -> Array:
    """Local response norm; channels out of range count as zeros.

    Shapes: x [N, C, ...]. Source: torch.nn.functional.local_response_norm.
    """
    wide = np.moveaxis(x, 1, -1).astype(np.promote_types(x.dtype, np.float32))
    sums = reduced(np.add, widened(wide * wide, [size // 2], [size // 2]), [size], [1], [1])
    result = wide / (wide.dtype.type(k) + sums * wide.dtype.type(alpha / size)) ** wide.dtype.type(beta)
    return np.moveaxis(result, -1, 1).astype(x.dtype)


@local_response_norm.onnx(since=1)
def local_response_norm_onnx1(g, x, size, alpha, beta, k):
    attributes = {"size": size, "alpha": float(alpha), "beta": float(beta), "bias": float(k)}
    if len(x.shape) == 4:
        return g.op("LRN", x, **attributes)
    planes = (*x.shape[:2], math.prod(x.shape[2:]), 1)  # ONNX Runtime takes rank 4 alone
    result = g.op("LRN", g.op("Reshape", x, g.ints(planes), shape=planes), **attributes, shape=planes)
    return g.op("Reshape", result, g.ints(x.shape), shape=x.shape)


@local_response_norm.tflite()
def local_response_norm_tflite(g, x, size, alpha, beta, k):
    """Normalizes the last of four axes, which is the channel axis of the rank-4 layout."""
    rank = len(x.shape)
    last = [0, *range(2, rank), 1]
    wide = x if rank == 4 else idioms.tflite.transposed(g, x, last)
    wide = (
        wide
        if rank == 4
        else idioms.tflite.reshaped(g, wide, (1, 1, x.shape[0] * math.prod(x.shape[2:]), x.shape[1]))
    )
    result = g.op(
        "LOCAL_RESPONSE_NORMALIZATION",
        wide,
        radius=size // 2,
        bias=float(k),
        alpha=float(alpha) / size,
        beta=float(beta),
    )
    if rank == 4:
        return result
    result = idioms.tflite.reshaped(g, result, [x.shape[axis] for axis in last])
    return idioms.tflite.transposed(g, result, [0, rank - 1, *range(1, rank - 1)])


@local_response_norm.caffe()
def local_response_norm_caffe(g, x, size, alpha, beta, k):
    images = (
        x if len(x.shape) == 4 else idioms.caffe.reshaped(g, x, (*x.shape[:2], math.prod(x.shape[2:]), 1))
    )
    made = g.op("LRN", images, local_size=size, alpha=float(alpha), beta=float(beta), k=float(k))
    return idioms.caffe.reshaped(g, made, x.shape)
