"""aten::reshape."""

from __future__ import annotations

import numpy as np
import pytest

from tests.symbolics.ops.harness import Const, assert_op_matches, normal, op_graph, reference
from tmconvert.symbolics.op import SchemaError

CASES: dict[str, tuple[tuple[int, ...], list[int]]] = {
    "flatten": ((2, 3, 5, 7), [2, 105]),
    "flatten_all": ((2, 3, 5, 7), [210]),
    "unflatten": ((2, 105), [2, 3, 5, 7]),
    "split_axis": ((2, 6, 5), [2, 2, 3, 5]),
    "split_to_rank_5": ((2, 6, 5, 7), [2, 2, 3, 5, 7]),
    "merge_axes": ((2, 3, 5, 7), [6, 35]),
    "same_rank": ((2, 3, 5, 7), [3, 2, 7, 5]),
    "same_shape": ((2, 3, 5), [2, 3, 5]),
    "squeeze": ((2, 1, 5, 1), [2, 5]),
    "unsqueeze": ((2, 5), [1, 2, 1, 5, 1]),
    "squeeze_first": ((1, 3, 5), [3, 5]),
    "from_rank_1": ((6,), [2, 3]),
}


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
@pytest.mark.parametrize("case", CASES)
def test_matches(case: str, target: str) -> None:
    shape, wanted = CASES[case]
    assert_op_matches("aten::reshape", [normal(0, *shape)], {"shape": wanted}, targets=[target], tolerance=0)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize(
    ("shape", "wanted"), [((1, 1), []), ((), [1, 1, 1])], ids=["to_rank_0", "from_rank_0"]
)
def test_rank_0(shape: tuple[int, ...], wanted: list[int], target: str) -> None:
    assert_op_matches("aten::reshape", [normal(0, *shape)], {"shape": wanted}, targets=[target])


def test_caffe_has_blobs_without_axes() -> None:
    assert_op_matches("aten::reshape", [normal(0, 1)], {"shape": []}, targets=["caffe"])


@pytest.mark.parametrize("dtype", ["int32", "int64", "bool", "float16", "float64"])
def test_dtypes_on_onnx(dtype: str) -> None:
    x = np.arange(12).reshape(3, 4).astype(dtype)
    assert_op_matches("aten::reshape", [x], {"shape": [2, 6]}, targets=["onnx"])


def test_kernel_against_loops() -> None:
    x = normal(0, 2, 3, 5)
    (actual,) = reference("aten::reshape", [x], {"shape": [5, 6]})
    for i, j in np.ndindex(5, 6):
        flat = i * 6 + j
        assert actual[i, j] == x[flat // 15, flat // 5 % 3, flat % 5]


def test_of_a_constant_folds() -> None:
    graph = op_graph("aten::reshape", [Const(np.arange(6))], {"shape": [2, 3]})
    assert graph.outputs[0].expr.value.shape == (2, 3)


@pytest.mark.parametrize("shape", [[2, 7], [-1, 6], [2, 3, 5, 0]], ids=str)
def test_schema_refuses(shape: list[int]) -> None:
    with pytest.raises(SchemaError, match="cannot be reshaped to"):
        op_graph("aten::reshape", [normal(0, 2, 15)], {"shape": shape})
