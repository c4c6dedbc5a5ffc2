"""aten::permute: every target, and how Caffe makes it of slices."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.symbolics.ops.harness import NEWEST_OPSET, assert_op_matches, normal, op_graph, refusal
from tmconvert.ir import TensorType
from tmconvert.symbolics.op import SchemaError
from tmconvert.symbolics.ops.shapes.permute import cheapest_swaps, merged, permute
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME
from tmconvert.targets.registry import lower


def in_loops(x: np.ndarray, dims: list[int]) -> np.ndarray:
    result = np.empty([x.shape[axis] for axis in dims], x.dtype)
    for index in np.ndindex(*result.shape):
        source = [0] * x.ndim
        for place, axis in zip(index, dims, strict=True):
            source[axis] = place
        result[index] = x[tuple(source)]
    return result


def check(x: np.ndarray, dims: list[int], **options: object) -> None:
    expected = [in_loops(x, dims)]
    assert_op_matches("aten::permute", [x], {"dims": dims}, expected=expected, tolerance=0, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("dims", list(permutations(range(4))), ids=str)
def test_rank_4(dims: tuple[int, ...]) -> None:
    check(normal(0, 2, 3, 5, 7), list(dims))


@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 5), (2, 1, 3, 1, 5)], ids=str)
def test_every_order(shape: tuple[int, ...]) -> None:
    for dims in list(permutations(range(len(shape))))[::5]:
        check(normal(0, *shape), list(dims))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(data=st.data())
def test_high_ranks(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 3), min_size=5, max_size=7))
    dims = data.draw(st.permutations(range(len(shape))))
    check(normal(1, *shape), dims, targets=["onnx", "tflite"], opsets=[7, NEWEST_OPSET])


def test_negative_axes() -> None:
    x = normal(0, 2, 3, 5)
    assert_op_matches("aten::permute", [x], {"dims": [-1, 0, -2]}, expected=[in_loops(x, [2, 0, 1])])


@pytest.mark.parametrize(
    ("shape", "dims", "tflite", "caffe"),
    [
        ((2, 3, 1, 1), [0, 2, 3, 1], ["RESHAPE"], ["Reshape"]),
        ((2, 1, 3, 5), [0, 2, 3, 1], ["RESHAPE"], ["Reshape"]),
        ((2, 3, 5), [0, 2, 1], ["TRANSPOSE"], ["Reshape", "Slice", "Concat"]),
        (
            (1, 2, 2, 2, 2, 2, 2),
            [6, 0, 1, 2, 3, 4, 5],
            ["RESHAPE", "TRANSPOSE", "RESHAPE"],
            ["Reshape", "Slice", "Concat"],
        ),
    ],
)
def test_operators(shape: tuple[int, ...], dims: list[int], tflite: list[str], caffe: list[str]) -> None:
    graph = op_graph("aten::permute", [normal(0, *shape)], {"dims": dims})
    operators = lower(graph, catalogue(), "tflite", TFLITE_RUNTIME).graph.operators
    assert [operator.type for operator in operators] == tflite
    operators = lower(graph, catalogue(), "caffe", 0).graph.operators
    assert list(dict.fromkeys(operator.type for operator in operators)) == caffe


@pytest.mark.parametrize(
    ("shape", "order", "expected"),
    [
        ((2, 3, 5), [0, 1, 2], ((30,), (0,))),
        ((2, 3, 5), [2, 0, 1], ((6, 5), (1, 0))),
        ((2, 1, 3, 5), [3, 0, 1, 2], ((6, 5), (1, 0))),
        ((2, 3, 5, 7), [0, 2, 3, 1], ((2, 3, 35), (0, 2, 1))),
        ((2, 3, 5), [2, 1, 0], ((2, 3, 5), (2, 1, 0))),
        ((1, 1), [1, 0], ((), ())),
    ],
)
def test_merged(shape: tuple[int, ...], order: list[int], expected: object) -> None:
    assert merged(shape, order) == expected


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_swaps_reach_the_order(order: tuple[int, ...]) -> None:
    shape = (2, 3, 5, 7)
    axes = tuple(range(4))
    count, swaps = cheapest_swaps(shape, order)
    total = 0
    for swap in swaps:
        total += swap.slices(tuple(shape[axis] for axis in axes))
        axes = swap.of(axes)
    assert axes == order
    assert total == count


def test_swaps_are_the_cheapest() -> None:
    assert cheapest_swaps((2, 100, 3), (0, 2, 1))[0] == 3
    assert cheapest_swaps((100, 2, 100), (2, 1, 0))[0] == 102  # 2 to the front or the end, then 100 past 100


def test_caffe_refuses_many_slices() -> None:
    x = np.zeros((1, 65, 8, 9), np.float32)
    assert refusal("caffe", "aten::permute", [x], {"dims": [0, 2, 3, 1]}) == (
        "Caffe (BVLC) has no Permute layer, and emulating this transpose would need 65 slices"
    )
    assert refusal("caffe", "aten::permute", [x[:, :64]], {"dims": [0, 2, 3, 1]}) == ""


@pytest.mark.parametrize("dims", [[0, 1], [0, 1, 1], [0, 1, 3], [0, -1, 2]], ids=str)
def test_type_rule_refuses(dims: list[int]) -> None:
    with pytest.raises(SchemaError, match="is not a permutation of 3 axes"):
        permute.infer([TensorType(np.dtype(np.float32), (2, 3, 5))], {"dims": dims})
