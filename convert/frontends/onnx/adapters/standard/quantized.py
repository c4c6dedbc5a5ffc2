"""Quantization: pairs of QuantizeLinear and DequantizeLinear, and operators of integers.

Operators on integers compute on the tensors that these stand for, so that a graph has float ops with QParams.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.qparams import Integers, dequantized, quantized, spread
from tmconvert.frontends.onnx.adapters.standard.convolutions import convolved
from tmconvert.frontends.onnx.adapters.standard.narrow_types import narrowed
from tmconvert.frontends.onnx.adapters.standard.windows import window
from tmconvert.frontends.onnx.adapters.values import cast, dtype_of, element_type, rank, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

OPERATORS = OperatorTable()
BITS = {21: 4, 22: 4, 25: 2, 26: 2}  # of the types of ONNX that have less than the type of a graph
UINT8 = np.dtype(np.uint8)
EXACT = 1 << 24  # up to here float32 holds all integers
HALF = 16  # in this number and a rest weights of 8 bits are taken apart, whose sums are smaller


@OPERATORS.add("QuantizeLinear")
def quantize_linear(
    g, x, y_scale, y_zero_point=None, *, axis=1, block_size=0, output_dtype=0, precision=0, saturate=1
):
    if output_dtype and element_type(output_dtype).dtype.kind == "f":
        return _quantized_float(g, x, y_scale, y_zero_point, axis, block_size, output_dtype, bool(saturate))
    dtype = dtype_of(output_dtype) if output_dtype else UINT8
    if y_zero_point is not None and not output_dtype:
        dtype = g.type(y_zero_point).dtype
    integers = Integers.of(dtype, BITS.get(output_dtype, 0))
    return quantized(g, x, y_scale, y_zero_point, integers, axis, block_size)


def _quantized_float(
    g: Emitter, x, scale, zero, axis: int, block: int, output_dtype: int, saturate: bool
) -> Any:
    """x / scale + zero, rounded to a float type of 4 or 8 bits."""
    steps = Term(g, cast(g, x, np.float32)) / Term(g, cast(g, spread(g, x, scale, axis, block), np.float32))
    known = None if zero is None else g.known(zero)
    if zero is not None and (known is None or known.any()):
        steps = steps + Term(g, cast(g, spread(g, x, zero, axis, block), np.float32))
    return narrowed(g, steps.value, element_type(output_dtype), saturate)


@OPERATORS.add("DequantizeLinear")
def dequantize_linear(g, x, x_scale, x_zero_point=None, *, axis=1, block_size=0, output_dtype=0):
    dtype = dtype_of(output_dtype) if output_dtype else g.type(x_scale).dtype
    return cast(g, dequantized(g, x, x_scale, x_zero_point, axis, block_size), dtype)


@OPERATORS.add("DynamicQuantizeLinear")
def dynamic_quantize_linear(g, x):
    """Quantizes to uint8 with the range of the data, which has 0 in it."""
    given = Term(g, x)
    low, high = given.call("amin").minimum(0), given.call("amax").maximum(0)
    span = (high - low) / 255
    scale = span.call("eq", 0).where(1.0, span)
    zero = (-low / scale).clamp(0.0, 255.0).round()
    steps = ((given / scale).round() + zero).clamp(0.0, 255.0)
    return cast(g, steps.value, UINT8), scale.value, cast(g, zero.value, UINT8)


# ---- products


@OPERATORS.add("QLinearConv")
def qlinear_conv(
    g, x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B=None,
    *, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, pads=None, strides=None,
):  # fmt: skip
    given = dequantized(g, x, x_scale, x_zero_point)
    weight = dequantized(g, w, w_scale, w_zero_point, 0)
    bias = None
    if B is not None:
        step = Term(g, reshaped(g, x_scale, [])) * Term(g, reshaped(g, w_scale, [-1]))
        bias = (Term(g, cast(g, B, np.float32)) * step).value
    settings = window(g, x, g.type(w).shape[2:], strides, dilations, pads, auto_pad)
    made = convolved(g, given, weight, bias, settings, group)
    return quantized(g, made, y_scale, y_zero_point, Integers.of(g.type(y_zero_point).dtype))


def of_rows(g, vector, of):
    """Scales or zero points of the rows of a first operand, as a column."""
    if vector is None or g.type(vector).rank != 1 or g.type(vector).size == 1 or rank(g, of) < 2:
        return vector
    return reshaped(g, vector, [*[1] * (rank(g, of) - 2), -1, 1])


@OPERATORS.add("QLinearMatMul")
def qlinear_matmul(g, a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    left = dequantized(g, a, of_rows(g, a_scale, a), of_rows(g, a_zero_point, a), -2)
    right = dequantized(g, b, b_scale, b_zero_point, -1)
    made = g.call("aten::matmul", left, right)
    scale, zero = of_rows(g, y_scale, made), of_rows(g, y_zero_point, made)
    return quantized(g, made, scale, zero, Integers.of(g.type(y_zero_point).dtype), -2)


def centred(g, x, zero):
    """x - zero, as float32."""
    given = Term(g, cast(g, x, np.float32))
    known = None if zero is None else g.known(zero)
    if zero is None or (known is not None and not known.any()):
        return given.value
    return (given - Term(g, cast(g, zero, np.float32))).value


def is_exact(g: Emitter, weight, count: int, axes: tuple[int, ...], widest: int = 255) -> bool:
    """Whether float32 holds all sums of products of integers with a weight; ``count`` are those of a sum."""
    known = g.known(weight)
    if known is None:
        return count * widest * widest < EXACT
    return not known.size or float(np.abs(known.astype(np.float64)).sum(axes).max()) * widest < EXACT


@OPERATORS.add("MatMulInteger")
def matmul_integer(g, A, B, a_zero_point=None, b_zero_point=None):
    """A product of integers: in float32 where it is exact there, which runtimes compute fastest."""
    left = centred(g, A, of_rows(g, a_zero_point, A))
    right = centred(g, B, None if b_zero_point is None else b_zero_point)
    depth = g.type(A).shape[-1]
    if isinstance(depth, int) and is_exact(g, right, depth, (-2,) if rank(g, B) > 1 else (0,)):
        return cast(g, g.call("aten::matmul", left, right), np.int32)
    return g.call("aten::matmul", cast(g, left, np.int32), cast(g, right, np.int32))


@OPERATORS.add("ConvInteger")
def conv_integer(
    g, x, w, x_zero_point=None, w_zero_point=None,
    *, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, pads=None, strides=None,
):  # fmt: skip
    given = centred(g, x, x_zero_point)
    axes = tuple(range(1, rank(g, w)))
    zero = w_zero_point
    if zero is not None and g.type(zero).size > 1:
        zero = reshaped(g, zero, [-1, *[1] * len(axes)])
    weight = centred(g, w, zero)
    settings = window(g, x, g.type(w).shape[2:], strides, dilations, pads, auto_pad)
    count = int(np.prod(g.type(w).shape[1:]))
    if is_exact(g, weight, count, axes):
        return cast(g, convolved(g, given, weight, None, settings, group), np.int32)
    # in two products: runtimes have no convolution of integers, nor of float64
    high = Term(g, g.call("aten::round", (Term(g, weight) / HALF).value))
    low = Term(g, weight) - high * HALF
    parts = [
        cast(g, convolved(g, given, each.value, None, settings, group), np.int32) for each in (high, low)
    ]
    return (Term(g, parts[0]) * HALF + Term(g, parts[1])).value
