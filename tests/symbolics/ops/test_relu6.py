"""aten::relu6."""

from __future__ import annotations

import numpy as np
import pytest

from tests.symbolics.ops.harness import NEWEST_OPSET, assert_op_matches, normal, reference


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
@pytest.mark.parametrize("shape", [(5,), (2, 5), (2, 3, 5), (2, 3, 5, 7), (2, 3, 1, 5, 7)], ids=str)
def test_matches(shape: tuple[int, ...], target: str) -> None:
    assert_op_matches("aten::relu6", [6 * normal(0, *shape)], targets=[target])


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
def test_bounds_are_exact(target: str) -> None:
    x = np.array([[-1e4, -1, 0, 0.125, 5.875, 6, 6.125, 1e4]], np.float32)
    assert_op_matches("aten::relu6", [x], targets=[target], tolerance=0)


@pytest.mark.parametrize(
    ("dtype", "opsets"), [("float16", [11, 12, NEWEST_OPSET]), ("float64", [12, NEWEST_OPSET])]
)
def test_dtypes_on_onnx(dtype: str, opsets: list[int]) -> None:
    # ONNX Runtime has no float64 kernel of Clip below 12
    assert_op_matches("aten::relu6", [6 * normal(0, 2, 5, dtype=dtype)], targets=["onnx"], opsets=opsets)


def test_kernel() -> None:
    (actual,) = reference("aten::relu6", [np.array([-1, 0, 2.5, 6, 7], np.float32)], {})
    assert actual.tolist() == [0, 0, 2.5, 6, 6]
    assert actual.dtype == np.float32
