"""Gathers with indices of other ranks, and reshapes without an axis."""

from __future__ import annotations

import math

from tmconvert.lowering.target_graph import Operator
from tmconvert.targets.tflite.alternatives.form_writer import FormWriter, numbers, sizes

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
_MOST_PARTS = 32  # slices that stand for a gather


def flat_indices(g: FormWriter) -> list[Operator] | None:
    """GATHER by indices of one axis, and a RESHAPE of the result."""
    x, indices = g.operator.inputs
    shape, given = sizes(x), sizes(indices)
    if x is None or indices is None or shape is None or given is None or len(given) == 1:
        return None
    if g.operator.attributes.get("batch_dims", 0):
        return None
    axis = g.operator.attributes.get("axis", 0)
    assert isinstance(axis, int)
    axis %= len(shape)
    count = math.prod(given)
    rows = g.const(indices.data.reshape(-1)) if indices.data is not None else g.reshape(indices, [count])
    made = [*shape[:axis], count, *shape[axis + 1 :]]
    return g.last_reshape(g.op("GATHER", [x, rows], made, axis=axis))


def slice_of_one(g: FormWriter) -> list[Operator] | None:
    """GATHER of constant indices as slices, which are concatenated."""
    x, indices = g.operator.inputs
    shape = sizes(x)
    if x is None or indices is None or indices.data is None or shape is None:
        return None
    if g.operator.attributes.get("batch_dims", 0) or not 0 < indices.data.size <= _MOST_PARTS:
        return None
    axis = g.operator.attributes.get("axis", 0)
    assert isinstance(axis, int)
    return g.last_reshape(g.pick(x, axis % len(shape), numbers(indices) or ()))


def slices_of_steps(g: FormWriter) -> list[Operator] | None:
    """STRIDED_SLICE as slices of one element along each axis with steps, which are concatenated."""
    x, begin, _, steps = g.operator.inputs
    shape, starts, by, made = sizes(x), numbers(begin), numbers(steps), sizes(g.operator.outputs[0])
    masks = [name for name in _MASKS if g.operator.attributes.get(name)]
    if x is None or shape is None or starts is None or by is None or made is None or masks:
        return None
    axes = [axis for axis, step in enumerate(by) if step != 1 and made[axis] > 1]
    if len(made) != len(shape) or math.prod(made[axis] for axis in axes) > _MOST_PARTS or not axes:
        return None
    whole = [made[axis] if axis not in axes else shape[axis] for axis in range(len(shape))]
    first = [
        start % size if axis not in axes else 0
        for axis, (start, size) in enumerate(zip(starts, shape, strict=True))
    ]
    value = g.slice(x, first, whole)
    for axis in axes:
        places = [starts[axis] % shape[axis] + at * by[axis] for at in range(made[axis])]
        value = g.pick(value, axis, places)
    return g.last_reshape(value)


def slices_in_reverse(g: FormWriter) -> list[Operator] | None:
    """REVERSE_V2 as slices of one element, which are concatenated."""
    (x, axes), shape = g.operator.inputs, sizes(g.operator.outputs[0])
    reversed_axes = numbers(axes)
    if (
        x is None
        or shape is None
        or not reversed_axes
        or math.prod(shape[axis] for axis in reversed_axes) > _MOST_PARTS
    ):
        return None
    for axis in reversed_axes:
        x = g.pick(x, axis % len(shape), range(shape[axis] - 1, -1, -1))
    return g.last_reshape(x)


def scalar_by_option(g: FormWriter) -> list[Operator] | None:
    """RESHAPE to a scalar, whose shape, a constant without elements, is in the options alone."""
    x, result = g.operator.inputs[0], g.operator.outputs[0]
    if x is None or result.shape or len(g.operator.inputs) < 2:
        return None
    return g.last("RESHAPE", [x], new_shape=[])


def largest_of_negation(g: FormWriter) -> list[Operator] | None:
    """ARG_MIN as ARG_MAX of the negated operand."""
    x, axis = g.operator.inputs
    shape = sizes(x)
    if x is None or shape is None or x.quantization is not None:
        return None
    return g.last("ARG_MAX", [g.op("NEG", [x], shape), axis], options=g.operator.attributes)


GATHERS = (
    ("GATHER", flat_indices),
    ("GATHER", slice_of_one),
    ("STRIDED_SLICE", slices_of_steps),
    ("REVERSE_V2", slices_in_reverse),
    ("RESHAPE", scalar_by_option),
    ("ARG_MIN", largest_of_negation),
)
