"""aten::flip, aten::roll, aten::rot90 and aten::repeat_interleave."""

from __future__ import annotations

import math

import numpy as np

from tmconvert.ir.symbolic.clamps import maximum, minimum, positive
from tmconvert.ir.symbolic.data_dependent import data_symbols
from tmconvert.ir.symbolic.dims import Dim, Size, is_symbolic
from tmconvert.ir.symbolic.signs import may_be_zero, signs
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import SOURCE, LayoutRule, any_with
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, integer, integers
from tmconvert.symbolics.results import normalized_axis
from tmconvert.symbolics.traits import KeepsQparams, SelectsElements

Array = np.ndarray
_MOST_PARTS = 4  # of a roll of a dynamic axis


def _axes(x: TensorType, dims: list[int]) -> list[int]:
    axes = [normalized_axis(axis, x.rank) for axis in dims]
    if len({*axes}) != len(axes):
        raise ValueError(f"the axes {dims} repeat")
    return axes


def _flip_result(x: TensorType, dims: list[int]) -> TensorType:
    _axes(x, dims)
    return x


def _flip_layout(x: TensorType, dims: list[int]) -> LayoutRule:
    return any_with(dims="axes") if x.rank == 4 else SOURCE


def _roll_result(x: TensorType, shifts: list[int], dims: list[int]) -> TensorType:
    if len(shifts) != max(len(dims), 1):
        raise ValueError(f"the shifts {shifts} do not fit the axes {dims}")
    for axis in dims:
        normalized_axis(axis, x.rank)
    return x


def _rot90_result(x: TensorType, k: int, dims: list[int]) -> TensorType:
    first, second = _axes(x, dims)
    shape = list(x.shape)
    if k % 2:
        shape[first], shape[second] = shape[second], shape[first]
    return TensorType(x.dtype, tuple(shape))


def _interleave_result(x: TensorType, repeats: int, dim: int) -> TensorType:
    axis = normalized_axis(dim, x.rank)
    if repeats < 0:
        raise ValueError(f"the repeat count must be a non-negative integer, got {repeats}")
    return TensorType(x.dtype, (*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]))


flip = Op(
    "aten::flip",
    args=[Tensor("x", ANY_DTYPE), integers("dims")],
    result=_flip_result,
    layout=_flip_layout,
    traits=[KeepsQparams(), SelectsElements()],
)
roll = Op(
    "aten::roll",
    args=[Tensor("x", ANY_DTYPE), integers("shifts"), integers("dims", [])],
    result=_roll_result,
    traits=[KeepsQparams(), SelectsElements()],
)
rot90 = Op(
    "aten::rot90",
    args=[Tensor("x", ANY_DTYPE), integer("k", 1), integers("dims", [0, 1], length=2)],
    result=_rot90_result,
)
repeat_interleave = Op(
    "aten::repeat_interleave",
    args=[Tensor("x", ANY_DTYPE), integer("repeats"), integer("dim")],
    result=_interleave_result,
)
OPS = [flip, roll, rot90, repeat_interleave]


flip.reference(lambda x, dims: np.flip(x, tuple(dims)))


@flip.onnx(since=10)  # Slice takes negative steps
def flip_onnx10(g, x, dims):
    axes = [axis % len(x.shape) for axis in dims]
    if not axes:
        return g.op("Identity", x)
    # the end of a slice that goes down to the first element is below every index
    bounds = [[-1] * len(axes), [np.iinfo(np.int64).min] * len(axes), axes, [-1] * len(axes)]
    return g.op("Slice", x, *map(g.ints, bounds), shape=x.shape)


@flip.onnx(since=1)
def flip_onnx1(g, x, dims):
    for axis in [axis % len(x.shape) for axis in dims]:
        x = g.op("Gather", x, g.ints(range(x.shape[axis])[::-1]), axis=axis, shape=x.shape)
    return x if dims else g.op("Identity", x)


def _pads_channels(x):
    """Whether LiteRT's GPU, which computes in float, pads the last axis to a multiple of 4."""
    return x.dtype == np.float32 and not is_symbolic(x.shape) and x.shape[-1] % 4 != 0


@flip.tflite()
def flip_tflite(g, x, dims):
    for axis in [axis % len(x.shape) for axis in dims]:
        if x.dtype == np.float64:  # which REVERSE_V2 does not take
            x = g.op("GATHER", x, g.ints(range(x.shape[axis])[::-1]), axis=axis, shape=x.shape)
        elif axis == len(x.shape) - 1 and _pads_channels(x):
            # LiteRT 2.3's GPU reverses the padding, too
            columns = idioms.tflite.reshaped(g, x, (1, math.prod(x.shape[:-1]), x.shape[-1], 1))
            reversed_ = g.op("REVERSE_V2", columns, g.ints([2]), shape=columns.shape)
            x = idioms.tflite.reshaped(g, reversed_, x.shape)
        else:
            x = g.op("REVERSE_V2", x, g.ints([axis]), shape=x.shape)
    return x if dims else g.identity(x)


@roll.reference
def roll_ref(x: Array, shifts: list[int], dims: list[int]) -> Array:
    """Shifts elements by ``shifts`` positions, with wrap-around; without ``dims`` x is flattened."""
    return np.roll(x, shifts, dims) if dims else np.roll(x, shifts[0])


@roll.decompose
def roll_cut(g, x, shifts, dims):
    type_ = g.type(x)
    if not dims:
        row = g.call("aten::reshape", x, [type_.size])
        return g.call("aten::reshape", roll_cut(g, row, shifts, [0]), list(type_.shape))
    for shift, dim in zip(shifts, dims, strict=True):
        for cut in _cuts(type_.shape[dim], shift):
            front = g.call("aten::slice", x, dim, 0, cut)
            x = g.call("aten::cat", [g.call("aten::slice", x, dim, cut, type_.shape[dim]), front], dim)
    return x


def _cuts(extent: Size, shift: Size) -> list[Size]:
    """Returns the positions where to cut one after the other, and exchange both parts.

    A symbolic extent may be smaller than the shift, of which then the remainder counts. For a shift of 1 or 2
    the clamped position is that of the remainder, and larger shifts are made of these.
    """
    if not isinstance(extent, Dim):
        return [extent - shift % extent] if extent and shift % extent else []
    if data_symbols(extent) or isinstance(shift, Dim) or abs(shift) > _MOST_PARTS * 2:
        least = maximum(extent, 1) if may_be_zero(extent) else extent
        return [extent - shift % least]
    count = abs(shift)
    if signs(extent - count) <= {0, 1} and positive(extent - count) == extent - count:
        parts = [count] if count else []
    else:
        parts = [2] * (count // 2) + [1] * (count % 2)
    return [positive(extent - part) if shift > 0 else minimum(extent, part) for part in parts]


@rot90.reference
def rot90_ref(x: Array, k: int, dims: list[int]) -> Array:
    """Rotates ``k`` quarter turns from the first of ``dims`` to the second."""
    return np.rot90(x, k, (dims[0], dims[1]))


@rot90.decompose
def rot90_flipped(g, x, k, dims):
    first, second = (axis % g.type(x).rank for axis in dims)
    order = list(range(g.type(x).rank))
    order[first], order[second] = second, first
    if k % 4 == 0:
        return x
    if k % 4 == 2:
        return g.call("aten::flip", x, [first, second])
    if k % 4 == 1:
        return g.call("aten::permute", g.call("aten::flip", x, [second]), order)
    return g.call("aten::flip", g.call("aten::permute", x, order), [second])


@repeat_interleave.reference
def repeat_interleave_ref(x: Array, repeats: int, dim: int) -> Array:
    """Repeats each element ``repeats`` times."""
    return np.repeat(x, repeats, dim)


@repeat_interleave.decompose
def repeat_interleave_expanded(g, x, repeats, dim):
    shape, after = list(g.type(x).shape), dim % g.type(x).rank + 1
    apart = g.call("aten::reshape", x, [*shape[:after], 1, *shape[after:]])
    copies = g.call("aten::expand", apart, [*shape[:after], repeats, *shape[after:]])
    shape[after - 1] *= repeats
    return g.call("aten::reshape", copies, shape)


@flip.caffe()
def flip_caffe(g, x, dims):
    for axis in dims:
        x = idioms.caffe_numbers.flipped(g, x, axis % len(x.shape))
    return x
