"""Lookup tables for devices without GATHER and CAST: a step function, as two matrix products.

A table y of the integers q is y[0] plus the sum of its differences at the integers that q exceeds. The first
product is of q and ones; its bias are the thresholds, and its result saturates, so that it is 0 or the
largest number. The second product is of these and the differences. In int8 it is exact. In int16 a level
stands for values that are nearly equal, and the differences are two digits of seven bits, a product for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tmconvert.lowering.target_graph import Operator, Quantization, Value
from tmconvert.targets.tflite.alternatives.form_writer import INT32, FormWriter, numbers, quantization, sizes

_MOST = 1 << 20  # elements of the first product
_NEAR = 1e-4  # of the values of a level in int16
_DIGIT = 127
INT8, INT16 = np.dtype(np.int8), np.dtype(np.int16)


class _Table(NamedTuple):
    """A table, its operand, and the integer of the first entry."""

    entries: np.ndarray
    x: Value
    first: int


def steps_of_table(g: FormWriter) -> list[Operator] | None:
    """A lookup table of a small tensor as two products."""
    found, y = _table_of(g), g.operator.outputs[0]
    if found is None or y.quantization is None or y.dtype != found.x.dtype:
        return None
    is_wide = y.dtype == np.int16
    entries = found.entries.astype(np.int64)
    starts = _levels(entries, _NEAR if is_wide else 0.0)
    values = np.array(
        [_middle(entries[a:b]) for a, b in zip(starts, [*starts[1:], len(entries)], strict=True)]
    )
    differences, thresholds = np.diff(values), np.array(starts[1:], np.int64) + found.first
    if not is_wide:  # differences beyond a byte are several
        counts = np.maximum(-(-np.abs(differences) // _DIGIT), 1)
        thresholds = np.repeat(thresholds, counts)
        differences = np.concatenate(
            [_parts(int(each), int(n)) for each, n in zip(differences, counts, strict=True)] or [[]]
        ).astype(np.int64)
    shape = sizes(found.x)
    assert shape is not None
    if not len(thresholds) or math.prod(shape) * len(thresholds) > _MOST:
        return None
    rows = g.reshape(found.x, [math.prod(shape), 1])
    steps, unit = _steps(g, rows, thresholds)
    if is_wide:
        return _in_digits(g, steps, unit, int(values[0]), differences)
    return g.last_reshape(_product(g, steps, unit, differences, int(values[0]), y.quantization, 1))


def largest_by_steps(g: FormWriter) -> list[Operator] | None:
    """TOPK_V2 in int8: the rank of an element is the number of those that are larger, or equal and before it.

    Steps of one half tell equal elements apart. What saturates is 0 or 1, and the products with it are exact.
    """
    x, count = g.operator.inputs
    shape, wanted = sizes(x), numbers(count)
    if x is None or not shape or not wanted or x.dtype != np.int8 or x.quantization is None:
        return None
    (k,), extent, rows = wanted, shape[-1], math.prod(shape[:-1])
    if rows * extent * extent > _MOST or extent > _DIGIT:
        return None
    half, square = float(x.quantization.scale[0]) / 2, [rows, extent, extent]
    wide = g.op("QUANTIZE", [x], shape, dtype=INT16, quantization=quantization(half))
    lines = g.reshape(wide, [rows, extent, 1])
    columns = g.op("CONCATENATION", [g.reshape(wide, [rows, 1, extent])] * extent, square, axis=1)
    gaps = g.op("SUB", [columns, lines], square, pot_scale_int16=False)
    before = g.quantized(np.tri(extent, extent, -1, dtype=np.int16)[None], half)
    gaps = g.op("ADD", [gaps, before], square, like=gaps, pot_scale_int16=False)
    flags = quantization(half / 255, -128)
    larger = g.op("QUANTIZE", [gaps], square, dtype=INT8, quantization=flags)
    ones = g.quantized(np.full((1, extent), _DIGIT, np.int8), 1 / _DIGIT)
    zero = g.quantized(np.zeros(1, np.int32), half / 255 / _DIGIT)
    flat = g.reshape(larger, [rows * extent, extent])
    ranks = g.op(
        "FULLY_CONNECTED", [flat, ones, zero], [rows * extent, 1], quantization=quantization(half, -128)
    )
    reached, unit = _steps(g, ranks, np.arange(k + 1) - 128)
    pick = (np.eye(k, k + 1) - np.eye(k, k + 1, 1)).astype(np.int8) * _DIGIT
    weight, offset = (
        g.quantized(pick, 1 / unit / _DIGIT),
        g.quantized(np.zeros(k, np.int32), 1 / 255 / _DIGIT),
    )
    is_there = g.op(
        "FULLY_CONNECTED",
        [reached, weight, offset],
        [rows * extent, k],
        quantization=quantization(1 / 255, -128),
    )
    picked = g.transpose(g.reshape(is_there, [rows, extent, k]), [0, 2, 1])
    column = g.reshape(x, [rows, extent, 1])
    value = g.op("BATCH_MATMUL", [picked, column], [rows, k, 1], like=x, adj_x=False, adj_y=False)
    g.last_reshape(value)
    place = g.op("ARG_MAX", [picked, g.ints([2])], [rows, k], dtype=INT32, output_type="INT32")
    return g.last_reshape(place, 1)


def _table_of(g: FormWriter) -> _Table | None:
    """Returns the table of a GATHER by CAST, or by a sum of that and a number."""
    table, index = g.operator.inputs[:2]
    if table is None or table.data is None or len(table.shape) != 1 or index is None:
        return None
    first, maker = 0, g.made_by.get(id(index))
    if maker is not None and maker.type == "ADD" and maker.inputs[1] is not None:
        offset = maker.inputs[1].data
        if offset is None or offset.size != 1 or maker.inputs[0] is None:
            return None
        first, maker = -int(offset.reshape(())), g.made_by.get(id(maker.inputs[0]))
    if maker is None or maker.type != "CAST" or maker.inputs[0] is None:
        return None
    x = maker.inputs[0]
    if x.quantization is None or x.dtype not in (np.int8, np.int16) or sizes(x) is None:
        return None
    return _Table(table.data, x, first)


def _levels(entries: np.ndarray, near: float) -> list[int]:
    """Returns where levels begin: the values of one differ by ``near`` of them, or not at all."""
    starts, low, high = [0], int(entries[0]), int(entries[0])
    for at, each in enumerate(entries.tolist()):
        low, high = min(low, each), max(high, each)
        if high - low > near * max(abs(low), abs(high)):
            starts.append(at)
            low = high = each
    return starts


def _middle(entries: np.ndarray) -> int:
    return (int(entries.min()) + int(entries.max())) // 2


def _parts(number: int, count: int) -> list[int]:
    """Returns ``count`` nearly equal integers with this sum."""
    each, rest = divmod(abs(number), count)
    sign = 1 if number >= 0 else -1
    return [sign * (each + (at < rest)) for at in range(count)]


def _steps(g: FormWriter, rows: Value, thresholds: np.ndarray) -> tuple[Value, float]:
    """Returns (elements, thresholds) that are 0, or from a threshold on the maximum, and its real value."""
    known = rows.quantization
    assert known is not None
    scale, zero = float(known.scale[0]), 0 if known.zero_point is None else int(known.zero_point[0])
    is_wide = rows.dtype == np.int16
    largest = 32767 if is_wide else 255
    weight = g.quantized(np.full((len(thresholds), 1), _DIGIT, np.int8), 1 / _DIGIT)
    # at its threshold an integer is one step above 0
    bias = (zero + 1 - thresholds) * _DIGIT
    offset = g.quantized(bias.astype(np.int64 if is_wide else np.int32), scale / _DIGIT)
    made = quantization(scale / largest, 0 if is_wide else -128)
    clamp = "RELU" if is_wide else "NONE"
    shape = [rows.shape[0], len(thresholds)]
    steps = g.op(
        "FULLY_CONNECTED", [rows, weight, offset], shape, quantization=made, fused_activation_function=clamp
    )
    return steps, scale


def _product(
    g: FormWriter,
    steps: Value,
    unit: float,
    differences: np.ndarray,
    first: int,
    made: Quantization,
    each: float,
) -> Value:
    """Returns ``first`` plus the sum of differences, of ``each`` steps of the result, at the thresholds."""
    known = steps.quantization
    assert known is not None
    is_wide = steps.dtype == np.int16
    scale = float(made.scale[0])
    weight = g.quantized(differences.reshape(1, -1).astype(np.int8), each * scale / unit)
    zero = 0 if made.zero_point is None else int(made.zero_point[0])
    largest = 32767 if is_wide else 255
    bias = np.array([round((first - zero) * largest / each)], np.int64 if is_wide else np.int32)
    offset = g.quantized(bias, float(known.scale[0]) * each * scale / unit)
    shape = [steps.shape[0], 1]
    return g.op("FULLY_CONNECTED", [steps, weight, offset], shape, quantization=made)


def _digits(differences: np.ndarray, base: int) -> np.ndarray:
    """Returns multiples of ``base`` whose sums are the nearest to those of the differences."""
    sums = np.rint(np.cumsum(differences) / base).astype(np.int64)
    return np.diff(sums, prepend=0)


def _in_digits(
    g: FormWriter, steps: Value, unit: float, first: int, differences: np.ndarray
) -> list[Operator] | None:
    """Two products, of high and of low digits, and their sum."""
    y = g.operator.outputs[0]
    assert y.quantization is not None
    base = max(-(-int(np.abs(differences).max()) // (_DIGIT - 1)), 1)
    high = _digits(differences, base)
    rest = differences - high * base
    digit = max(-(-int(np.abs(rest).max()) // (_DIGIT - 1)), 1)
    scale = float(y.quantization.scale[0])
    parts = []
    for part, each, start in ((high, base, first), (_digits(rest, digit), digit, 0)):
        total = start + np.concatenate([[0], np.cumsum(part * each)])
        wide = max(float(np.abs(total).max()) / 32767, 1.0)
        made = quantization(scale * wide)
        parts.append(_product(g, steps, unit, part, round(start / wide), made, each / wide))
    return g.last_reshape(
        g.op("ADD", parts, parts[0].shape, quantization=y.quantization, pot_scale_int16=False)
    )


def _gelu(x: np.ndarray) -> np.ndarray:
    return np.array([each / 2 * (1 + math.erf(each / math.sqrt(2))) for each in x])


# functions with a kernel in int8 that small runtimes lack
_FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "gelu": _gelu,
    "log": lambda x: np.log(np.maximum(x, 1e-30)),
}


def table_of_function(g: FormWriter) -> list[Operator] | None:
    """A function of one tensor in int8 as a lookup table."""
    x, y = g.operator.inputs[0], g.operator.outputs[0]
    if x is None or x.quantization is None or y.quantization is None:
        return None
    if x.dtype.name != "int8" or y.dtype.name != "int8" or g.operator.attributes.get("approximate"):
        return None
    known, made = x.quantization, y.quantization
    zeros = [0 if each.zero_point is None else int(each.zero_point[0]) for each in (known, made)]
    inputs = (np.arange(-128, 128) - zeros[0]) * float(known.scale[0])
    results = np.rint(_FUNCTIONS[g.operator.type.lower()](inputs) / float(made.scale[0])) + zeros[1]
    table = g.const(np.clip(results, -128, 127).astype(np.int8), y)
    options = {"in_data_type": "INT8", "out_data_type": "INT32"}
    wide = g.op("CAST", [x], x.shape, dtype=np.dtype(np.int32), options=options)
    places = g.op("ADD", [wide, g.const(np.array(128, np.int32))], x.shape)
    return g.last("GATHER", [table, places], axis=0)


TABLES = (
    ("GATHER", steps_of_table),
    ("TOPK_V2", largest_by_steps),
    (" ".join(_FUNCTIONS).upper(), table_of_function),
)
