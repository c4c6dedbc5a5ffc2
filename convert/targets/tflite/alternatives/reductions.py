"""Means in the shapes of NPUs, and products of elements by multiplication."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tmconvert.lowering.target_graph import Attribute, Operator, Value
from tmconvert.targets.tflite.alternatives.form_writer import FormWriter, numbers, quantization, sizes

_LONGEST = 4095  # elements of an axis that NPUs average
_MOST_FACTORS = 64
_MOST_PRODUCTS = 1 << 18


def mean_of_rows(g: FormWriter) -> list[Operator] | None:
    """MEAN over the rows or the columns of one image: [1, R, 1, I], or [1, O, R, 1] where the last axis is
    reduced; the reduced axes are moved to the front where they are in between.
    """
    x, axes = g.operator.inputs
    shape, reduced = sizes(x), numbers(axes)
    if x is None or shape is None or not reduced:
        return None
    rank = len(shape)
    reduced = sorted({axis % rank for axis in reduced})
    kept = [axis for axis in range(rank) if axis not in reduced]
    count, others = math.prod(shape[axis] for axis in reduced), math.prod(shape[axis] for axis in kept)
    wide = [axis for axis in range(rank) if shape[axis] > 1]
    is_last = [axis for axis in wide if axis in reduced] == wide[
        len(wide) - sum(a in reduced for a in wide) :
    ]
    if is_last and count <= _LONGEST and others > 1:
        rows = g.reshape(x, [1, others, count, 1])
        return g.last_reshape(_mean(g, rows, [2], [1, others, 1, 1]))
    is_first = [axis for axis in wide if axis in reduced] == wide[: sum(a in reduced for a in wide)]
    moved = x if is_first else g.transpose(x, [*reduced, *kept])
    split = _two_factors(count)
    if split is None:
        return None
    rows = g.reshape(moved, [1, *split, others])
    return g.last_reshape(_mean(g, rows, [1, 2], [1, 1, 1, others]))


def _mean(g: FormWriter, x: Value, axes: Sequence[int], shape: Sequence[int]) -> Value:
    return g.copy([x, g.ints(axes)], shape, keep_dims=True)


def _two_factors(count: int) -> tuple[int, int] | None:
    """Returns two factors that are both short enough, the second as small as possible."""
    for second in range(1, _LONGEST + 1):
        if count % second == 0 and count // second <= _LONGEST:
            return count // second, second
    return None


def product_of_parts(g: FormWriter) -> list[Operator] | None:
    """REDUCE_PROD along axes with few elements: slices that are multiplied, two by two."""
    x, axes = g.operator.inputs
    shape, reduced = sizes(x), numbers(axes)
    if x is None or shape is None or not reduced or x.quantization is not None:
        return None
    reduced = sorted({axis % len(shape) for axis in reduced})
    if math.prod(shape[axis] for axis in reduced) > _MOST_FACTORS:
        return None
    found = x
    for axis in reduced:
        parts = [g.pick(found, axis, [at]) for at in range(shape[axis])]
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            rest = parts[len(parts) - len(parts) % 2 :]
            parts = [g.op("MUL", [a, b], a.shape) for a, b in pairs] + rest
        found = parts[0]
    return g.last_reshape(found)


def largest_of_window(g: FormWriter) -> list[Operator] | None:
    """REDUCE_MAX along neighbouring axes as MAX_POOL_2D of one column."""
    x, axes = g.operator.inputs
    shape, reduced = sizes(x), numbers(axes)
    if x is None or shape is None or not reduced:
        return None
    reduced = sorted({axis % len(shape) for axis in reduced})
    first, last = reduced[0], reduced[-1]
    if reduced != list(range(first, last + 1)):
        return None
    batch, count, rest = (
        math.prod(each) for each in (shape[:first], shape[first : last + 1], shape[last + 1 :])
    )
    window: dict[str, Attribute] = {
        "padding": "VALID",
        "stride_w": 1,
        "stride_h": 1,
        "filter_width": 1,
        "filter_height": count,
    }
    options = {**window, "fused_activation_function": "NONE"}
    column = g.reshape(x, [batch, count, 1, rest])
    return g.last_reshape(g.op("MAX_POOL_2D", [column], [batch, 1, 1, rest], options=options))


def sum_of_products(g: FormWriter) -> list[Operator] | None:
    """BATCH_MATMUL of few int16 elements: the products of all pairs, with those to be summed last."""
    (a, b), y = g.operator.inputs, g.operator.outputs[0]
    first, second, made = sizes(a), sizes(b), sizes(y)
    if a is None or b is None or first is None or second is None or made is None or a.dtype != np.int16:
        return None
    if first[:-2] != second[:-2] or a.quantization is None or b.quantization is None:
        return None
    batch, (height, width), rank = math.prod(made[:-2]), made[-2:], len(made)
    scale = float(a.quantization.scale[0]) * float(b.quantization.scale[0]) * 32767
    depth = first[-2] if g.operator.attributes.get("adj_x") else first[-1]
    if batch * height * width * depth > _MOST_PRODUCTS:
        return None
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    a = g.transpose(a, swapped) if g.operator.attributes.get("adj_x") else a
    b = b if g.operator.attributes.get("adj_y") else g.transpose(b, swapped)
    rows, columns = g.reshape(a, [batch, height, 1, depth]), g.reshape(b, [batch, 1, width, depth])
    wide = g.op("CONCATENATION", [columns] * height, [batch, height, width, depth], axis=1)
    product = g.op("MUL", [wide, rows], wide.shape, quantization=quantization(scale))
    total = g.op("SUM", [product, g.ints([3])], [batch, height, width], like=y, keep_dims=False)
    return g.last_reshape(total)


REDUCTIONS = (
    ("MEAN", mean_of_rows),
    ("REDUCE_MAX", largest_of_window),
    ("REDUCE_PROD", product_of_parts),
    ("BATCH_MATMUL", sum_of_products),
)
