"""aten::_unique2, unique_dim and unique_consecutive."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir.symbolic.data_dependent import found
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.indices import numbers
from tmconvert.symbolics.idioms.matrices import line, repeated
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, boolean, integer
from tmconvert.symbolics.ops.reductions.sort import topk_tflite
from tmconvert.symbolics.results import normalized_axis

Array = np.ndarray

INT64 = np.dtype(np.int64)


def _result(x: TensorType, **_: Any) -> list[TensorType]:
    count = found(x.size)
    return [TensorType(x.dtype, (count,)), TensorType(INT64, x.shape), TensorType(INT64, (count,))]


_OF_NONE = ("unique of an empty tensor is not supported", "remove the call")


def _parts(x: TensorType, dim: int, **_: Any) -> list[TensorType]:
    axis = normalized_axis(dim, x.rank)
    count = found(x.shape[axis])
    parts = TensorType(x.dtype, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    return [parts, TensorType(INT64, (x.shape[axis],)), TensorType(INT64, (count,))]


unique2 = Op(
    "aten::_unique2",
    args=[
        Tensor("x", ANY_DTYPE), boolean("sorted", True), boolean("return_inverse", False),
        boolean("return_counts", False),
    ],
    result=_result,
)  # fmt: skip
unique_dim = Op(
    "aten::unique_dim",
    args=[
        Tensor("x", ANY_DTYPE), integer("dim"), boolean("sorted", True), boolean("return_inverse", False),
        boolean("return_counts", False),
    ],
    result=_parts,
)  # fmt: skip
unique_consecutive = Op(
    "aten::unique_consecutive",
    args=[Tensor("x", ANY_DTYPE), boolean("return_inverse", False), boolean("return_counts", False)],
    result=_result,
)
OPS = [unique2, unique_dim, unique_consecutive]


@unique2.reference
def unique2_ref(x: Array, sorted: bool, return_inverse: bool, return_counts: bool) -> list[Array]:
    """Returns sorted distinct elements, the inverse indices, and counts.

    All three are always returned, in order even without ``sorted``. NaNs are distinct elements, except in
    ONNX Runtime.
    """
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, equal_nan=False)
    return [values, inverse.reshape(x.shape).astype(INT64), counts.astype(INT64)]


@unique2.onnx(since=11)
def unique2_onnx11(g, x, sorted, return_inverse, return_counts):
    values, inverse, _ = g.result_types
    size = math.prod(x.shape)
    if 0 in x.shape:
        g.refuse(*_OF_NONE)
    made = g.op("Unique", x, sorted=1, shapes=[values.shape, values.shape, (size,), values.shape])
    for value in made[1:]:
        value.dtype = INT64
    return [made[0], g.op("Reshape", made[2], g.ints(list(inverse.shape)), shape=inverse.shape), made[3]]


@unique_dim.reference
def unique_dim_ref(
    x: Array, dim: int, sorted: bool, return_inverse: bool, return_counts: bool
) -> list[Array]:
    """Returns distinct slices along ``dim`` in lexicographic order, inverse indices, and counts."""
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    return [values, inverse.reshape(-1).astype(INT64), counts.astype(INT64)]


@unique_dim.onnx(since=11)
def unique_dim_onnx11(g, x, dim, sorted, return_inverse, return_counts):
    values, inverse, counts = (type_.shape for type_ in g.result_types)
    axis = normalized_axis(dim, len(x.shape))
    made = g.op("Unique", x, axis=axis, sorted=1, shapes=[values, counts, inverse, counts])
    for value in made[1:]:
        value.dtype = INT64
    return [made[0], *made[2:]]


@unique_dim.decompose(onnx=11)
def unique_dim_ordered(g, x, dim, sorted, return_inverse, return_counts):
    """Runs begin where adjacent sorted slices differ."""
    given = Term(g, x)
    shape = given.type.shape
    if 0 in shape:
        raise Refusal(*_OF_NONE)
    axis = normalized_axis(dim, len(shape))
    count, kept = shape[axis], [other for other in range(len(shape)) if other != axis]
    width = math.prod(shape[other] for other in kept)
    comparable = given.to(np.int32) if given.dtype == np.bool_ else given
    columns = comparable.permute(dims=[*kept, axis]).reshape(shape=[width, count])
    order = _in_order(columns)
    ordered = line(columns, -1, order)
    differ = ordered.slice(dim=1, start=1, end=count).ne(ordered.slice(dim=1, start=0, end=count - 1))
    first, others = numbers(g, 0, 1), numbers(g, 1, count)
    begins = differ.any(dim=[0]).where(Term(g, others), 0)
    run, _ = g.call("aten::cummax", g.call("aten::cat", [first, begins.value], 0), 0)
    starts, number, counts = g.call("aten::unique_consecutive", run, True, True)
    _, places = g.call("aten::sort", order.value)
    values = line(given, axis, line(order, 0, Term(g, starts)))
    return [values.value, line(Term(g, number), 0, Term(g, places)).value, counts]


def _in_order(columns: Term) -> Term:
    """Returns int32 sorting permutation of slices, sorted by one element after the other, the last first."""
    g, (width, count) = columns.g, columns.type.shape

    def by_element(k: Term, order: Term, columns: Term) -> list[Term]:
        elements = line(line(columns, -2, (width - 1) - k), -1, order)
        _, moved = k.g.call("aten::sort", elements.value, -1, False, True)
        return [line(order, 0, Term(k.g, moved).reshape(shape=[count]))]

    first = Term(g, numbers(g, 0, count)).to(np.int32)
    return repeated(g, width, by_element, [first], [columns])[0]


def _starts(x: Array) -> Array:
    flat = x.reshape(-1)
    return np.concatenate([np.ones(min(flat.size, 1), bool), flat[1:] != flat[:-1]])


@unique_consecutive.reference
def unique_consecutive_ref(x: Array, return_inverse: bool, return_counts: bool) -> list[Array]:
    """Returns one element per run, inverse indices, and run lengths."""
    starts = _starts(x)
    places = np.flatnonzero(starts)
    inverse = (np.cumsum(starts) - 1).reshape(x.shape)
    counts = np.diff(np.append(places, x.size))
    return [x.reshape(-1)[places], inverse.astype(INT64), counts.astype(INT64)]


@unique_consecutive.onnx(since=11)  # CumSum
def unique_consecutive_onnx11(g, x, return_inverse, return_counts):
    values, inverse, _ = g.result_types
    size = math.prod(x.shape)
    if isinstance(size, int) and size == 0:
        g.refuse("unique_consecutive of an empty tensor is not supported", "remove the call")
    flat = g.op("Reshape", x, g.ints([-1]), shape=(size,))
    after = _part(g, flat, 1, size, size - 1)
    before = _part(g, flat, 0, -1, size - 1)
    same = g.op("Equal", after, before, dtype="bool")
    changed = g.op("Not", same)
    edge = g.const(np.array([True]))
    starts = g.op("Concat", edge, changed, axis=0, shape=(size,))
    ends = g.op("Concat", changed, edge, axis=0, shape=(size,))
    first, last = (_places(g, each, values.shape) for each in (starts, ends))
    number = g.op("CumSum", g.cast(starts, "int64"), g.ints(0))
    number = g.op("Sub", number, g.ints(1))
    counts = g.op("Add", g.op("Sub", last, first), g.ints(1))
    return [
        g.op("Gather", flat, first, axis=0, shape=values.shape),
        g.op("Reshape", number, g.ints(list(inverse.shape)), shape=inverse.shape),
        counts,
    ]


def _part(g: Any, flat: Any, start: int, end: Any, count: Any) -> Any:
    return g.op("Slice", flat, *(g.ints([each]) for each in (start, end, 0)), shape=(count,))


def _places(g: Any, mask: Any, shape: Any) -> Any:
    rows = g.op("NonZero", mask, shape=(1, *shape), dtype=INT64)
    return g.op("Reshape", rows, g.ints([-1]), shape=shape)


@unique_consecutive.tflite()
def unique_consecutive_tflite(g, x, return_inverse, return_counts):
    values, inverse, _ = g.result_types
    parts, number, counts = _runs_tflite(g, idioms.tflite.reshaped(g, x, (math.prod(x.shape),)), values.shape)
    return [parts, idioms.tflite.reshaped(g, number, inverse.shape), counts]


def _runs_tflite(g: Any, flat: Any, shape: Any) -> list[Any]:
    """Returns one element per run, int64 inverse indices, and run lengths."""
    (size,) = flat.shape
    if isinstance(size, int) and size == 0:
        g.refuse("unique_consecutive of an empty tensor is not supported", "remove the call")
    end, edge = g.const(np.zeros(1, flat.dtype)), g.const(np.array([True]))
    changed = g.op("NOT_EQUAL", flat, _shifted(g, [flat, end], 1, size), dtype=bool)
    starts = _shifted(g, [edge, changed], 0, size)
    ends = _shifted(g, [starts, edge], 1, size)
    first, last = (
        idioms.tflite.reshaped(g, g.op("WHERE", each, shape=(*shape, 1), dtype=INT64), shape)
        for each in (starts, ends)
    )
    one = g.const(np.array(1, INT64))
    number = g.op("CUMSUM", g.cast(starts, INT64), g.ints(0), exclusive=False, reverse=False)
    counts = g.op("ADD", g.op("SUB", last, first), one)
    return [g.op("GATHER", flat, first, axis=0, shape=shape), g.op("SUB", number, one), counts]


def _shifted(g: Any, parts: list[Any], first: int, size: Any) -> Any:
    """Returns ``size`` elements from ``first`` on of two tensors that have one more."""
    joined = g.op("CONCATENATION", *parts, axis=0, shape=(size + 1,))
    return g.op("SLICE", joined, g.ints([first]), g.ints([size]), shape=(size,))


@unique2.tflite()
def unique2_tflite(g, x, sorted, return_inverse, return_counts):
    values, inverse, _ = g.result_types
    size = math.prod(x.shape)
    flat = idioms.tflite.reshaped(g, x, (size,))
    wide = flat if x.dtype != np.bool_ else g.cast(flat, np.dtype(np.int32))
    ordered, order = topk_tflite(g, wide, size, 0, False, True)
    parts, number, counts = _runs_tflite(g, g.cast(ordered, x.dtype), values.shape)
    places = idioms.tflite.reshaped(g, order, (size, 1))
    inverted = g.op("SCATTER_ND", places, number, g.ints([size]), shape=(size,), dtype=INT64)
    return [parts, idioms.tflite.reshaped(g, inverted, inverse.shape), counts]


for _op in OPS:
    _op.unsupported("caffe", "a Caffe net has static sizes only")
