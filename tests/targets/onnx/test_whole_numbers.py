"""int32 at opsets whose operators take floats only."""

from __future__ import annotations

import numpy as np
import pytest

from tests.symbolics.ops.harness import assert_op_matches, refusal

LARGE = np.array([[2**31 - 1, -(2**31), 3], [2**16, 5, 2**24 + 1]], np.int32)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3), (3, 4)),
        ((3,), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3,)),
        ((3,), (5, 3, 4)),
        ((5, 2, 3), (3,)),
        ((5, 2, 3), (3, 4)),
        ((2, 3), (5, 3, 4)),
        ((6, 1, 2, 3), (5, 3, 4)),
    ],
)
def test_products_of_matrices(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Modulo 2 to the 32, as NumPy."""
    args = [np.resize(LARGE, a), np.resize(LARGE[::-1], b)]
    assert_op_matches("aten::matmul", args, {}, targets=["onnx"], opsets=[7, 8, 9], tolerance=0)


@pytest.mark.parametrize("dtype", ["int32", "int16", "int8", "uint8"])
def test_products_of_other_integers(dtype: str) -> None:
    """Sums of many products, exact, then modulo the type."""
    numbers = np.random.default_rng(0).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (2, 400), dtype)
    args = [numbers, numbers.T.copy()]
    assert_op_matches("aten::matmul", args, {}, targets=["onnx"], opsets=[7, 8, 9], tolerance=0)


def test_int64_is_refused() -> None:
    args = [np.ones((2, 3), np.int64), np.ones((3, 4), np.int64)]
    assert (
        refusal("onnx", "aten::matmul", args, version=8) == "ONNX's MatMul does not support int64 at opset 8"
    )
