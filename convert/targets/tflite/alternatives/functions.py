"""Operators that small runtimes and GPUs lack, by sums, comparisons and products."""

from __future__ import annotations

import math

import numpy as np

from tmconvert.lowering.target_graph import Operator, Value
from tmconvert.targets.tflite.alternatives.form_writer import FormWriter, numbers, quantization, sizes

FLOAT, BOOL, INT32, INT16 = (np.dtype(each) for each in ("float32", "bool", "int32", "int16"))
_MOST_CLASSES = 100
_MOST_PAIRS = 1 << 20  # comparisons of two elements


def largest_by_counting(g: FormWriter) -> list[Operator] | None:
    """TOPK_V2: the rank of an element is the number of those that are larger, or equal and before it."""
    x, count = g.operator.inputs
    shape, wanted = sizes(x), numbers(count)
    if x is None or x.dtype != FLOAT or not shape or not wanted:
        return None
    (k,), extent, rows = wanted, shape[-1], math.prod(shape[:-1])
    if rows * extent * extent > _MOST_PAIRS:
        return None
    columns, lines = g.reshape(x, [rows, 1, extent]), g.reshape(x, [rows, extent, 1])
    square = [rows, extent, extent]
    greater = g.op("GREATER", [columns, lines], square, dtype=BOOL)
    equal = g.op("EQUAL", [columns, lines], square, dtype=BOOL)
    before = g.const(np.tri(extent, extent, -1, dtype=np.bool_)[None])
    tied = g.op("LOGICAL_AND", [equal, before], square)
    places = _summed(g, g.op("LOGICAL_OR", [greater, tied], square), [rows, extent])
    order = g.const(np.arange(k, dtype=np.float32).reshape(1, k, 1))
    picked = [rows, k, extent]
    is_there = g.op("EQUAL", [g.reshape(places, [rows, 1, extent]), order], picked, dtype=BOOL)
    zero = g.const(np.zeros((1, 1, 1), np.float32))
    value = g.op("SELECT_V2", [is_there, columns, zero], picked, like=x)
    g.last_reshape(g.op("SUM", [value, g.ints([2])], [rows, k], keep_dims=False))
    positions = g.const(np.arange(extent, dtype=np.float32).reshape(1, 1, extent))
    index = g.op("SELECT_V2", [is_there, positions, zero], picked, like=x)
    found = g.op("SUM", [index, g.ints([2])], [rows, k], keep_dims=False)
    whole = g.op("CAST", [found], [rows, k], dtype=INT32, in_data_type="FLOAT32", out_data_type="INT32")
    return g.last_reshape(whole, 1)


def _summed(g: FormWriter, mask: Value, shape: list[int]) -> Value:
    count = g.op("CAST", [mask], mask.shape, dtype=FLOAT, in_data_type="BOOL", out_data_type="FLOAT32")
    return g.op("SUM", [count, g.ints([2])], shape, keep_dims=False)


def normalization_by_products(g: FormWriter) -> list[Operator] | None:
    """LOCAL_RESPONSE_NORMALIZATION: x (bias + alpha * sum of squares) ** -beta; the sum over neighbouring
    channels is a product with a band matrix, the power exp(-beta log).
    """
    x, options = g.operator.inputs[0], g.operator.attributes
    shape = sizes(x)
    radius, bias, alpha, beta = (options.get(each) for each in ("radius", "bias", "alpha", "beta"))
    if x is None or x.dtype != FLOAT or shape is None or not isinstance(radius, int):
        return None
    if (
        not isinstance(bias, float)
        or not isinstance(alpha, float)
        or not isinstance(beta, float)
        or bias <= 0
    ):
        return None
    channels, rows = shape[-1], math.prod(shape[:-1])
    flat = g.reshape(x, [rows, channels])
    square = g.op("MUL", [flat, flat], flat.shape)
    band = np.abs(np.subtract.outer(np.arange(channels), np.arange(channels))) <= radius
    weight, offset = (alpha * band).astype(np.float32), np.full(channels, bias, np.float32)
    base = g.op("FULLY_CONNECTED", [square, g.const(weight), g.const(offset)], flat.shape)
    log = g.op("LOG", [base], flat.shape)
    power = g.op("MUL", [log, g.const(np.array(-beta, np.float32))], flat.shape)
    return g.last_reshape(g.op("MUL", [flat, g.op("EXP", [power], flat.shape)], flat.shape))


def difference_from_sum(g: FormWriter) -> list[Operator] | None:
    """LOG_SOFTMAX in int8: differences d from the largest element, less the logarithm of the sum of e^d."""
    x, y = g.operator.inputs[0], g.operator.outputs[0]
    shape = sizes(x)
    if x is None or x.quantization is None or y.quantization is None or x.dtype != np.int8 or not shape:
        return None
    count, rows, scale = shape[-1], [math.prod(shape[:-1]), shape[-1]], float(x.quantization.scale[0])
    if not 1 < count <= _MOST_CLASSES:
        return None
    column, flat, last = [rows[0], 1], g.reshape(x, rows), g.ints([1])
    top = g.op("REDUCE_MAX", [flat, last], column, keep_dims=True)
    wide, shift = (
        g.op("QUANTIZE", [each], each.shape, dtype=INT16, quantization=quantization(scale))
        for each in (flat, top)
    )
    # kernels of int16 functions have tables of 512 intervals over all of their range
    gap = g.op("SUB", [wide, shift], rows, quantization=quantization(scale / 128), pot_scale_int16=False)
    power = g.op("EXP", [gap], rows, quantization=quantization(1 / 32767))
    total = g.op("SUM", [power, last], column, quantization=quantization(count / 32767), keep_dims=True)
    log = g.op("LOG", [total], column, quantization=quantization(math.log(count) / 32767))
    known = quantization(float(y.quantization.scale[0]) / 128)
    result = g.op("SUB", [gap, log], rows, quantization=known, pot_scale_int16=False)
    return g.last_reshape(g.op("QUANTIZE", [result], rows, dtype=y.dtype, quantization=y.quantization))


def concatenated_parts(g: FormWriter) -> list[Operator] | None:
    """PACK as CONCATENATION along an axis of one element."""
    result = g.operator.outputs[0]
    made, parts = sizes(result), [each for each in g.operator.inputs if each is not None]
    axis = g.operator.attributes.get("axis", 0)
    if made is None or not isinstance(axis, int):
        return None
    axis %= len(made)
    before, after = math.prod(made[:axis]), math.prod(made[axis + 1 :])
    rows = [g.reshape(each, [before, 1, after]) for each in parts]
    return g.last_reshape(g.op("CONCATENATION", rows, [before, len(parts), after], axis=1))


FUNCTIONS = (
    ("TOPK_V2", largest_by_counting),
    ("LOCAL_RESPONSE_NORMALIZATION", normalization_by_products),
    ("LOG_SOFTMAX", difference_from_sum),
    ("PACK", concatenated_parts),
)
