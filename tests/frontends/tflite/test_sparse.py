"""Sparse constants: any order of axes, with blocks and without; LiteRT's DENSIFY computes the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tmconvert
from tests.frontends.tflite import raw
from tests.frontends.tflite.models import assert_same, in_litert
from tmconvert.errors import LoadError
from tmconvert.formats.tflite.sparse import Level, Sparsity, dense


def stored(
    array: np.ndarray, traversal: list[int], blocks: dict[int, int], sparse: set[int]
) -> tuple[np.ndarray, list[Any]]:
    """Returns the values of an array and its levels, those of ``sparse`` with segments and indices.

    ``blocks`` are the sizes of blocks by axis.
    """
    split = [(extent // blocks.get(axis, 1), blocks.get(axis, 0)) for axis, extent in enumerate(array.shape)]
    parts = array.reshape(
        [each for outer, block in split for each in ((outer, block) if block else (outer,))]
    )
    places, at = {}, 0
    for axis, (_, block) in enumerate(split):
        places[axis] = at
        if block:
            places[array.ndim + list(blocks).index(axis)] = at + 1
        at += 2 if block else 1
    moved = parts.transpose([places[axis] for axis in traversal])
    levels: list[Any] = []
    nodes = [moved]
    for number, extent in enumerate(moved.shape):
        if traversal[number] not in sparse:
            levels.append(int(extent))
            nodes = [part for node in nodes for part in node]
            continue
        kept = [[index for index, part in enumerate(node) if np.any(part)] for node in nodes]
        segments = np.cumsum([0, *map(len, kept)])
        levels.append((segments, np.array([index for each in kept for index in each], np.int64)))
        nodes = [node[index] for node, each in zip(nodes, kept, strict=True) for index in each]
    return np.array(nodes, array.dtype).reshape(-1), levels


@st.composite
def cases(draw: Any) -> tuple[np.ndarray, list[int], dict[int, int], set[int]]:
    rank = draw(st.integers(1, 4))
    blocks = {axis: draw(st.integers(1, 3)) for axis in draw(st.sets(st.integers(0, rank - 1)))}
    shape = [draw(st.integers(1, 3)) * blocks.get(axis, 1) for axis in range(rank)]
    random = np.random.default_rng(draw(st.integers(0, 99)))
    array = random.integers(1, 9, shape) * (random.random(shape) < draw(st.sampled_from([0, 0.2, 0.7, 1])))
    traversal = [
        *draw(st.permutations(range(rank))),
        *draw(st.permutations(range(rank, rank + len(blocks)))),
    ]
    # blocks are dense in the format
    return array.astype(np.float32), traversal, blocks, draw(st.sets(st.integers(0, rank - 1)))


@given(cases())
@settings(max_examples=200)
def test_the_dense_array_is_the_one_that_was_stored(case: Any) -> None:
    array, traversal, blocks, sparse = case
    values, levels = stored(array, traversal, blocks, sparse)
    read = tuple(Level(each, None, None) if isinstance(each, int) else Level(0, *each) for each in levels)
    made = dense(values, array.shape, Sparsity(tuple(traversal), tuple(blocks), read))
    np.testing.assert_array_equal(made, array)


def model(tmp_path: Any, array: np.ndarray, form: tuple[Any, ...], values: np.ndarray) -> Any:
    """Returns a file that adds a sparse constant to its input."""
    dtype = array.dtype.name
    tensors = [
        raw.Tensor("x", dtype, array.shape),
        raw.Tensor("w", dtype, array.shape, values, form),
        raw.Tensor("dense", dtype, array.shape),
        raw.Tensor("y", dtype, array.shape),
    ]
    operators = [raw.Operator("DENSIFY", [1], [2]), raw.Operator("ADD", [0, 2], [3])]
    return raw.saved(tmp_path / "net.tflite", tensors, operators, ([0], [3]))


@pytest.mark.parametrize(
    ("traversal", "blocks", "sparse"),
    [
        ([0, 1, 2, 3], {}, {3}),
        ([0, 1, 2, 3, 4, 5], {0: 2, 3: 4}, {3}),
    ],
)
def test_litert_computes_the_same(
    traversal: list[int], blocks: dict[int, int], sparse: set[int], tmp_path: Any
) -> None:
    random = np.random.default_rng(0)
    array = (random.standard_normal((4, 1, 3, 300)) * (random.random((4, 1, 3, 300)) < 0.3)).astype(
        np.float32
    )
    values, levels = stored(array, traversal, blocks, sparse)
    path = model(tmp_path, array, (traversal, list(blocks), levels), values)
    x = random.standard_normal(array.shape).astype(np.float32)
    found = np.asarray(tmconvert.load(path)(x))
    np.testing.assert_array_equal(found, x + array)
    if not blocks:  # LiteRT's kernel has these for other shapes only
        assert_same([found], in_litert(path, x))
    tmconvert.to_tflite(path, tmp_path / "made.tflite")
    assert_same(in_litert(tmp_path / "made.tflite", x), [found])


ARRAY = np.array([[0, 5, 0], [7, 0, 0]], np.float32)
GOOD = ([0, 1], [], [2, (np.array([0, 1, 2]), np.array([1, 0]))])


def test_the_smallest(tmp_path: Any) -> None:
    module = tmconvert.load(model(tmp_path, ARRAY, GOOD, np.array([5, 7], np.float32)))
    np.testing.assert_array_equal(module(np.zeros((2, 3), np.float32)), ARRAY)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (([0, 0], [], GOOD[2]), "has the levels"),
        (([0, 1], [], GOOD[2][:1]), "has the levels"),
        (([0, 1], [], [3, GOOD[2][1]]), "3 indices of 2"),
        (([0, 1], [], [2, (np.array([0, 1]), np.array([1, 0]))]), "has 2 segments"),
        (([0, 1], [], [2, (np.array([0, 2, 1]), np.array([1, 0]))]), "not in order"),
        (([0, 1], [], [2, (np.array([0, 1, 9]), np.array([1, 0]))]), "not in order"),
        (([0, 1], [], [2, (np.array([0, 1, 2]), np.array([1, 3]))]), "index beyond 3"),
        (([0, 1], [], [2, (np.array([0, 1, 1]), np.array([1, 0]))]), "indices of 1"),
        (([0, 1, 2], [7], [2, GOOD[2][1], 2]), "blocks of 2 along axis 7"),
        (([0, 1, 2], [1], [2, GOOD[2][1], 2]), "blocks of 2 along axis 1"),
    ],
)
def test_what_does_not_fit_is_a_clean_error(form: Any, message: str, tmp_path: Any) -> None:
    with pytest.raises(LoadError, match=f"(?s)TM1041.*{message}"):
        tmconvert.load(model(tmp_path, ARRAY, form, np.array([5, 7], np.float32)))


def test_a_large_shape_with_few_elements_is_refused(tmp_path: Any) -> None:
    large = np.broadcast_to(np.float32(0), (1 << 15, 1 << 15))
    with pytest.raises(LoadError, match="a sparse tensor of 2 elements has the shape"):
        tmconvert.load(model(tmp_path, large, GOOD, np.array([5, 7], np.float32)))


def test_overlapping_segments_are_refused(tmp_path: Any) -> None:
    form = ([0, 1], [], [2, (np.array([0, 2, 2]), np.array([1]))])
    with pytest.raises(LoadError, match="TM1041"):
        tmconvert.load(model(tmp_path, ARRAY, form, np.array([5, 7], np.float32)))
