"""Recovers arrays that Python or NumPy computes from sizes: indices ``list(range(n))``, ``np.arange(n)``,
``np.zeros((n, 8))``, ``np.linspace(0, 1, n)``.

Such an array is a constant in a trace. It is described by a few numbers, as all its elements are equal or
rise evenly along one axis: its sizes, the first element, and the step or the last one. These numbers follow
sizes by the rules of ``recovered_sizes.py``, and the array becomes the result of calls of torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Value
from tmconvert.ir.inert import GlobalRef
from tmconvert.ir.tree import Tree
from tmconvert.ir.types import Args

INDEXED = frozenset(("__getitem__", "__setitem__"))
ROUNDING = 1e-6  # of evenly spaced floats, relative to the largest
MOST_ELEMENTS = 1 << 22


class Series(NamedTuple):
    """An array whose elements are ``equal``, ``rising`` by a step along ``axis``, or ``spaced`` evenly there.

    ``elements`` are the first one, and the step or the last one; what this array does not show, such as the
    step of a single element, is left out.
    """

    kind: str
    axis: int
    dtype: str
    shape: tuple[int, ...]
    elements: tuple[float, ...]

    @property
    def numbers(self) -> tuple[float, ...]:
        """The sizes and the elements."""
        return (*self.shape, *self.elements)

    @property
    def is_complete(self) -> bool:
        return len(self.elements) == (1 if self.kind == "equal" else 2)


class IndexList:
    """A list of integers within an index, as one leaf of a tree."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers


def arguments_of(record: Record) -> tuple[Tree, Tree]:
    """Returns the arguments of a call; lists of integers within an index are one leaf each."""
    if record.name not in INDEXED or len(record.args) < 2:
        return record.args, record.kwargs
    tensor, index, *others = record.args
    parts = tuple(map(_as_leaf, index)) if isinstance(index, tuple) else _as_leaf(index)
    return (tensor, parts, *others), record.kwargs


def _as_leaf(part: Any) -> Any:
    is_list = isinstance(part, list) and part and all(type(number) is int for number in part)
    return IndexList(part) if is_list else part


def series_of(leaf: Any) -> Iterator[Series]:
    """Yields how a constant array, or a list of indices, can be described; one element fits several kinds."""
    if isinstance(leaf, IndexList):
        yield from _described(np.array(leaf.numbers), "int64")
    elif isinstance(leaf, Value) and leaf.captured is not None and _is_plain(leaf.captured):
        tensor = leaf.captured.detach()
        yield from _described(tensor.to(torch.float64).numpy(), str(tensor.dtype).removeprefix("torch."))


def _is_plain(tensor: Any) -> bool:
    return (
        type(tensor) is torch.Tensor
        and tensor.layout == torch.strided
        and tensor.dtype in (torch.int32, torch.int64, torch.float32, torch.float64)
        and tensor.dim() > 0
        and tensor.numel() <= MOST_ELEMENTS
    )


def _described(array: np.ndarray, dtype: str) -> Iterator[Series]:
    shape, firsts = array.shape, tuple(map(_number, array.flat[:1]))
    axes = [
        axis
        for axis, size in enumerate(shape)
        if size > 1 and not np.array_equal(array.take(0, axis), array.take(-1, axis))
    ]
    if not axes and (not array.size or (array == array.flat[0]).all()):
        yield Series("equal", 0, dtype, shape, firsts)
        for axis, size in enumerate(shape):
            if size < 2:
                yield from (Series(kind, axis, dtype, shape, firsts) for kind in ("rising", "spaced"))
    if len(axes) == 1:
        lines = np.moveaxis(array, axes[0], -1).reshape(-1, shape[axes[0]])
        if (lines == lines[0]).all() and np.isfinite(lines[0]).all():
            yield from (
                Series(kind, axes[0], dtype, shape, known) for kind, known in _rising(lines[0], dtype)
            )


def _rising(line: np.ndarray, dtype: str) -> Iterator[tuple[str, tuple[float, ...]]]:
    first, last, step = line[0], line[-1], line[1] - line[0]
    if (np.diff(line) == step).all() and float(step).is_integer() and float(first).is_integer():
        yield "rising", (int(first), int(step))
    even = np.linspace(first, last, line.size)
    if dtype.startswith("float") and np.abs(line - even).max() <= ROUNDING * np.abs(line).max():
        yield "spaced", (_number(first), _number(last))


def _number(element: Any) -> float:
    number = float(element)
    return int(number) if number.is_integer() else number


class _Calls:
    """Calls that are added to a scope at one line of the module."""

    def __init__(self, scope: Scope, source: Source) -> None:
        self.scope, self.source = scope, source
        self.records: list[Record] = []

    def add(self, name: str, args: Args, shape: tuple[int, ...], type: str, **kwargs: Any) -> Value:
        """Adds a call of a function (its name has dots) or of a method, and returns its result."""
        value = Value(self.scope, f"{name.rpartition('.')[2]}_out", shape, type)
        self.records.append(Record(name, "." not in name, args, kwargs, value, self.source))
        return value


def computed_array(
    scope: Scope, series: Series, numbers: Sequence[Any], source: Source
) -> tuple[Value, list[Record]]:
    """Returns the result of calls that compute an array of these sizes and elements, and the calls.

    ``numbers`` are those of ``series``, with Values in the place of what follows sizes.
    """
    calls, shape, rank = _Calls(scope, source), series.shape, len(series.shape)
    sizes = tuple(numbers[:rank])
    if series.kind == "equal":
        args = (sizes, numbers[rank])
        return calls.add("torch.full", args, shape, series.dtype, dtype=_named(series.dtype)), calls.records
    made = _line(calls, series, sizes[series.axis], numbers[rank:])
    if rank > 1:
        ones = tuple(-1 if axis == series.axis else 1 for axis in range(rank))
        thin = tuple(shape[axis] if axis == series.axis else 1 for axis in range(rank))
        made = calls.add("reshape", (made, ones), thin, series.dtype)
        made = calls.add("expand", (made, sizes), shape, series.dtype)
    return made, calls.records


def _line(calls: _Calls, series: Series, length: Any, elements: Sequence[Any]) -> Value:
    """Returns the elements along the axis."""
    shape = (series.shape[series.axis],)
    if series.kind == "spaced":
        args = (*elements, length)
        return calls.add("torch.linspace", args, shape, series.dtype, dtype=_named(series.dtype))
    first, step = elements
    made = calls.add("torch.arange", (length,), shape, "int64")
    for name, number, neutral in (("mul", step, 1), ("add", first, 0)):
        if isinstance(number, Value) or number != neutral:
            made = calls.add(name, (made, number), shape, "int64")
    if series.dtype != "int64":
        made = calls.add("to", (made, _named(series.dtype)), shape, series.dtype)
    return made


def _named(dtype: str) -> GlobalRef:
    return GlobalRef("torch", dtype)
