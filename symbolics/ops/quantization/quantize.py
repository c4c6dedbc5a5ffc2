"""tm::quantize, the integers of a tensor: clip(round(x * (1 / scale)) + zero_point), halves to even.

``axis`` is that of the channels that the scales belong to, -1 where there is one scale. The rounding is that
of PyTorch's quantize_per_tensor in exported programs; with ``divides``, where x is divided by the scale, that
of ONNX's QuantizeLinear. Most of them are folded with a following dequantize; this op is for the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import FLOATS, Op, Tensor, boolean, choice, integer, integers, numbers
from tmconvert.symbolics.traits import Quantizes

DTYPES = ("int8", "uint8", "int16", "int32")


def _result(x: TensorType, dtype: str, axis: int, scale: list[float], **_: Any) -> TensorType:
    if axis >= x.rank or (axis >= 0 and x.shape[axis] != len(scale)):
        raise ValueError(f"got {len(scale)} scales along axis {axis} of {list(x.shape)}")
    return TensorType(np.dtype(dtype), x.shape)


quantize = Op(
    "tm::quantize",
    args=[
        Tensor("x", FLOATS), numbers("scale"), integers("zero_point"), integer("quant_min"),
        integer("quant_max"), integer("axis", -1), choice("dtype", DTYPES, "int8"), boolean("divides", False),
    ],
    result=_result,
    traits=[Quantizes()],
)  # fmt: skip


def _column(values: list[Any], rank: int, axis: int) -> np.ndarray:
    shape = [-1 if each == axis else 1 for each in range(rank)] if axis >= 0 else [1] * rank
    return np.array(values, np.float32).reshape(shape)


@quantize.reference
def quantize_ref(
    x: np.ndarray, scale: list[float], zero_point: list[int], quant_min: int, quant_max: int, axis: int,
    dtype: str, divides: bool,
) -> np.ndarray:  # fmt: skip
    step, zero = _column(scale, x.ndim, axis), _column(zero_point, x.ndim, axis)
    with np.errstate(all="ignore"):
        steps = x / step if divides else x * (np.float32(1) / step)
        return np.clip(np.rint(steps) + zero, quant_min, quant_max).astype(dtype)


@quantize.decompose(onnx=7)
def quantize_steps(
    g: Any, x: Any, scale: list[float], zero_point: list[int], quant_min: int, quant_max: int, axis: int,
    dtype: str, divides: bool,
) -> Any:  # fmt: skip
    type_ = g.type(x)
    step = _column(scale, type_.rank, axis)
    if divides:
        scaled = g.call("aten::div", x, g.constant(step.astype(type_.dtype)))
    else:
        scaled = g.call("aten::mul", x, g.constant((np.float32(1) / step).astype(type_.dtype)))
    steps = g.call("aten::round", scaled)
    if any(zero_point):
        zero = _column(zero_point, type_.rank, axis).astype(type_.dtype)
        steps = g.call("aten::add", steps, g.constant(zero))
    return g.call("aten::to", g.call("aten::clamp", steps, float(quant_min), float(quant_max)), dtype=dtype)
