"""aten::linear: every target, and the kernel against loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.symbolics.ops.harness import Const, assert_op_matches, normal, reference, refusal

SHAPES = {"rank_1": (5,), "rank_2": (2, 5), "rank_3": (2, 3, 5), "rank_4": (2, 3, 4, 5)}


def arguments(shape: tuple[int, ...], has_bias: bool) -> list[Any]:
    return [normal(0, *shape), Const(normal(1, 7, 5)), Const(normal(2, 7)) if has_bias else None]


@pytest.mark.parametrize("has_bias", [True, False], ids=["bias", "no_bias"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_kernel_against_loops(shape: tuple[int, ...], has_bias: bool) -> None:
    x, weight, bias = arguments(shape, has_bias)
    expected = np.zeros((*shape[:-1], 7))
    for *before, column in np.ndindex(expected.shape):
        expected[(*before, column)] = bias.array[column] if bias else 0.0
        for row in range(5):
            expected[(*before, column)] += float(x[(*before, row)]) * float(weight.array[column, row])
    (actual,) = reference("aten::linear", [x, weight, bias], {})
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
@pytest.mark.parametrize("has_bias", [True, False], ids=["bias", "no_bias"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_matches(shape: tuple[int, ...], has_bias: bool, target: str) -> None:
    assert_op_matches("aten::linear", arguments(shape, has_bias), targets=[target])


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("has_bias", [True, False], ids=["bias", "no_bias"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_computed_weights(shape: tuple[int, ...], has_bias: bool, target: str) -> None:
    x, weight, bias = arguments(shape, has_bias)
    args = [x, weight.array, bias.array if bias else None]
    assert_op_matches("aten::linear", args, targets=[target])


def test_caffe_refuses_computed_weights() -> None:
    args = [normal(0, 2, 5), normal(1, 7, 5), None]
    assert "they cannot be computed" in refusal("caffe", "aten::linear", args)
