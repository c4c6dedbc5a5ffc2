"""aten::expand and aten::repeat."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.symbolic.dims import Dim
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, integers
from tmconvert.symbolics.traits import KeepsQparams, SelectsElements

Array = np.ndarray


def _expand_result(x: TensorType, size: list[int]) -> TensorType:
    """Shapes are aligned at the end, as in broadcasting; -1 keeps an extent."""
    new = len(size) - x.rank
    if new < 0:
        raise ValueError(f"{x} has more axes than {size}")
    shape = []
    for i, extent in enumerate(size):
        old = x.shape[i - new] if i >= new else 1
        if isinstance(extent, int) and extent == -1 and i >= new:
            extent = old
        if old != 1 and old != extent:
            raise ValueError(f"{x} does not broadcast to {size}")
        shape.append(extent)
    return TensorType(x.dtype, tuple(shape))


def _repeat_result(x: TensorType, repeats: list[int]) -> TensorType:
    new = len(repeats) - x.rank
    if new < 0 or any(count < 0 for count in repeats):
        raise ValueError(f"{repeats} must be one non-negative count per axis of {x}")
    shape = [count * extent for count, extent in zip(repeats, (*[1] * new, *x.shape), strict=True)]
    return TensorType(x.dtype, tuple(shape))


expand = Op(
    "aten::expand",
    args=[Tensor("x", ANY_DTYPE), integers("size")],
    result=_expand_result,
    traits=[KeepsQparams(), SelectsElements()],
)
repeat = Op(
    "aten::repeat",
    args=[Tensor("x", ANY_DTYPE), integers("repeats")],
    result=_repeat_result,
    traits=[KeepsQparams(), SelectsElements()],
)
OPS = [expand, repeat]


@expand.reference
def expand_ref(x: Array, size: list[int]) -> Array:
    """Broadcasts axes of extent 1, and inserts leading axes, up to ``size``."""
    shape = _expand_result(TensorType(x.dtype, x.shape), size).shape
    return np.ascontiguousarray(np.broadcast_to(x, shape)).reshape(shape)


@expand.onnx(since=8)
def expand_onnx8(g, x, size):
    """An extent of 1 keeps that of ``x``, so that an open size is computed only where it is repeated."""
    shape = g.result_types[0].shape
    aligned = (*[1] * (len(shape) - len(x.shape)), *x.shape)
    kept = [
        1 if isinstance(new, Dim) and old == new else new for old, new in zip(aligned, shape, strict=True)
    ]
    return g.op("Expand", x, g.ints(kept))


@expand.onnx(since=6)  # the numbers of copies became one input
def expand_onnx6(g, x, size):
    shape = g.result_types[0].shape
    aligned = (*[1] * (len(shape) - len(x.shape)), *x.shape)
    copies = [new if old == 1 else 1 for old, new in zip(aligned, shape, strict=True)]
    if aligned != x.shape:
        x = g.op("Reshape", x, g.ints(aligned), shape=aligned)
    return g.op("Tile", x, g.ints(copies), shape=shape)


expand.tflite()(lambda g, x, size: g.op("BROADCAST_TO", x, g.ints(g.result_types[0].shape)))


@repeat.reference
def repeat_ref(x: Array, repeats: list[int]) -> Array:
    """Repeats the whole of ``x`` ``repeats`` times along each axis; new axes are leading."""
    return np.tile(x, repeats)


@repeat.onnx(since=6)
def repeat_onnx6(g, x, repeats):
    aligned = (*[1] * (len(repeats) - len(x.shape)), *x.shape)
    if aligned != x.shape:
        x = g.op("Reshape", x, g.ints(aligned), shape=aligned)
    return g.op("Tile", x, g.ints(repeats))


@repeat.tflite()
def repeat_tflite(g, x, repeats):
    aligned = (*[1] * (len(repeats) - len(x.shape)), *x.shape)
    if aligned != x.shape:
        x = g.op("RESHAPE", x, g.ints(aligned), new_shape=list(aligned), shape=aligned)
    return g.op("TILE", x, g.ints(repeats))


expand.caffe()(lambda g, x, size: idioms.caffe.spread(g, x, g.result_types[0].shape))


@repeat.caffe()
def repeat_caffe(g, x, repeats):
    x = idioms.caffe.reshaped(g, x, idioms.caffe.padded_shape(x, len(repeats)))
    for axis, count in enumerate(repeats):
        shape = (*x.shape[:axis], count * x.shape[axis], *x.shape[axis + 1 :])
        if count == 0 or 0 in x.shape:
            g.refuse("a Caffe blob cannot be empty")
        if count > 1:
            block = (*x.shape[:axis], 1, *x.shape[axis:])
            x = idioms.caffe.reshaped(
                g, idioms.caffe.repeated(g, idioms.caffe.reshaped(g, x, block), axis, count), shape
            )
    return x
