"""aten::where: elements of x where the condition is true, elements of other elsewhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor
from tmconvert.symbolics.ops.elementwise.binary import added, multiplied
from tmconvert.symbolics.ops.elementwise.to import ONNX_TYPES
from tmconvert.symbolics.traits import ChoosesByCondition


def _result(condition: TensorType, x: TensorType, other: TensorType) -> TensorType:
    if x.dtype != other.dtype:
        raise TypeError(f"different dtypes: {x}, {other}")
    return TensorType(x.dtype, broadcast_shapes(condition.shape, x.shape, other.shape))


where = Op(
    "aten::where",
    args=[Tensor("condition", ("bool",)), Tensor("x", ANY_DTYPE), Tensor("other", ANY_DTYPE)],
    result=_result,
    layout=ANY,
    traits=[ChoosesByCondition()],
)

where.reference(lambda condition, x, other: np.where(condition, x, other))
where.onnx(since=9)(lambda g, condition, x, other: g.op("Where", condition, x, other, dtype=x.dtype))


@where.onnx(since=7)  # there was no Where: arithmetic is exact for integers, but not with infinities and NaN
def where_onnx7(g, condition, x, other):
    if x.dtype.kind != "f":
        chosen = g.op("Cast", condition, to=ONNX_TYPES["int64"], dtype=np.int64)
        left = g.op("Mul", chosen, _wide(g, x))
        right = g.op("Mul", g.op("Sub", g.const(1, np.int64), chosen), _wide(g, other))
        return g.op("Cast", g.op("Add", left, right), to=ONNX_TYPES[x.dtype.name], dtype=x.dtype)
    return _gathered(g, condition, x, other)


def _wide(g: Any, x: Any) -> Any:
    return x if x.dtype == np.int64 else g.op("Cast", x, to=ONNX_TYPES["int64"], dtype=np.int64)


def _gathered(g: Any, condition: Any, x: Any, other: Any) -> Any:
    """Gathers elements of both operands, concatenated."""
    shape = broadcast_shapes(condition.shape, x.shape, other.shape)
    sizes = [math.prod(value.shape) for value in (x, other)]
    flat = [
        g.op("Reshape", value, g.ints([-1]), shape=[size])
        for value, size in zip((x, other), sizes, strict=True)
    ]
    first, second = (
        np.broadcast_to(np.arange(size, dtype=np.int64).reshape(value.shape), tuple(map(int, shape)))
        for value, size in zip((x, other), sizes, strict=True)
    )
    second = second + sizes[0]
    chosen = g.op("Cast", condition, to=ONNX_TYPES["int64"], dtype=np.int64)
    step = g.op("Mul", chosen, g.const(first - second))
    both = g.op("Concat", *flat, axis=0, shape=[sum(sizes)])
    return g.op("Gather", both, g.op("Add", step, g.const(second)), axis=0, shape=shape)


where.tflite()(lambda g, condition, x, other: g.op("SELECT_V2", condition, x, other, dtype=x.dtype))


@where.caffe()
def where_caffe(g, condition, x, other):
    shape = g.result_types[0].shape
    is_plain = condition.is_constant or (_is_finite(x) and _is_finite(other))
    if is_plain or math.prod(x.shape) + math.prod(other.shape) > idioms.caffe_numbers.MOST_COUNTED:
        return masked_caffe(g, condition, x, other)
    return idioms.caffe_numbers.chosen(g, condition, x, other, shape)


def _is_finite(value: Any) -> bool:
    return bool(value.is_constant and np.isfinite(value.data).all())


def _is_infinite(value: Any) -> bool:
    """Whether the value is a constant infinity."""
    return bool(
        value.is_constant
        and value.data.size
        and np.isinf(value.data).all()
        and len({*(value.data > 0).flat}) == 1
    )


# most lack the layer, nnie and ascend count to 2048 in float16
@where.caffe("opencv", "mnn", "nnie", "ascend", "snpe", "trt", "ncnn")
def masked_caffe(g, condition, x, other):
    """condition x + (1 - condition) other; NaN and infinities are handled separately."""
    if condition.is_constant and other.is_constant and not _is_finite(other):
        return _filled(g, x, condition.data, other.data)
    if condition.is_constant and x.is_constant and not _is_finite(x):
        return _filled(g, other, ~condition.data, x.data)
    for value, rest, is_first in ((x, other, True), (other, x, False)):
        if _is_infinite(value) and not rest.is_constant:
            flags = condition if is_first else idioms.caffe_numbers.complement(g, condition)
            return added(g, rest, idioms.caffe_numbers.infinities(g, flags, float(value.data.flat[0])))
        if value.is_constant and not _is_finite(value):
            g.refuse("it would select by products with 0 and 1, which do not hide NaN and infinities")
    if condition.is_constant:
        flags = condition.data.astype(np.float32)
        masks = [g.const(flags), g.const(1 - flags)]
    else:
        masks = [condition, idioms.caffe_numbers.complement(g, condition)]
    first, second = (_masked(g, value, mask) for value, mask in zip((x, other), masks, strict=True))
    if first.is_constant and second.is_constant:
        g.refuse("all operands are constant: fold it first")
    return added(g, first, second)


def _filled(g: Any, x: Any, kept: np.ndarray, other: np.ndarray) -> Any:
    """``x`` where it is ``kept``, else the constant ``other``, also for infinities."""
    full = np.broadcast_shapes(kept.shape, other.shape)
    both = [np.broadcast_to(value, full) for value in (kept, np.where(kept, 0, other))]
    return added(
        g, multiplied(g, x, g.const(both[0].astype(np.float32))), g.const(both[1].astype(np.float32))
    )


def _masked(g: Any, value: Any, mask: Any) -> Any:
    if value.is_constant and mask.is_constant:
        return g.const(value.data.astype(np.float32) * mask.data)
    return multiplied(g, value, mask)
