"""Tensor factory functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.shapes import views
from tmconvert.frontends.torch.adapters.shapes.sizes import FunctionOfSizes, as_quotient
from tmconvert.frontends.torch.adapters.values import (
    DEFAULT,
    SizeFloat,
    cast,
    dtype_called,
    is_tensor,
    kind_of,
    static_int,
    static_ints,
    varargs,
)
from tmconvert.ir.complex_values import PART_NAMES, Complex
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.clamps import maximum, minimum
from tmconvert.ir.symbolic.dims import Dim, Size, is_symbolic
from tmconvert.symbolics.idioms.formulas import Term

ATEN, METHODS = Table(), Table()

MOST = 1 << 26  # numbers in a row


def filled(g: Emitter, size: Any, value: Any, dtype: Any) -> Any:
    """Returns a tensor of shape ``size`` filled with one value; for a complex dtype a Complex."""
    if kind_of(np.dtype(dtype)) == 3:
        if is_tensor(value):
            raise Refusal("a complex tensor that is filled with the element of a tensor is not supported")
        number, part = complex(value), np.dtype(PART_NAMES[np.dtype(dtype).name])
        return Complex(filled(g, size, number.real, part), filled(g, size, number.imag, part))
    if is_tensor(value):
        scalar = cast(g, value, dtype)
    else:
        dtype = np.dtype(dtype)
        is_plain = kind_of(dtype) < 2 and not is_symbolic(value)
        scalar = g.constant(np.asarray(value).astype(dtype) if is_plain else value, dtype)
    return views.expand(g, scalar, static_ints(g, size))


def _dtype(dtype: Any, default: Any) -> np.dtype:
    return np.dtype(default) if dtype is None else dtype_called(dtype)


def _of_number(g: Emitter, value: Any) -> np.dtype:
    if is_tensor(value):
        return g.type(value).dtype
    return {bool: np.dtype(bool), float: DEFAULT}.get(type(value), np.dtype(np.int64))


def _constant(name: str, value: int) -> None:
    """``zeros(2, 3)``, ``zeros((2, 3))``, ``zeros_like(x)`` and ``x.new_zeros(2, 3)``."""

    def made(g, *size, dtype=None, **options):
        sizes = options["size"] if "size" in options else varargs(size)
        return filled(g, sizes, value, _dtype(dtype, DEFAULT))

    def made_like(g, input, *, dtype=None, **options):
        type_ = g.type(input)
        return filled(g, list(type_.shape), value, _dtype(dtype, type_.dtype))

    def new(g, self, *size, dtype=None, **options):
        sizes = options["size"] if "size" in options else varargs(size)
        return filled(g, sizes, value, _dtype(dtype, g.type(self).dtype))

    ATEN.add(name)(made)
    ATEN.add(f"{name}_like")(made_like)
    ATEN.add(f"new_{name}")(new)


_constant("zeros", 0)
_constant("ones", 1)
_constant("empty", 0)


@ATEN.add("full")
def full(g, size, fill_value, *, dtype=None, **options):
    return filled(g, size, fill_value, _dtype(dtype, _of_number(g, fill_value)))


@ATEN.add("full_like")
def full_like(g, input, fill_value, *, dtype=None, **options):
    type_ = g.type(input)
    return filled(g, list(type_.shape), fill_value, _dtype(dtype, type_.dtype))


@ATEN.add("new_full")
def new_full(g, self, size, fill_value, *, dtype=None, **options):
    return filled(g, size, fill_value, _dtype(dtype, g.type(self).dtype))


@ATEN.add("_efficientzerotensor")
def efficient_zeros(g, size, *, dtype=None, **options):
    return filled(g, size, 0, _dtype(dtype, DEFAULT))


@ATEN.add("empty_strided", "empty_permuted")
def empty_strided(g, size, stride=None, *, dtype=None, **options):
    return filled(g, size, 0, _dtype(dtype, DEFAULT))


@ATEN.add("new_empty_strided")
def new_empty_strided(g, self, size, stride, *, dtype=None, **o):
    return filled(g, size, 0, _dtype(dtype, g.type(self).dtype))


# ---- of Python's numbers


@ATEN.add("tensor", "as_tensor", "asarray", "scalar_tensor")
def tensor(g, data, *, dtype=None, **options):
    """Builds a tensor from numbers, sizes and one-element tensors, nested in lists."""
    if is_tensor(data):
        return data if dtype is None else cast(g, data, dtype_called(dtype))
    flat, shape = _unnested(data)
    flat = [each.as_tensor(g) if isinstance(each, SizeFloat) else each for each in flat]
    kinds = [_of_number(g, each) for each in flat] or [DEFAULT]
    wanted = _dtype(dtype, max(kinds, key=kind_of))
    if not any(is_tensor(each) for each in flat):
        return views.view(g, g.constant(flat, wanted), shape)
    parts = [
        views.view(g, cast(g, each if is_tensor(each) else g.constant(each), wanted), [1]) for each in flat
    ]
    return views.view(g, parts[0] if len(parts) == 1 else g.call("aten::cat", parts, 0), shape)


@METHODS.add("new_tensor")
def new_tensor(g, self, data, *, dtype=None, **options):
    return cast(g, tensor(g, data), _dtype(dtype, g.type(self).dtype))


def _unnested(data) -> tuple[list[Any], list[int]]:
    if not isinstance(data, (list, tuple)):
        return [data], []
    rows = [_unnested(each) for each in data]
    return [each for row, _ in rows for each in row], [len(rows), *(rows[0][1] if rows else [])]


# ---- numbers in a row


def _value(g, value):
    """Returns a number or a Dim, also from a tensor of rank 0."""
    if not is_tensor(value):
        return value
    known = g.sizes(value)
    if known is None:
        return static_int(g, value, "a bound of a range")
    item = known.reshape(-1)[0]
    return item if isinstance(item, Dim) else item.item()


@ATEN.add("arange")
def arange(g, *bounds, dtype=None, **options):
    """``arange(end)``, ``(start, end)``, ``(start, end, step)``: int64 unless one of them is a float."""
    given = [_value(g, each) for each in bounds]
    named = {key: _value(g, options[key]) for key in ("start", "end", "step") if key in options}
    places = ("start", "end", "step") if len(given) > 1 else ("end",)
    found = {"start": 0, "step": 1} | dict(zip(places, given, strict=False)) | named
    numbers = [found[key] for key in ("start", "end", "step")]
    is_dynamic = is_symbolic(numbers) or any(isinstance(each, SizeFloat) for each in numbers)
    has_float = any(isinstance(each, (float, SizeFloat)) for each in numbers)
    wanted = _dtype(dtype, DEFAULT if has_float else np.int64)
    if is_dynamic:
        whole = [int(each) if isinstance(each, float) and each.is_integer() else each for each in numbers]
        if any(isinstance(each, (float, SizeFloat)) for each in whole):
            return _dynamic_floats(g, numbers, wanted)
        return cast(g, g.call("aten::arange", *whole), wanted)
    if kind_of(wanted) < 2:  # torch rounds before it counts
        numbers, has_float = [int(each) for each in numbers], False
    start, end, step = numbers
    count = math.ceil((end - start) / step)
    _check_count(count)
    numbers = start + np.arange(count, dtype=np.float64 if has_float else np.int64) * step
    return g.constant(numbers.astype(wanted))


def _dynamic_floats(g: Emitter, numbers: list[Any], dtype: np.dtype) -> Any:
    """``start + i * step`` below ``end``, where the number of elements depends on dynamic sizes."""
    start, end, step = map(as_quotient, numbers)
    if is_symbolic(step.numerator) or kind_of(dtype) != 2:
        raise Refusal("a range of a dynamic number of fractions, in steps of a dynamic size or to integers")
    size = end.numerator * start.denominator - start.numerator * end.denominator
    size, unit = size * step.denominator, start.denominator * end.denominator * step.numerator
    if unit < 0:
        size, unit = -size, -unit
    places = Term(g, g.call("aten::arange", 0, maximum((size + unit - 1) // unit, 0))).to(dtype)
    first = Term(g, start.as_tensor(g)).to(dtype)
    return (places * (step.numerator / step.denominator) + first).value


@ATEN.add("range")
def range_(g, start, end, step=1, *, dtype=None, **options):
    """``torch.range``: includes the end, and returns floats."""
    count = math.floor((end - start) / step) + 1
    _check_count(count)
    return g.constant((start + np.arange(count) * float(step)).astype(_dtype(dtype, DEFAULT)))


def _check_count(count: int) -> None:
    if not 0 <= count <= MOST:
        raise Refusal(f"a range of {count} elements is not supported")


def _spaced(g: Emitter, start, end, steps, dtype: np.dtype) -> np.ndarray | Term:
    """Evenly spaced floats with both ends; for integer results the ends are rounded first, as in torch."""
    count, kind = static_int(g, steps), dtype if kind_of(dtype) == 2 else np.dtype(np.float64)
    if isinstance(count, Dim):
        places, rest = Term(g, g.call("aten::arange", 0, count)), Term(g, g.constant(count - 1))
        first, last = _bounds(g, start, end, kind)
        gaps = Term(g, g.constant(maximum(count - 1, 1)))  # one number has none
        span = last - first
        step = (span if isinstance(span, Term) else Term(g, g.constant(span, kind))) / gaps.to(kind)
        early = places.to(kind) * step + first
        if kind is dtype:
            return early
        return (places < maximum(count // 2, 1)).where(early, last - (rest - places).to(kind) * step)
    _check_count(count)
    given = [each.as_tensor(g) if isinstance(each, SizeFloat) else each for each in (start, end)]
    bounds = [each if not is_tensor(each) or g.known(each) is None else _value(g, each) for each in given]
    is_early = np.arange(count) < max(count // 2, count == 1)
    if not any(map(is_tensor, bounds)):
        first, last = (np.asarray(each).astype(dtype).astype(kind) for each in bounds)
        return np.where(is_early, *_from_both_ends(first, last, count, kind))
    first, last = (
        Term(g, cast(g, each if is_tensor(each) else g.constant(each), dtype)).to(kind) for each in bounds
    )
    return Term(g, g.constant(is_early)).where(*_from_both_ends(first, last, count, kind))


def _bounds(g: Emitter, start, end, dtype: np.dtype) -> list[Any]:
    """Returns both ends of a range as numbers, or as tensors where one is a fraction of a size."""
    if any(isinstance(each, SizeFloat) for each in (start, end)):
        return [
            Term(g, (each if isinstance(each, FunctionOfSizes) else as_quotient(each)).as_tensor(g)).to(dtype)
            for each in (start, end)
        ]
    return [_value(g, start), _value(g, end)]


def _from_both_ends(first: Any, last: Any, count: int, dtype: np.dtype) -> tuple[Any, Any]:
    places, step = np.arange(count).astype(dtype), (last - first) / max(count - 1, 1)
    return step * places + first, -(step * places[::-1]) + last


@ATEN.add("linspace")
def linspace(g, start, end, steps, *, dtype=None, **options):
    wanted = _dtype(dtype, DEFAULT)
    numbers = _spaced(g, start, end, steps, wanted)
    return cast(g, numbers.value, wanted) if isinstance(numbers, Term) else g.constant(numbers.astype(wanted))


@ATEN.add("logspace")
def logspace(g, start, end, steps, base=10.0, *, dtype=None, **options):
    """Powers of ``base``; results that are cast to integers are computed in float64."""
    wanted = _dtype(dtype, DEFAULT)
    numbers = _spaced(g, start, end, steps, wanted)
    kind = wanted if kind_of(wanted) == 2 else np.dtype(np.float64)
    if isinstance(numbers, Term):
        numbers = numbers.to(kind)
        return cast(g, numbers.like(base).pow(numbers).value, wanted)
    return g.constant(np.power(np.asarray(base, kind), numbers.astype(kind)).astype(wanted))


# ---- matrices


@ATEN.add("eye")
def eye(g, n, m=None, *, dtype=None, **options):
    rows, wanted = static_int(g, n), _dtype(dtype, DEFAULT)
    columns = rows if m is None else static_int(g, m)
    if not is_symbolic([rows, columns]):
        return g.constant(np.eye(int(rows), int(columns)).astype(wanted))
    places = [g.call("aten::arange", 0, extent) for extent in (rows, columns)]
    return cast(g, g.call("aten::eq", views.unsqueeze(g, places[0], 1), places[1]), wanted)


def _places_below(rows: Size, columns: Size, offset: Size) -> Size:
    """Returns how many elements of a matrix are on a diagonal or below it."""

    def first(count: Size) -> Size:  # rows of a triangle with its tip at the top
        rows_of_triangle = minimum(maximum(count, 0), columns)
        inside = rows_of_triangle * (rows_of_triangle + 1) // 2
        return inside + columns * maximum(count - columns, 0)

    return first(rows + offset) - first(offset)


def _triangle(name: str, indices: Any, compare: str) -> None:
    def adapter(g, row, col, offset=0, *, dtype=None, **options):
        rows, columns, wanted = static_int(g, row), static_int(g, col), _dtype(dtype, np.int64)
        if not is_symbolic([rows, columns, offset]):
            return g.constant(np.stack(indices(int(rows), offset, int(columns))).astype(wanted))
        diagonals = g.call("aten::add", g.call("aten::arange", 0, rows), g.constant(offset, np.int64))
        is_inside = g.call(compare, g.call("aten::arange", 0, columns), views.unsqueeze(g, diagonals, 1))
        count = _places_below(rows, columns, offset if name == "tril_indices" else offset - 1)
        count = count if name == "tril_indices" else rows * columns - count
        found = g.call("aten::nonzero", is_inside)  # as many as count, which Gather states without a check
        places = g.call("aten::index_select", found, 0, g.call("aten::arange", 0, count))
        return cast(g, g.call("aten::permute", places, [1, 0]), wanted)

    ATEN.add(name)(adapter)


_triangle("tril_indices", np.tril_indices, "aten::le")
_triangle("triu_indices", np.triu_indices, "aten::ge")
