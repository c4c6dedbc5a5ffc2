"""BROADCAST_TO and TILE by each other, and by CONCATENATION."""

from __future__ import annotations

from collections.abc import Sequence

from tmconvert.lowering.target_graph import Operator, Value
from tmconvert.targets.tflite.alternatives.form_writer import FormWriter, numbers, sizes

_MOST_COPIES = 64


def _copies(g: FormWriter) -> tuple[Value, list[int], list[int]] | None:
    """Returns the operand, its shape with axes of one before it, and how often each axis is repeated."""
    x, other = g.operator.inputs
    shape, made = sizes(x), sizes(g.operator.outputs[0])
    if x is None or shape is None or made is None or numbers(other) is None or 0 in made:
        return None
    aligned = [1] * (len(made) - len(shape)) + list(shape)
    if any(size % one for size, one in zip(made, aligned, strict=True)):
        return None
    return x, aligned, [size // one for size, one in zip(made, aligned, strict=True)]


def _merged(shape: Sequence[int], copies: Sequence[int]) -> tuple[list[int], list[int]]:
    """Merges neighbouring axes that are not repeated, and those of one element that are."""
    sizes_made, copies_made = list[int](), list[int]()
    for size, count in zip(shape, copies, strict=True):
        if size == 1 and count == 1:
            continue
        if sizes_made and count == 1 and copies_made[-1] == 1:
            sizes_made[-1] *= size
        elif sizes_made and size == 1 and sizes_made[-1] == 1:
            copies_made[-1] *= count
        else:
            sizes_made.append(size)
            copies_made.append(count)
    return sizes_made or [1], copies_made or [1]


def tiled(g: FormWriter) -> list[Operator] | None:
    """TILE of the fewest axes, between two RESHAPE."""
    found = _copies(g)
    if found is None:
        return None
    x, aligned, copies = found
    shape, counts = _merged(aligned, copies)
    rows = g.reshape(x, shape)
    made = [size * count for size, count in zip(shape, counts, strict=True)]
    return g.last_reshape(g.op("TILE", [rows, g.ints(counts)], made))


def broadcast(g: FormWriter) -> list[Operator] | None:
    """BROADCAST_TO, where axes of one element are repeated; a longer one gets an axis before it for that."""
    found = _copies(g)
    if found is None:
        return None
    x, aligned, copies = found
    shape, made = list[int](), list[int]()
    for size, count in zip(*_merged(aligned, copies), strict=True):
        if size > 1 and count > 1:
            shape.append(1)
            made.append(count)
            count = 1
        shape.append(size)
        made.append(size * count)
    rows = g.reshape(x, shape)
    return g.last_reshape(g.op("BROADCAST_TO", [rows, g.ints(made)], made))


def concatenated(g: FormWriter) -> list[Operator] | None:
    """CONCATENATION of a tensor with itself, axis by axis."""
    found = _copies(g)
    if found is None:
        return None
    x, aligned, copies = found
    shape, counts = _merged(aligned, copies)
    if max(counts) > _MOST_COPIES:
        return None
    value = g.reshape(x, shape)
    for axis, count in enumerate(counts):
        if count > 1:
            shape[axis] *= count
            value = g.op("CONCATENATION", [value] * count, shape, axis=axis)
    return g.last_reshape(value)


BROADCASTS = (("BROADCAST_TO", tiled), ("TILE", broadcast), ("BROADCAST_TO TILE", concatenated))
