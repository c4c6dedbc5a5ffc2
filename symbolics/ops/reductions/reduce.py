"""Reductions over axes: mean, sum, prod, amax, amin, logsumexp.

Without ``dim``, or with an empty one, they go over all axes. The result has the element type of ``x``:
ATen widens sums of integers, and sources say so with a cast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import SOURCE, LayoutRule, any_with
from tmconvert.symbolics.op import FLOATS, NUMBERS, Op, Tensor, boolean, integers
from tmconvert.symbolics.results import normalized_axis
from tmconvert.symbolics.traits import (
    Average,
    Homogeneous,
    Identity,
    IntegerSteps,
    KeepsQparams,
    Reduction,
    SelectsElements,
    Trait,
)

Array = np.ndarray


class Row(NamedTuple):
    """One op: kernel and dtypes, ONNX's operator, and the opset in which its axes became an input.

    ``onnx_axes_attribute`` says whether the operator is used below that opset, too.
    """

    kernel: Callable[..., Array]
    dtypes: tuple[str, ...]
    onnx: str
    onnx_axes_input: int
    tflite: str
    onnx_axes_attribute: bool = True


def _logsumexp(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """log of the sum of exp(x), shifted by the maximum to avoid overflow; -inf of no elements."""
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0).astype(x.dtype)
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis)


TABLE = {
    "mean": Row(np.mean, FLOATS, "ReduceMean", 18, "MEAN"),
    "sum": Row(np.sum, NUMBERS, "ReduceSum", 13, "SUM"),
    "prod": Row(np.prod, NUMBERS, "ReduceProd", 18, "REDUCE_PROD"),
    "amax": Row(np.max, NUMBERS, "ReduceMax", 18, "REDUCE_MAX"),
    "amin": Row(np.min, NUMBERS, "ReduceMin", 18, "REDUCE_MIN"),
    # OpenVINO ignores the attribute of ReduceLogSumExp and reduces all axes.
    "logsumexp": Row(_logsumexp, FLOATS, "ReduceLogSumExp", 18, "", onnx_axes_attribute=False),
}

_OF_ONE = Identity(lambda **_: True)  # where the type stays, each reduced axis has one element
TRAITS: dict[str, list[Trait]] = {
    "mean": [Reduction(), Homogeneous(), Average(), _OF_ONE],
    "sum": [Reduction(), Homogeneous(), _OF_ONE],
    "prod": [IntegerSteps(lambda g, **given: product_of_slices(g, **given))],
    "amax": [Reduction(), Homogeneous(), KeepsQparams(), SelectsElements(), _OF_ONE],
    "amin": [Reduction(), Homogeneous(), KeepsQparams(), SelectsElements(), _OF_ONE],
}


def reduced_axes(rank: int, dim: list[int] | None) -> list[int]:
    """Returns the reduced axes, sorted and non-negative."""
    if not dim:
        return list(range(rank))
    axes = sorted(normalized_axis(axis, rank) for axis in dim)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{dim} names an axis twice")
    return axes


def product_of_slices(g: Any, x: Any, dim: list[int] | None, keepdim: bool) -> Any:
    """Multiplies the slices along each axis, two by two."""
    result = reduced_type(g.type(x), dim, keepdim)
    for axis in reduced_axes(g.type(x).rank, dim):
        extent = g.type(x).shape[axis]
        if extent > MOST_FACTORS:
            raise Refusal(f"a product of {extent} slices is too large")
        parts = [g.call("aten::slice", x, axis, at, at + 1) for at in range(extent)]
        while len(parts) > 1:
            rest = parts[len(parts) - len(parts) % 2 :]
            parts = [g.call("aten::mul", a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)] + rest
        x = parts[0]
    return g.call("aten::reshape", x, list(result.shape))


def reduced_type(x: TensorType, dim: list[int] | None, keepdim: bool) -> TensorType:
    axes = reduced_axes(x.rank, dim)
    if keepdim:
        return TensorType(x.dtype, tuple(1 if i in axes else extent for i, extent in enumerate(x.shape)))
    return TensorType(x.dtype, tuple(extent for i, extent in enumerate(x.shape) if i not in axes))


def _layout(x: TensorType, dim: list[int] | None, keepdim: bool) -> LayoutRule:
    """Supports any layout in which channels-last keeps the order of the remaining axes."""
    if x.rank != 4:
        return SOURCE
    axes = reduced_axes(4, dim)
    in_order = 1 in axes or {2, 3} <= set(axes)
    return any_with(dim="axes") if keepdim or in_order else SOURCE


def _op(name: str) -> Op:
    row = TABLE[name]
    op = Op(
        f"aten::{name}",
        args=[Tensor("x", row.dtypes), integers("dim", None), boolean("keepdim", False)],
        result=reduced_type,
        layout=_layout,
        traits=TRAITS.get(name, []),
    )

    @op.reference
    def reduce_ref(x: Array, dim: list[int] | None, keepdim: bool) -> Array:
        result = row.kernel(x, axis=tuple(reduced_axes(x.ndim, dim)), keepdims=keepdim)
        return np.asarray(result).astype(x.dtype)

    def reduce_onnx1(g, x, dim, keepdim):
        return g.op(row.onnx, x, axes=_onnx_axes(x, dim), keepdims=int(keepdim))

    if row.onnx_axes_attribute:
        op.onnx(since=1)(reduce_onnx1)

    @op.onnx(since=row.onnx_axes_input)  # axes are an input
    def reduce_onnx13(g, x, dim, keepdim):
        axes = _onnx_axes(x, dim)
        return g.op(row.onnx, x, None if axes is None else g.ints(axes), keepdims=int(keepdim))

    def reduce_tflite(g, x, dim, keepdim):
        return g.op(row.tflite, x, g.ints(reduced_axes(len(x.shape), dim)), keep_dims=keepdim)

    if row.tflite:
        op.tflite()(reduce_tflite)
    return op


def _onnx_axes(x: Any, dim: list[int] | None) -> list[int] | None:
    """Returns None for all axes, also for those of a scalar."""
    axes = reduced_axes(len(x.shape), dim)
    return axes if len(axes) < len(x.shape) else None


# an Eltwise of more slices than this is no net that anybody wants
MOST_FACTORS = 64

REDUCE = {name: _op(name) for name in TABLE}
OPS = list(REDUCE.values())


def _is_of_none(shape: Any, dim: list[int] | None) -> bool:
    """Whether no elements are reduced: they have no maximum."""
    return any(isinstance(shape[axis], int) and shape[axis] == 0 for axis in reduced_axes(len(shape), dim))


REDUCE["logsumexp"].native_where("onnx")(lambda x, dim, keepdim: not _is_of_none(x.shape, dim))


@REDUCE["logsumexp"].decompose
def logsumexp_shifted(g, x, dim, keepdim):
    """max + log(sum(exp(x - max))), with a finite number in place of an infinite maximum."""
    type_ = g.type(x)
    largest, is_empty = float(np.finfo(type_.dtype).max), _is_of_none(type_.shape, dim)
    top = g.constant(0, type_.dtype) if is_empty else g.call("aten::amax", x, dim, True)
    top = g.call("aten::clamp", top, -largest, largest)
    total = g.call("aten::sum", g.call("aten::exp", g.call("aten::sub", x, top)), dim, True)
    result = g.call("aten::add", top, g.call("aten::log", total))
    shape = reduced_type(type_, dim, keepdim).shape
    return result if keepdim else g.call("aten::reshape", result, list(shape))


def _pooled(g: Any, x: Any, dim: list[int] | None, method: str) -> Any:
    """Reduces ``x`` by one Pooling layer per run of adjacent axes, then reshapes.

    OpenCV has no Reduction layer, and BVLC's takes trailing axes alone.
    """
    target = g.result_types[0].shape
    axes = [axis for axis in reduced_axes(len(x.shape), dim) if x.shape[axis] != 1]
    for first, end in _runs(axes):
        shape = (*x.shape[:first], *[1] * (end - first), *x.shape[end:])
        if len(x.shape) == 4 and first >= 2:
            kernel = [x.shape[2] if first == 2 else 1, x.shape[3] if end == 4 else 1]
            x = idioms.caffe.pooled(g, x, method, kernel, (1, 1), (0, 0), shape[2:])
            continue
        rows = idioms.caffe.as_rows(g, x, first, end)
        extent, inner = rows.shape[2:]
        x = idioms.caffe.pooled(g, rows, method, (extent, 1), (1, 1), (0, 0), (1, inner))
        x = idioms.caffe.reshaped(g, x, shape)
    return idioms.caffe.reshaped(g, x, target)


def _runs(axes: list[int]) -> list[tuple[int, int]]:
    """Returns [first, end) of each run of adjacent axes.

    >>> _runs([0, 2, 3])
    [(0, 1), (2, 4)]
    """
    runs: list[tuple[int, int]] = []
    for axis in axes:
        if runs and runs[-1][1] == axis:
            runs[-1] = (runs[-1][0], axis + 1)
        else:
            runs.append((axis, axis + 1))
    return runs


REDUCE["mean"].caffe()(lambda g, x, dim, keepdim: _pooled(g, x, dim, "AVE"))


@REDUCE["sum"].caffe()
def sum_caffe(g, x, dim, keepdim):
    count = int(np.prod([x.shape[axis] for axis in reduced_axes(len(x.shape), dim)]))
    mean = _pooled(g, x, dim, "AVE")
    return g.op("Power", mean, scale=float(count)) if count != 1 else mean


REDUCE["amax"].caffe()(lambda g, x, dim, keepdim: _pooled(g, x, dim, "MAX"))


@REDUCE["amin"].caffe()
def amin_caffe(g, x, dim, keepdim):
    return g.op("Power", _pooled(g, g.op("Power", x, scale=-1.0), dim, "MAX"), scale=-1.0)


@REDUCE["prod"].caffe()
def prod_caffe(g, x, dim, keepdim):
    """Emits one Eltwise product of the slices along each axis."""
    for axis in reduced_axes(len(x.shape), dim):
        extent = x.shape[axis]
        if extent > MOST_FACTORS:
            g.refuse(f"Caffe has no product reduction, and emulating it with {extent} slices is too large")
        if extent > 1:
            parts = idioms.caffe.cut(g, x, axis, range(1, extent))
            x = g.op("Eltwise", *parts, operation="PROD", shape=parts[0].shape)
    return idioms.caffe.reshaped(g, x, g.result_types[0].shape)
