"""Segments, distinct elements, sequences, diagonals, and random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.arguments import axis_of, cast, rank, reshaped, static_int, static_ints
from tmconvert.frontends.shared.distinct import first_places, order_of
from tmconvert.frontends.shared.suppression import reversed_sequences
from tmconvert.frontends.tflite.adapters.values import PREFIX, check_rank
from tmconvert.ir.emitter import Emitter

OPERATORS = Table(PREFIX)


@OPERATORS.add("SEGMENT_SUM")
def segment_sum(g, x, segments):
    """The numbers of segments are sorted, so that the last is the largest."""
    length = g.type(segments).shape[0]
    known = g.known(segments)
    last = int(known[-1]) if known is not None else None
    if last is None:
        last = static_int(
            g, g.call("aten::slice", segments, 0, length - 1, length, 1), "a number of segments"
        )
    return _folded(g, x, segments, last + 1, "sum")


def _declare(name: str, reduce: str) -> None:
    @OPERATORS.add(name)
    def unsorted_segments(g, x, segments, count):
        return _unsorted(g, x, segments, count, reduce)


_declare("UNSORTED_SEGMENT_SUM", "sum")
_declare("UNSORTED_SEGMENT_PROD", "prod")
_declare("UNSORTED_SEGMENT_MAX", "amax")
_declare("UNSORTED_SEGMENT_MIN", "amin")


def _unsorted(g: Emitter, x, segments, count, reduce: str) -> Any:
    """Elements of negative segments belong to none: they are put into one more, which is cut off."""
    number = static_int(g, count, "a number of segments")
    own, shape = rank(g, segments), list(g.type(x).shape)
    flat = reshaped(g, cast(g, segments, np.int64), [-1])
    is_out = g.call("aten::lt", flat, g.constant(0, np.int64))
    places = g.call("aten::where", is_out, g.constant(number, np.int64), flat)
    rows = reshaped(g, x, [g.type(flat).shape[0], *shape[own:]])
    made = _folded(g, rows, places, number + 1, reduce)
    return g.call("aten::slice", made, 0, 0, number, 1)


def _folded(g: Emitter, rows, places, count: Any, reduce: str) -> Any:
    """Combines the rows of each segment; a segment without rows has the neutral element."""
    type_ = g.type(rows)
    start = g.call("aten::expand", g.constant(_neutral(reduce, type_.dtype)), [count, *type_.shape[1:]])
    index = reshaped(g, cast(g, places, np.int64), [type_.shape[0], *[1] * (type_.rank - 1)])
    index = g.call("aten::expand", index, list(type_.shape))
    return g.call("aten::scatter_reduce", start, 0, index, rows, reduce)


def _neutral(reduce: str, dtype: np.dtype) -> np.ndarray:
    """Returns what LiteRT has for a segment without elements."""
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return np.array({"sum": 0, "prod": 1, "amax": limits.min, "amin": limits.max}[reduce], dtype)


@OPERATORS.add("BUCKETIZE")
def bucketize(g, x, *, boundaries=()):
    value = x if g.type(x).dtype.kind == "f" else cast(g, x, np.float32)
    return g.call("aten::bucketize", value, g.constant(np.asarray(boundaries, g.type(value).dtype)), True)


@OPERATORS.add("UNIQUE")
def unique(g, x):
    """Distinct elements in the order in which they occur first, and which one each element is."""
    check_rank(g, x, 1)
    values, inverse, counts = g.call("aten::_unique2", x, True, True, True)
    inverse = cast(g, inverse, np.int64)
    order = order_of(g, first_places(g, inverse, g.type(counts).shape[0]))
    return [
        g.call("aten::index_select", values, 0, order),
        g.call("aten::index_select", order_of(g, order), 0, inverse),
    ]


@OPERATORS.add("REVERSE_SEQUENCE")
def reverse_sequence(g, x, lengths, *, seq_dim=0, batch_dim=0):
    return reversed_sequences(g, x, lengths, axis_of(g, x, seq_dim), axis_of(g, x, batch_dim))


@OPERATORS.add("MATRIX_DIAG")
def matrix_diag(g, x):
    shape = list(g.type(x).shape)
    zero = g.constant(np.zeros((), g.type(x).dtype))
    return g.call("aten::where", _diagonal(g, shape[-1], shape[-1]), reshaped(g, x, [*shape, 1]), zero)


@OPERATORS.add("MATRIX_SET_DIAG")
def matrix_set_diag(g, x, diagonal):
    *outer, rows, columns = g.type(x).shape
    if (rows <= columns) is not True and (rows > columns) is not True:
        raise Refusal("the diagonal of matrices of open sizes is not supported")
    line = [rows, 1] if rows <= columns else [1, columns]
    return g.call("aten::where", _diagonal(g, rows, columns), reshaped(g, diagonal, [*outer, *line]), x)


def _diagonal(g: Emitter, rows: Any, columns: Any) -> Any:
    """Returns where the diagonal of a matrix is."""
    row, column = (g.call("aten::arange", 0, extent, 1) for extent in (rows, columns))
    return g.call("aten::eq", reshaped(g, row, [rows, 1]), reshaped(g, column, [1, columns]))


@OPERATORS.add("RANDOM_UNIFORM")
def random_uniform(g, shape, *, seed=0, seed2=0):
    return g.call("tm::random_uniform", static_ints(g, shape), g.stream())


@OPERATORS.add("RANDOM_STANDARD_NORMAL")
def random_standard_normal(g, shape, *, seed=0, seed2=0):
    return g.call("tm::random_normal", static_ints(g, shape), g.stream())
