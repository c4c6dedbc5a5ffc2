"""megengine.functional.tensor: broadcast, repeat, tile, flip, roll, meshgrid, diag and gather functions."""

from __future__ import annotations

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.values import (
    axis_of,
    cast,
    is_tensor,
    rank,
    reshaped,
    static_int,
    static_ints,
)
from tmconvert.frontends.shared.adapter_table import Table

FUNCTIONS = Table("megengine.functional.tensor.")
METHODS = Table()
OPERATORS = Table("opdef.")


@METHODS.add("to", "detach")
@OPERATORS.add("Borrow", "Copy", "FastpathCopy", "Identity")
@FUNCTIONS.add("copy")
def copy(g, inp, device=None, **attributes):
    return inp


@FUNCTIONS.add("broadcast_to")
def broadcast_to(g, inp, shape):
    """None in ``shape`` keeps the extent."""
    if isinstance(shape, (list, tuple)) and None in [item for item in shape if not is_tensor(item)]:
        old = (*[1] * (len(shape) - rank(g, inp)), *g.type(inp).shape)
        shape = [extent if item is None else item for item, extent in zip(shape, old, strict=True)]
    sizes = static_ints(g, shape)
    return inp if tuple(sizes) == g.type(inp).shape else g.call("aten::expand", inp, sizes)


METHODS.add("_broadcast")(lambda g, x, *shape: broadcast_to(g, x, shape[0] if len(shape) == 1 else shape))


@FUNCTIONS.add("repeat")
def repeat(g, inp, repeats, axis=None):
    """Repeats each element; without ``axis`` the tensor is flattened."""
    if axis is None:
        inp, axis = reshaped(g, inp, [g.type(inp).size]), 0
    count = static_int(g, repeats, "a number of copies")
    return inp if count == 1 else g.call("aten::repeat_interleave", inp, count, axis_of(g, inp, axis))


@FUNCTIONS.add("tile")
def tile(g, inp, reps):
    counts = static_ints(g, reps, "a number of copies")
    if len(counts) < rank(g, inp):
        raise Refusal(f"repeat needs one count per element, got {counts} for {g.type(inp)}")
    return g.call("aten::repeat", inp, counts)


@FUNCTIONS.add("roll")
def roll(g, inp, shift, axis=None):
    shifts = static_ints(g, shift, "a shift")
    axes = [] if axis is None else [axis_of(g, inp, item) for item in static_ints(g, axis, "an axis")]
    return g.call("aten::roll", inp, shifts, axes)


@FUNCTIONS.add("meshgrid")
def meshgrid(g, *inputs, indexing="xy"):
    """ "xy": the first input varies along the second axis; "ij": each along its own."""
    if indexing not in ("xy", "ij"):
        raise Refusal(f"the indexing {indexing!r} is not supported", "use 'xy' or 'ij'")
    order = list(range(len(inputs)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    sizes = [g.type(x).shape[0] for x in inputs]
    shape = [sizes[i] for i in order]
    result = []
    for x, axis in zip(inputs, order, strict=True):
        column = [1] * len(shape)
        column[axis] = g.type(x).shape[0]
        result.append(broadcast_to(g, reshaped(g, x, column), shape))
    return result


@FUNCTIONS.add("diag")
def diag(g, inp, k=0):
    """The diagonal of a matrix, ``k`` above the main one; of a vector, the matrix with that diagonal."""
    op = "aten::diagonal" if rank(g, inp) == 2 else "aten::diag_embed"
    return g.call(op, inp, static_int(g, k, "a diagonal"))


@FUNCTIONS.add("gather")
def gather(g, inp, axis, index):
    return g.call("aten::gather", inp, axis_of(g, inp, axis), _places(g, index))


@FUNCTIONS.add("scatter")
def scatter(g, inp, axis, index, source):
    source = cast(g, source, g.type(inp).dtype)
    return g.call("aten::scatter", inp, axis_of(g, inp, axis), _places(g, index), source)


def _places(g, index):
    return index if g.type(index).dtype == np.int64 else cast(g, index, np.int32)
