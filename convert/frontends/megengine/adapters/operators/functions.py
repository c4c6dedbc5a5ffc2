"""Raw operators (``Apply`` in MegEngine), converted by the adapters of their functions.

The state of an operator becomes the keywords of its adapter; its tensors are positional. For an operator with
several results the adapter returns a list, with None for results that are used in training only.
"""

from __future__ import annotations

import itertools
from math import prod
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions import (
    creation,
    lookup,
    matching,
    math,
    matrices,
    rearranging,
    softmax,
    sorting,
    tensor,
)
from tmconvert.frontends.megengine.adapters.values import (
    axis_of,
    cast,
    rank,
    reshaped,
    static_int,
    static_ints,
)
from tmconvert.frontends.shared.adapter_table import Adapter, Table
from tmconvert.ir.emitter import Emitter

FUNCTIONS = Table("opdef.")

NO_AXIS = 7  # MegEngine's marker for "the shape of all axes"
ALL_AXES = 2**31 - 1


def renamed(adapter: Adapter, **names: str) -> Adapter:
    """Returns the adapter of a function for an operator; ``names`` maps its parameter names."""

    def operator(g, *inputs, **state):
        return adapter(g, *inputs, **{ours: state[theirs] for ours, theirs in names.items()})

    return operator


# operator: (adapter of the function, its parameters as the operator calls them)
SAME: dict[str, tuple[Adapter, dict[str, str]]] = {
    "BatchedMatrixMul": (matrices.matmul, {"transpose_a": "transposeA", "transpose_b": "transposeB"}),
    "Correlation": (
        matching.correlation,
        {
            name: name
            for name in ("kernel_size", "max_displacement", "stride1", "stride2", "pad_size", "is_multiply")
        },
    ),
    "Diag": (rearranging.diag, {"k": "k"}),
    "Dot": (matrices.dot, {}),
    "FillLike": (creation.full_like, {"value": "value"}),
    "MatrixInverse": (matrices.matinv, {}),
    "MatrixMul": (matrices.matmul, {"transpose_a": "transposeA", "transpose_b": "transposeB"}),
    "MeshGrid": (rearranging.meshgrid, {"indexing": "indexing"}),
    "Softmax": (softmax.softmax, {"axis": "axis"}),
}
for _name, (_adapter, _names) in SAME.items():
    FUNCTIONS.add(_name)(renamed(_adapter, **_names))


# ---- shapes


@FUNCTIONS.add("GetVarShape")
def get_var_shape(g, inp, axis=NO_AXIS, **state):
    """The shape as an int32 vector; with ``axis``, a vector of that one extent."""
    shape = g.type(inp).shape
    if axis != NO_AXIS:
        shape = (shape[axis_of(g, inp, axis)],)
    return g.constant(list(shape), np.int32)


@FUNCTIONS.add("Reshape")
def reshape(g, inp, target=None, *, shape, axis=NO_AXIS):
    """Reshapes to a tensor of sizes, or the attribute ``shape``; the extent of ``axis`` is inferred."""
    sizes = static_ints(g, shape if target is None else target)
    if axis != NO_AXIS:
        sizes[axis] = -1
    return reshaped(g, inp, sizes)


@FUNCTIONS.add("Broadcast")
def broadcast(g, inp, target=None, *, shape):
    return rearranging.broadcast_to(g, inp, shape if target is None else target)


@FUNCTIONS.add("Dimshuffle")
def dimshuffle(g, inp, *, pattern):
    """Permutes axes; -1 inserts one, and axes of extent 1 that are not listed are removed."""
    unnamed = [axis for axis in range(rank(g, inp)) if axis not in pattern]
    kept = [axis for axis in pattern if axis >= 0]
    moved = tensor.squeeze(g, inp, unnamed) if unnamed else inp
    order = iter(sorted(kept).index(axis) for axis in kept)
    return tensor.transpose(g, moved, ["x" if axis < 0 else next(order) for axis in pattern])


@FUNCTIONS.add("AddAxis")
def add_axis(g, inp, *, axis):
    """Inserts axes one after the other; each counts the axes inserted before."""
    shape = list(g.type(inp).shape)
    for place in axis:
        if not 0 <= place <= len(shape):
            raise Refusal(f"cannot insert the axes {axis} into {g.type(inp)}")
        shape.insert(place, 1)
    return reshaped(g, inp, shape)


@FUNCTIONS.add("RemoveAxis")
def remove_axis(g, inp, *, axis):
    """Removes axes one after the other; each counts the axes that are left."""
    shape = list(g.type(inp).shape)
    for place in axis:
        if not 0 <= place < len(shape) or shape.pop(place) != 1:
            raise Refusal(f"cannot squeeze axes {axis} of {g.type(inp)}")
    return reshaped(g, inp, shape)


FUNCTIONS.add("Concat")(lambda g, *inputs, axis, comp_node=None: tensor.concat(g, inputs, axis))
FUNCTIONS.add("Stack")(lambda g, *inputs, axis, comp_node=None: tensor.stack(g, inputs, axis))


@FUNCTIONS.add("Split")
def split(g, inp, *sizes, axis, nsections=0):
    """Splits into equal parts, or parts of the given sizes."""
    if not sizes:
        return tensor.split(g, inp, nsections, axis)
    ends = list(itertools.accumulate(static_int(g, size) for size in sizes))
    if ends[-1] != g.type(inp).shape[axis_of(g, inp, axis)]:
        raise Refusal(f"axis {axis} of {g.type(inp)} cannot be split at {ends}")
    return tensor.split(g, inp, ends[:-1], axis)


# ---- numbers


@FUNCTIONS.add("Reduce")
def reduce(g, inp, target=None, *, mode, axis=ALL_AXES, keepdim=True, data_type="DEFAULT"):
    """Reduces over an axis, all to a scalar, or to the shape ``target``, where reduced axes are 1."""
    if str(data_type).upper() not in ("DEFAULT", "FLOAT_O32XC32"):
        raise Refusal(f"the element types {data_type} of Reduce are not supported")
    names = {"SUM_SQR": "sum", "PRODUCT": "prod"}
    name = names.get(str(mode).upper(), str(mode).lower())
    if str(mode).upper() == "SUM_SQR":
        inp = cast(g, inp, np.int32) if g.type(inp).dtype.kind == "b" else inp
        inp = g.call("aten::mul", inp, inp)
    over = math.reduction(name)
    if target is not None:
        return _reduced_to(g, inp, static_ints(g, target), over)
    if axis == ALL_AXES:
        return over(g, inp)
    if not rank(g, inp):
        inp = reshaped(g, inp, [1])
    return over(g, inp, axis_of(g, inp, axis), keepdim)


def _reduced_to(g: Emitter, inp, sizes: list[Any], over: Adapter) -> Any:
    shape = g.type(inp).shape
    if sizes == [1]:
        return reshaped(g, over(g, inp), [1])
    if len(sizes) != len(shape):
        raise Refusal(f"{g.type(inp)} cannot be reduced to {sizes}")
    axes = [axis for axis, size in enumerate(sizes) if size == 1 and shape[axis] != 1]
    return over(g, inp, axes, True)


def _add_arg_reduction(name: str) -> None:
    @FUNCTIONS.add(name)
    def adapter(g, inp, *, axis):
        return g.call(f"aten::{name.lower()}", inp, axis_of(g, inp, axis), True)


for _name in ("Argmax", "Argmin"):
    _add_arg_reduction(_name)


@FUNCTIONS.add("Argsort")
def argsort(g, inp, *, order):
    """Returns the sorted elements and their indices."""
    return sorting.sort(g, inp, str(order).upper() == "DESCENDING")


@FUNCTIONS.add("TopK")
def topk(g, inp, k, *, mode):
    """Returns the ``k`` smallest elements, for negative ``k`` the largest. KTH_ONLY returns the last only."""
    kth_only = str(mode).upper() == "KTH_ONLY"
    values, indices = sorting.topk(g, inp, k, False, kth_only)
    return values if kth_only else [values, indices]


@FUNCTIONS.add("Cumsum")
def cumsum(g, inp, *, axis, exclusive=True, reverse=False):
    """``exclusive`` sums leave out the element itself, ``reverse`` ones start at the end."""
    where = axis_of(g, inp, axis)
    x = g.call("aten::flip", inp, [where]) if reverse else inp
    if exclusive:
        x = g.call("aten::slice", x, where, 0, g.type(x).shape[where] - 1, 1)
        x = g.call("aten::pad", x, [int(i == 2 * where) for i in range(2 * rank(g, x))])
    x = tensor.cumsum(g, x, where)
    return g.call("aten::flip", x, [where]) if reverse else x


@FUNCTIONS.add("MaskedFill")
def masked_fill(g, inp, mask, *, value):
    """``value`` where the mask of the leading axes is true."""
    shape = [*g.type(mask).shape, *[1] * (rank(g, inp) - rank(g, mask))]
    return g.call("aten::where", reshaped(g, mask, shape), g.constant(value, g.type(inp).dtype), inp)


@FUNCTIONS.add("ParamPackConcat")
def param_pack_concat(g, *inputs, offsets=None):
    """Flattens and concatenates tensors; the last operand has the ``offsets`` of their starts and ends."""
    parts = [reshaped(g, each, [-1]) for each in inputs[:-1]]
    _check_packed(offsets, [g.type(each).shape[0] for each in parts])
    return tensor.concat(g, parts, 0)


@FUNCTIONS.add("ParamPackSplit")
def param_pack_split(g, inp, *, offsets, shapes):
    _check_packed(offsets, [prod(shape) for shape in shapes])
    parts = tensor.split(g, inp, list(offsets[1:-1:2]), 0)
    return [reshaped(g, part, list(shape)) for part, shape in zip(parts, shapes, strict=True)]


def _check_packed(offsets: Any, sizes: list[int]) -> None:
    ends = list(itertools.accumulate(sizes))
    if list(offsets) != [place for pair in zip([0, *ends], ends, strict=False) for place in pair]:
        raise Refusal(f"offsets {offsets} with gaps are not supported")


@FUNCTIONS.add("Dropout")
def dropout(g, inp, **state):
    """The identity: a conversion is for inference. The second result, a mask, is used in training only."""
    return [inp, None]


# ---- creation


@FUNCTIONS.add("Fill")
def fill(g, shape, *, value, dtype, comp_node=None):
    return creation.full(g, shape, value, np.dtype(dtype))


@FUNCTIONS.add("Eye")
def eye(g, shape, *, dtype, k=0, comp_node=None):
    return creation.identity(g, static_ints(g, shape), k, np.dtype(dtype))


@FUNCTIONS.add("Linspace")
def linspace(g, start, stop, num, *, endpoint=True, comp_node=None):
    if endpoint:
        return creation.linspace(g, start, stop, num)
    count = static_int(g, cast(g, num, np.int32), "a number of steps")
    return tensor.split(g, creation.linspace(g, start, stop, count + 1), [count])[0]


# ---- elements picked by indices


@FUNCTIONS.add("IndexingOneHot")
def indexing_one_hot(g, inp, index, *, axis, ndim=0):
    return lookup.indexing_one_hot(g, inp, index, axis, True)


@FUNCTIONS.add("IndexingSetOneHot")
def indexing_set_one_hot(g, inp, index, value, *, axis, ndim=0):
    """``index`` lacks the axis ``axis``; ``value`` has extent 1 there."""
    where = axis_of(g, inp, axis)
    return rearranging.scatter(g, inp, where, reshaped(g, index, g.type(value).shape), value)
