"""Sparse constants: their elements, as a dense array.

Source of the format: SparsityParameters in LiteRT's schema.fbs. The levels of a tensor are its axes, those of
its blocks after them, in the order of ``traversal``. A dense level has all indices. A sparse one has, for
each position of the level before, those in ``indices`` from one of ``segments`` to the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tmconvert.formats.tflite.flatbuffer import Table
from tmconvert.ir.types import Shape

SPARSE = 1  # the format of a level; 0 is dense
_VECTORS = {1: "int32", 2: "uint16", 3: "uint8"}  # the members of the union of indices
# A file of few elements may be of a large array, which would take the memory.
LEAST_LIMIT, MOST_GROWTH = 1 << 22, 64


@dataclass(frozen=True)
class Level:
    """The indices of one level; ``segments`` and ``indices`` are those of a sparse one."""

    size: int
    segments: np.ndarray | None
    indices: np.ndarray | None


@dataclass(frozen=True)
class Sparsity:
    """The levels of a sparse tensor; ``blocks`` are the axes that are divided into blocks."""

    traversal: tuple[int, ...]
    blocks: tuple[int, ...]
    levels: tuple[Level, ...]


def sparsity_of(table: Table | None) -> Sparsity | None:
    """Returns the levels of a tensor; None for a dense tensor. Raises LoadError TM1041."""
    if table is None:
        return None
    levels = tuple([_level(each) for each in table.tables(2)])
    return Sparsity(tuple(table.integers(0)), tuple(table.integers(1)), levels)


def _level(table: Table) -> Level:
    if table.integer(0, "int8") != SPARSE:
        return Level(table.integer(1, "int32"), None, None)
    return Level(0, _vector(table, 2), _vector(table, 4))


def _vector(table: Table, slot: int) -> np.ndarray:
    kind, held = _VECTORS.get(table.integer(slot, "uint8")), table.table(slot + 1)
    if kind is None or held is None:
        raise table.file.fault("a sparse level has no indices")
    dtype = np.dtype(kind).newbyteorder("<")
    content, count = held.content(0, dtype.itemsize)
    held.file.spend(count)
    return np.frombuffer(content, dtype).astype(np.int64)


def dense(values: np.ndarray, shape: Shape, sparsity: Sparsity) -> np.ndarray:
    """Returns the array of a shape with the stored ``values``, and zeros elsewhere.

    Raises ValueError where they do not fit.

    >>> rows = Level(2, None, None), Level(0, np.array([0, 1, 2]), np.array([2, 0]))
    >>> dense(np.array([5, 7]), (2, 3), Sparsity((0, 1), (), rows))
    array([[0, 0, 5],
           [7, 0, 0]])
    """
    if math.prod(shape) > max(LEAST_LIMIT, MOST_GROWTH * len(values)):
        raise ValueError(f"a sparse tensor of {len(values)} elements has the shape {shape}")
    coordinates, positions = _expanded(shape, sparsity, len(values))
    result = np.zeros(shape, values.dtype)
    result[coordinates] = values[positions]
    return result


def _expanded(shape: Shape, sparsity: Sparsity, count: int) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Returns the coordinates of all stored elements, and their positions among the values."""
    extents = _extents(shape, sparsity)
    if sorted(sparsity.traversal) != list(range(len(extents))) or len(sparsity.levels) != len(extents):
        raise ValueError(f"a sparse tensor of rank {len(shape)} has the levels {sparsity.traversal}")
    found: dict[int, np.ndarray] = {}
    positions = np.zeros(1, np.int64)
    for axis, level in zip(sparsity.traversal, sparsity.levels, strict=True):
        if level.segments is None and len(positions) * extents[axis] > math.prod(shape):
            raise ValueError("a sparse tensor has more indices than elements")
        origins, indices, positions = _inside(level, extents[axis], positions)
        found = {known: each[origins] for known, each in found.items()} | {axis: indices}
    if len(positions) != count or (positions >= count).any():
        raise ValueError(f"a sparse tensor has {count} elements, and indices of {len(positions)}")
    whole = [found[axis] for axis in range(len(shape))]
    for number, axis in enumerate(sparsity.blocks, start=len(shape)):
        whole[axis] = whole[axis] * extents[number] + found[number]
    return tuple(whole), positions


def _extents(shape: Shape, sparsity: Sparsity) -> list[int]:
    """Returns the extents of all levels by their numbers: of axes in blocks, then of the blocks."""
    extents, rank = list(shape), len(shape)
    sizes = {axis: level.size for axis, level in zip(sparsity.traversal, sparsity.levels, strict=False)}
    for number, axis in enumerate(sparsity.blocks, start=rank):
        size = sizes.get(number, 0)
        if not 0 <= axis < rank or size < 1 or extents[axis] % size:
            raise ValueError(f"a sparse tensor of shape {shape} has blocks of {size} along axis {axis}")
        extents[axis] //= size
        extents.append(size)
    return extents


def _inside(level: Level, extent: int, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns for each index of a level the position that it is inside of, the index, and its position."""
    if level.segments is None or level.indices is None:
        if level.size != extent:
            raise ValueError(f"a level of a sparse tensor has {level.size} indices of {extent}")
        origins = np.repeat(np.arange(len(positions)), extent)
        indices = np.tile(np.arange(extent), len(positions))
        return origins, indices, positions[origins] * extent + indices
    segments = level.segments
    if len(positions) and int(positions.max()) + 1 >= len(segments):
        raise ValueError(f"a level of a sparse tensor has {len(segments)} segments")
    starts, ends = segments[positions], segments[positions + 1]
    counts = ends - starts
    if (counts < 0).any() or (starts < 0).any() or (ends > len(level.indices)).any():
        raise ValueError("the segments of a sparse tensor are not in order")
    if counts.sum() > len(level.indices):
        raise ValueError("the segments of a sparse tensor overlap")
    origins = np.repeat(np.arange(len(positions)), counts)
    own = np.arange(len(origins)) - np.repeat(np.cumsum(counts) - counts, counts) + starts[origins]
    indices = level.indices[own]
    if ((indices < 0) | (indices >= extent)).any():
        raise ValueError(f"a sparse tensor has an index beyond {extent}")
    return origins, indices, own
