"""aten::batch_norm: every target, and the kernel against loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.symbolics.ops.harness import Const, assert_op_matches, normal, reference

SHAPES = {"rank_2": (2, 3), "rank_3": (2, 3, 5), "rank_4": (2, 3, 5, 7), "rank_5": (2, 3, 1, 5, 7)}
AFFINE = {
    "affine": (True, True),
    "weight_only": (True, False),
    "bias_only": (False, True),
    "bare": (False, False),
}


def arguments(shape: tuple[int, ...], affine: tuple[bool, bool]) -> list[Any]:
    channels = shape[1]
    weight, bias = (
        normal(seed, channels) if given else None for seed, given in zip((1, 2), affine, strict=True)
    )
    return [normal(0, *shape), weight, bias, normal(3, channels), np.abs(normal(4, channels)) + 0.1]


def constants(args: list[Any]) -> list[Any]:
    return [args[0], *(None if array is None else Const(array) for array in args[1:])]


@pytest.mark.parametrize("affine", AFFINE.values(), ids=AFFINE)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_kernel_against_loops(shape: tuple[int, ...], affine: tuple[bool, bool]) -> None:
    x, weight, bias, mean, variance = arguments(shape, affine)
    expected = np.empty(shape)
    for index in np.ndindex(shape):
        channel = index[1]
        value = (float(x[index]) - float(mean[channel])) / (float(variance[channel]) + 0.01) ** 0.5
        value *= 1.0 if weight is None else float(weight[channel])
        expected[index] = value + (0.0 if bias is None else float(bias[channel]))
    (actual,) = reference("aten::batch_norm", [x, weight, bias, mean, variance], {"eps": 0.01})
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
@pytest.mark.parametrize("affine", AFFINE.values(), ids=AFFINE)
def test_matches(affine: tuple[bool, bool], target: str) -> None:
    assert_op_matches("aten::batch_norm", constants(arguments(SHAPES["rank_4"], affine)), targets=[target])


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_matches_at_every_rank(shape: tuple[int, ...], target: str) -> None:
    args = constants(arguments(shape, (True, True)))
    assert_op_matches("aten::batch_norm", args, {"eps": 0.5}, targets=[target])


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
@pytest.mark.parametrize("affine", AFFINE.values(), ids=AFFINE)
def test_computed_parameters(affine: tuple[bool, bool], target: str) -> None:
    assert_op_matches("aten::batch_norm", arguments(SHAPES["rank_4"], affine), targets=[target])


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
def test_one_parameter_is_computed(target: str) -> None:
    args = constants(arguments(SHAPES["rank_4"], (True, True)))
    args[3] = args[3].array
    assert_op_matches("aten::batch_norm", args, targets=[target])
