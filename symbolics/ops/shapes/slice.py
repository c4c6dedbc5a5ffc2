"""aten::slice and aten::select along one axis, at static positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.symbolic.clamps import unclamped
from tmconvert.ir.symbolic.data_dependent import data_symbols, found
from tmconvert.ir.symbolic.dims import Dim, example, is_symbolic, same_size
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import SOURCE, LayoutRule, any_with
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, integer
from tmconvert.symbolics.results import around, normalized_axis
from tmconvert.symbolics.traits import (
    AlongAxis,
    Identity,
    KeepsQparams,
    Selected,
    SelectsElements,
    Slices,
    View,
)

Array = np.ndarray

TFLITE_RANK = 5  # of SLICE and STRIDED_SLICE


def _slice_result(x: TensorType, dim: int, start: int, end: int, step: int) -> TensorType:
    axis = normalized_axis(dim, x.rank)
    if data_symbols(x.shape[axis]):
        count = _count_of_unknown(x.shape[axis], start, end, step)
    elif 0 <= start <= end <= x.shape[axis] and step >= 1:
        count = -((start - end) // step)
    elif step == 1 and data_symbols([start, end]):  # the data tells that it is within the axis
        count = end - start
    else:
        raise ValueError(f"{start}:{end}:{step} is not a valid slice of axis {dim} of {x}")
    return TensorType(x.dtype, (*x.shape[:axis], count, *x.shape[axis + 1 :]))


def _count_of_unknown(extent: Any, start: int, end: Any, step: int) -> Any:
    """Returns the symbolic length of a slice of a data-dependent extent."""
    if start < 0 or step < 1:
        raise ValueError(f"{start}:{end}:{step} is not a valid slice of {extent} elements")
    if same_size(end, extent):
        return -((start - end) // step) if start == 0 else found(extent)
    return found(min(example(extent), example(end)))


def _slice_layout(x: TensorType, dim: int, start: int, end: int, step: int) -> LayoutRule:
    return any_with(dim="axis") if x.rank == 4 else SOURCE


def _select_result(x: TensorType, dim: int, index: int) -> TensorType:
    axis = normalized_axis(dim, x.rank)
    if index < 0 or not (data_symbols(x.shape[axis]) or index < x.shape[axis]):
        raise ValueError(f"{index} is not a valid index of axis {dim} of {x}")
    return TensorType(x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :]))


def _select_layout(x: TensorType, dim: int, index: int) -> LayoutRule:
    """Supports any layout in which channels-last keeps the order of the remaining axes."""
    return any_with(dim="axis") if x.rank == 4 and dim % 4 == 1 else SOURCE


slice_ = Op(
    "aten::slice",
    args=[Tensor("x", ANY_DTYPE), integer("dim"), integer("start"), integer("end"), integer("step", 1)],
    result=_slice_result,
    layout=_slice_layout,
    traits=[Slices(), AlongAxis(), KeepsQparams(), SelectsElements(), Identity(lambda **_: True)],
)
select = Op(
    "aten::select",
    args=[Tensor("x", ANY_DTYPE), integer("dim"), integer("index")],
    result=_select_result,
    layout=_select_layout,
    traits=[View(lambda rank, dim, index: [Selected(dim % rank, index)]), KeepsQparams(), SelectsElements()],
)
OPS = [slice_, select]


@slice_.reference
def slice_ref(x: Array, dim: int, start: int, end: int, step: int) -> Array:
    """The elements ``start``, ``start + step``, ... below ``end`` along ``dim``."""
    return np.swapaxes(np.swapaxes(x, 0, dim)[start:end:step], 0, dim)


LAST = (1 << 63) - 1  # to ONNX, as far as there are elements


def _counted(bound: Any, extent: Any) -> Any:
    """Converts a symbolic bound from the end to a number, where possible."""
    bound = unclamped(bound, extent)
    distance = bound - extent if isinstance(bound, Dim) else None
    return LAST if distance == 0 else distance if isinstance(distance, int) and distance < 0 else bound


@slice_.onnx(since=11)
def slice_onnx11(g, x, dim, start, end, step):
    start, end = (_counted(bound, x.shape[dim]) for bound in (start, end))
    return slice_onnx10(g, x, dim, start, end, step)


@slice_.onnx(since=10)  # the bounds are inputs, with steps
def slice_onnx10(g, x, dim, start, end, step):
    constant = not is_symbolic((start, end))
    if g.graph.version == 10 and constant and isinstance(x.shape[dim], Dim):
        g.refuse("at opset 10, ONNX infers for a slice with constant bounds the size of its operand")
    return g.op("Slice", x, *(g.ints([value]) for value in (start, end, dim % len(x.shape), step)))


@slice_.onnx(since=1)
def slice_onnx1(g, x, dim, start, end, step):
    axis = dim % len(x.shape)
    if step == 1:
        start, end = (_counted(bound, x.shape[dim]) for bound in (start, end))
    if step != 1:
        if data_symbols(x.shape[axis]):
            g.refuse(f"ONNX Slice has no steps at opset {g.graph.version}", "use --opset 10 or later")
        return g.op("Gather", x, g.ints(range(start, end, step)), axis=axis)
    return g.op("Slice", x, axes=[axis], starts=[start], ends=[end])


@slice_.tflite()
def slice_tflite(g, x, dim, start, end, step):
    x, axis = _low_rank(g, x, dim % len(x.shape))
    if data_symbols(x.shape[axis]):  # STRIDED_SLICE stops at the end
        bounds = [
            [value if i == axis else other for i in range(len(x.shape))]
            for value, other in ((start, 0), (end, 0), (step, 1))
        ]
        mask = sum(1 << i for i in range(len(x.shape)) if i != axis)
        return g.op("STRIDED_SLICE", x, *map(g.ints, bounds), end_mask=mask, shape=g.result_types[0].shape)
    begin, ends, strides = [0] * len(x.shape), list(x.shape), [1] * len(x.shape)
    begin[axis], ends[axis], strides[axis] = start, end, step
    shape = [-((low - high) // by) for low, high, by in zip(begin, ends, strides, strict=True)]
    if step == 1:
        part = g.op("SLICE", x, g.ints(begin), g.ints(shape), shape=shape)
    else:
        part = g.op("STRIDED_SLICE", x, g.ints(begin), g.ints(ends), g.ints(strides), shape=shape)
    return idioms.tflite.reshaped(g, part, g.result_types[0].shape)


def _low_rank(g: Any, x: Any, axis: int) -> tuple[Any, int]:
    """Reshapes ``x`` to a rank that TFLite can slice; returns it with the position of ``axis``."""
    if len(x.shape) <= TFLITE_RANK:
        return x, axis
    return idioms.tflite.reshaped(g, x, around(x.shape, axis, axis + 1)), 1


@slice_.caffe()
def slice_caffe(g, x, dim, start, end, step):
    axis, result = dim % len(x.shape), g.result_types[0].shape
    count = result[axis]
    if count == 0:
        g.refuse("a Caffe blob cannot be empty")
    x = idioms.caffe.sliced(g, x, axis, start, start + (count - 1) * step + 1)
    if step == 1 or count == 1:
        return x
    rows = idioms.caffe.as_rows(g, x, axis, axis + 1)  # windows of one element, with gaps between them
    rows = idioms.caffe.pooled(g, rows, "MAX", (1, 1), (step, 1), (0, 0), (count, rows.shape[3]))
    return idioms.caffe.reshaped(g, rows, result)


select.reference(lambda x, dim, index: np.asarray(x.take(index, dim)))
select.onnx(since=1)(lambda g, x, dim, index: g.op("Gather", x, g.ints(index), axis=dim % len(x.shape)))


@select.tflite()
def select_tflite(g, x, dim, index):
    x, axis = _low_rank(g, x, dim % len(x.shape))
    begin, size = [0] * len(x.shape), list(x.shape)
    begin[axis], size[axis] = index, 1
    part = g.op("SLICE", x, g.ints(begin), g.ints(size), shape=size)
    return idioms.tflite.reshaped(g, part, g.result_types[0].shape)


@select.caffe()
def select_caffe(g, x, dim, index):
    part = idioms.caffe.sliced(g, x, dim % len(x.shape), index, index + 1)
    return idioms.caffe.reshaped(g, part, g.result_types[0].shape)
