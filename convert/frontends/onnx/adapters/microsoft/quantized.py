"""Operators of com.microsoft on integers, which ONNX Runtime's quantizers write."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.qparams import Integers, dequantized, spread
from tmconvert.frontends.onnx.adapters.qparams import quantized as to_integers
from tmconvert.frontends.onnx.adapters.standard import gathering, pooling, quantized
from tmconvert.frontends.onnx.adapters.standard.activations import flattened
from tmconvert.frontends.onnx.adapters.values import axis_of, cast, rank, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

OPERATORS = OperatorTable("com.microsoft")
OPERATORS.add("QuantizeLinear")(quantized.quantize_linear)
OPERATORS.add("DequantizeLinear")(quantized.dequantize_linear)


def _stored(g, made, scale, zero, like):
    """Quantizes a result to the type of its zero point, or else of an operand."""
    dtype = g.type(like if zero is None else zero).dtype
    return to_integers(g, made, scale, zero, Integers.of(dtype))


def _binary(name: str, op: str) -> None:
    @OPERATORS.add(name)
    def adapter(g, A, A_scale, A_zero_point, B, B_scale, B_zero_point, C_scale, C_zero_point=None):
        left, right = dequantized(g, A, A_scale, A_zero_point), dequantized(g, B, B_scale, B_zero_point)
        return _stored(g, g.call(f"aten::{op}", left, right), C_scale, C_zero_point, A)


for _name, _op in {"QLinearAdd": "add", "QLinearMul": "mul"}.items():
    _binary(_name, _op)


@OPERATORS.add("QLinearSigmoid")
def qlinear_sigmoid(g, X, X_scale, X_zero_point, Y_scale, Y_zero_point=None):
    made = g.call("aten::sigmoid", dequantized(g, X, X_scale, X_zero_point))
    return _stored(g, made, Y_scale, Y_zero_point, X)


@OPERATORS.add("QLinearLeakyRelu")
def qlinear_leaky_relu(g, X, X_scale, X_zero_point, Y_scale, Y_zero_point=None, *, alpha=0.01):
    made = g.call("aten::leaky_relu", dequantized(g, X, X_scale, X_zero_point), negative_slope=alpha)
    return _stored(g, made, Y_scale, Y_zero_point, X)


@OPERATORS.add("QLinearSoftmax")
def qlinear_softmax(g, X, X_scale, x_zero_point, y_scale, y_zero_point, *, axis=-1, opset=13):
    given = dequantized(g, X, X_scale, x_zero_point)
    if opset < 13:
        made = flattened(g, given, axis, lambda rows: g.call("aten::softmax", rows, 1))
    else:
        made = g.call("aten::softmax", given, axis_of(g, given, axis))
    return _stored(g, made, y_scale, y_zero_point, X)


@OPERATORS.add("QLinearConcat")
def qlinear_concat(g, Y_scale, Y_zero_point, *inputs, axis):
    """Concatenates quantized tensors; ``inputs`` are a tensor, its scale and its zero point, in turn."""
    if len(inputs) % 3:
        raise Refusal(
            f"QLinearConcat has {len(inputs)} inputs after the first two, which is not a multiple of three"
        )
    groups = zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True)
    parts = [dequantized(g, x, scale, zero) for x, scale, zero in groups]
    made = parts[0] if len(parts) == 1 else g.call("aten::cat", parts, axis_of(g, parts[0], axis))
    return _stored(g, made, Y_scale, Y_zero_point, inputs[0])


@OPERATORS.add("QLinearWhere")
def qlinear_where(g, condition, X, x_scale, x_zero_point, Y, y_scale, y_zero_point, z_scale, z_zero_point):
    then, otherwise = dequantized(g, X, x_scale, x_zero_point), dequantized(g, Y, y_scale, y_zero_point)
    return _stored(g, g.call("aten::where", condition, then, otherwise), z_scale, z_zero_point, X)


# ---- over windows and axes


def _moved(g: Emitter, x, channels_last: int, *, back: bool = False) -> Any:
    """Moves the channels from the last axis to the second one, or ``back``."""
    if not channels_last:
        return x
    last = rank(g, x) - 1
    return g.call("aten::permute", x, [0, *range(2, last + 1), 1] if back else [0, last, *range(1, last)])


@OPERATORS.add("QLinearAveragePool")
def qlinear_average_pool(
    g, X, x_scale, x_zero_point, y_scale, y_zero_point=None, *, channels_last=0, **attributes
):
    given = _moved(g, dequantized(g, X, x_scale, x_zero_point), channels_last)
    made = _moved(g, pooling.average_pool(g, given, **attributes), channels_last, back=True)
    return _stored(g, made, y_scale, y_zero_point, X)


@OPERATORS.add("QLinearGlobalAveragePool")
def qlinear_global_average_pool(g, X, x_scale, x_zero_point, y_scale, y_zero_point=None, *, channels_last=0):
    given = _moved(g, dequantized(g, X, x_scale, x_zero_point), channels_last)
    made = _moved(g, pooling.global_average_pool(g, given), channels_last, back=True)
    return _stored(g, made, y_scale, y_zero_point, X)


@OPERATORS.add("QLinearReduceMean")
def qlinear_reduce_mean(
    g, data, data_scale, data_zero_point, reduced_scale, reduced_zero_point=None, *, axes=None, keepdims=1
):
    given = dequantized(g, data, data_scale, data_zero_point)
    places = [axis_of(g, given, axis) for axis in (range(rank(g, given)) if axes is None else axes)]
    made = g.call("aten::mean", given, sorted(places), bool(keepdims))
    return _stored(g, made, reduced_scale, reduced_zero_point, data)


@OPERATORS.add("QLinearConv")
def qlinear_conv(g, x, *others, channels_last=0, **attributes):
    """The operator of ai.onnx; with ``channels_last`` the channels are the last axis of input and output."""
    made = quantized.qlinear_conv(g, _moved(g, x, channels_last), *others, **attributes)
    return _moved(g, made, channels_last, back=True)


# ---- products


@OPERATORS.add("QGemm")
def qgemm(
    g, A, a_scale, a_zero_point, B, b_scale, b_zero_point, C=None, y_scale=None, y_zero_point=None,
    *, alpha=1.0, transA=0, transB=0,
):  # fmt: skip
    """alpha A' B' + C; in float32 if the result has no scale."""
    left = dequantized(g, A, a_scale, a_zero_point)
    left = g.call("aten::permute", left, [1, 0]) if transA else left
    weight = dequantized(g, B, b_scale, b_zero_point, 0 if transB else 1)
    weight = weight if transB else g.call("aten::permute", weight, [1, 0])
    step = Term(g, reshaped(g, a_scale, [])) * Term(g, reshaped(g, b_scale, [-1]))
    if alpha != 1.0:
        step = step * alpha
        weight = (Term(g, weight) * alpha).value
    bias = None if C is None else (Term(g, cast(g, C, np.float32)) * step).value
    if bias is not None and g.type(bias).shape != (g.type(weight).shape[0],):
        made = g.call("aten::add", g.call("aten::linear", left, weight, None), bias)
    else:
        made = g.call("aten::linear", left, weight, bias)
    return made if y_scale is None else _stored(g, made, y_scale, y_zero_point, A)


@OPERATORS.add("MatMulIntegerToFloat")
def matmul_integer_to_float(g, A, B, a_scale, b_scale, a_zero_point=None, b_zero_point=None, bias=None):
    left = dequantized(g, A, quantized.of_rows(g, a_scale, A), quantized.of_rows(g, a_zero_point, A), -2)
    made = g.call("aten::matmul", left, dequantized(g, B, b_scale, b_zero_point, -1))
    return made if bias is None else g.call("aten::add", made, bias)


@OPERATORS.add("DynamicQuantizeMatMul")
def dynamic_quantize_matmul(g, A, B, b_scale, b_zero_point=None, bias=None):
    steps, scale, zero = quantized.dynamic_quantize_linear(g, A)
    return matmul_integer_to_float(g, steps, B, scale, b_scale, zero, b_zero_point, bias)


# ---- weights of few bits


@OPERATORS.add("MatMulNBits")
def matmul_nbits(
    g, A, B, scales, zero_points=None, g_idx=None, bias=None,
    *, K, N, bits=4, block_size, accuracy_level=0, weight_prepacked=0,
):  # fmt: skip
    """A [..., K] by a matrix [N, K] that is stored in blocks of 2, 4 or 8 bits along K, lower bits first."""
    if weight_prepacked or bits not in (2, 4, 8):
        raise Refusal(f"weights of {bits} bits are not supported")
    blocks = -(-K // block_size)
    integers = _numbers(g, B, bits, N, blocks * block_size)
    middle = 1 << (bits - 1)
    if zero_points is None:
        zero: Any = np.full((N, blocks), middle, np.float32)
    else:
        known = g.known(zero_points)
        if known is None:
            raise Refusal("the zero points of a weight are computed from the data; they must be constants")
        packed = known.dtype == np.uint8
        zero = _unpacked(known, bits, N, blocks) if packed else known.reshape(N, blocks)
    order = None if g_idx is None else g.known(g_idx)
    if g_idx is not None and (order is None or (order != np.arange(len(order)) // block_size).any()):
        raise Refusal("MatMulNBits with g_idx, which reorders the columns of the weight, is not supported")
    zero = g.constant(zero.astype(np.float32))
    scale = reshaped(g, scales, [N, blocks])
    steps = Term(g, integers) - Term(g, spread(g, integers, zero, 1, block_size))
    weight = (steps * Term(g, cast(g, spread(g, integers, scale, 1, block_size), np.float32))).value
    if blocks * block_size != K:
        weight = g.call("aten::slice", weight, 1, 0, K, 1)
    return g.call("aten::linear", A, cast(g, weight, g.type(A).dtype), bias)


def _numbers(g: Emitter, packed, bits: int, rows: int, columns: int) -> Any:
    """Unpacks a constant of bytes to a float32 matrix."""
    known = g.known(packed)
    if known is None:
        raise Refusal("the weight is computed from the data; it must be a constant")
    return g.constant(_unpacked(known, bits, rows, columns).astype(np.float32))


def _unpacked(packed: np.ndarray, bits: int, rows: int, columns: int) -> np.ndarray:
    each = packed.reshape(rows, -1).astype(np.uint8)
    parts = [(each >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(rows, -1)[:, :columns]


@OPERATORS.add("GatherBlockQuantized")
def gather_block_quantized(
    g, data, indices, scales, zero_points=None, *, bits=4, block_size=128, gather_axis=0, quantize_axis=1
):
    """Rows of a table that is quantized in blocks along its last axis, as embeddings are."""
    known, last = g.known(data), rank(g, data) - 1
    if known is None or axis_of(g, data, quantize_axis) != last or rank(g, data) != 2:
        raise Refusal("GatherBlockQuantized of other tables than constant matrices with blocks of columns")
    middle, zero = 0, None if zero_points is None else g.known(zero_points)
    columns = known.shape[1]
    if known.dtype == np.uint8:
        middle, columns = 1 << (bits - 1), known.shape[1] * 8 // bits
        known = _unpacked(known, bits, known.shape[0], columns)
        zero = None if zero is None else _unpacked(zero, bits, known.shape[0], g.type(scales).shape[1])
    steps = g.constant(known.astype(np.float32))
    blocks = np.full(g.type(scales).shape, middle, np.float32) if zero is None else zero.astype(np.float32)
    moved = Term(g, steps) - Term(g, spread(g, steps, g.constant(blocks), 1, block_size))
    scale = Term(g, cast(g, spread(g, steps, scales, 1, block_size), np.float32))
    table = cast(g, (moved * scale).value, g.type(scales).dtype)
    return gathering.gather(g, table, indices, axis=gather_axis)
