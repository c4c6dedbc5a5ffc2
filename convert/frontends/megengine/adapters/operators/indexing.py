"""Raw operators (``Apply`` in MegEngine) that read or write indexed elements.

``items`` are rows of (axis, has a start, has a stop, has a step, has a number): the values are tensors after
the operands, in this order, or rows of (start, stop, step, number) in ``slice_items``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions.indexing import getitem, written
from tmconvert.frontends.megengine.adapters.values import rank, reshaped
from tmconvert.frontends.shared.adapter_table import Adapter, Table
from tmconvert.ir.emitter import Emitter

OPERATORS = Table("opdef.")

Index = Callable[[Emitter, Any, tuple[Any, ...], Any, Any], tuple[Any, ...]]


def _numbers(inputs: tuple[Any, ...], items: Any, slice_items: Any) -> Iterator[tuple[int, list[Any]]]:
    """Returns (axis, [start, stop, step, index]) of each item, None for absent ones."""
    given = iter(inputs)
    for place, (axis, *has) in enumerate(items):
        source = iter(slice_items[place]) if slice_items else None
        parts = []
        for flag in has:
            part = next(source) if source is not None else None
            parts.append(None if not flag else part if source is not None else next(given))
        yield axis, parts


def _index(g: Emitter, x, inputs: tuple[Any, ...], items, slice_items) -> tuple[Any, ...]:
    """Returns the index as Python has it: one entry per axis."""
    index: list[Any] = [slice(None)] * rank(g, x)
    for axis, (start, stop, step, number) in _numbers(inputs, items, slice_items):
        index[axis] = slice(start, stop, step) if number is None else number
    return tuple(index)


def _mesh(
    g: Emitter, x, inputs: tuple[Any, ...], items, slice_items, batched: bool = False
) -> tuple[Any, ...]:
    """An index of tensors that each select along their own axis (an outer index).

    The n-th axis of the result comes from the n-th index: each index varies along that axis alone, and
    where ``batched`` along the first, too. Axes between those that are named count from 0.
    """
    named: dict[int, Any] = {}
    for axis, parts in _numbers(inputs, items, slice_items):
        if parts[:3] != [None] * 3:
            raise Refusal("an outer index with slices is not supported", "use integer tensors as indices")
        named[axis] = parts[3]
    first, last = 0 if batched else min(named), max(named)
    index: list[Any] = [slice(None)] * first
    count = last - first + 1
    for axis in range(first, last + 1):
        picks = named.get(axis)
        if picks is None:
            picks = g.constant(np.arange(g.type(x).shape[axis]), np.int32)
        shape = [1] * count
        shape[axis - first] = g.type(picks).shape[-1]
        if batched and axis in named:
            shape[0] = g.type(picks).shape[0]
        index.append(reshaped(g, picks, shape))
    return tuple(index)


def _batched_mesh(g: Emitter, x, inputs: tuple[Any, ...], items, slice_items) -> Any:
    """Each batch has its own indices: rows of tensors of rank 2."""
    return _mesh(g, x, inputs, items, slice_items, batched=True)


def _reader(index: Index) -> Adapter:
    def adapter(g, x, *inputs, items, slice_items=()):
        return getitem(g, x, index(g, x, inputs, items, slice_items))

    return adapter


def _writer(index: Index, adds: bool) -> Adapter:
    def adapter(g, x, value, *inputs, items, slice_items=()):
        return written(g, x, index(g, x, inputs, items, slice_items), value, adds=adds)

    return adapter


# what an operator reads by: (reading, writing, adding)
FAMILIES: list[tuple[Index, tuple[str, str, str]]] = [
    (_index, ("Subtensor", "SetSubtensor", "IncrSubtensor")),
    (_index, ("IndexingMultiAxisVec", "IndexingSetMultiAxisVec", "IndexingIncrMultiAxisVec")),
    (_mesh, ("MeshIndexing", "SetMeshIndexing", "IncrMeshIndexing")),
    (_batched_mesh, ("BatchedMeshIndexing", "BatchedSetMeshIndexing", "BatchedIncrMeshIndexing")),
]
for _index_of, (_reading, _writing, _adding) in FAMILIES:
    OPERATORS.add(_reading)(_reader(_index_of))
    OPERATORS.add(_writing)(_writer(_index_of, adds=False))
    OPERATORS.add(_adding)(_writer(_index_of, adds=True))
