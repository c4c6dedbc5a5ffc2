"""Functions of MegEngine on integers and on scalars: the dtypes and shapes that MegEngine 1.13 gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tmconvert.frontends.megengine.adapters import FUNCTIONS, METHODS
from tmconvert.ir.emitter import EagerEmitter
from tmconvert.symbolics.registry import catalogue

X = np.array([[-7, 3, 0], [2, 5, -1]], np.int32)
FLOAT = np.dtype(np.float32)
INT = np.dtype(np.int32)


def run(name: str, *args: Any, **options: Any) -> np.ndarray:
    adapter = METHODS[name] if name in METHODS else FUNCTIONS[f"megengine.functional.{name}"]
    return np.asarray(adapter(EagerEmitter(catalogue()), *args, **options))


@pytest.mark.parametrize(
    ("name", "arguments", "dtype", "expected"),
    [
        ("elemwise.floor", (), INT, [-7, 3, 0, 2, 5, -1]),
        ("elemwise.ceil", (), INT, [-7, 3, 0, 2, 5, -1]),
        ("elemwise.square", (), INT, [49, 9, 0, 4, 25, 1]),
        ("elemwise.abs", (), INT, [7, 3, 0, 2, 5, 1]),
        ("elemwise.clip", (-1, 3), INT, [-1, 3, 0, 2, 3, -1]),
        ("elemwise.clip", (-1.5, 3.5), FLOAT, [-1.5, 3, 0, 2, 3.5, -1]),
        ("elemwise.clip", (-1.5, None), FLOAT, [-1.5, 3, 0, 2, 5, -1]),
        ("elemwise.clip", (None, 3.5), FLOAT, [-7, 3, 0, 2, 3.5, -1]),
        ("elemwise.pow", (2,), FLOAT, [49, 9, 0, 4, 25, 1]),
        ("__pow__", (1,), FLOAT, [-7, 3, 0, 2, 5, -1]),
        ("nn.relu", (), INT, [0, 3, 0, 2, 5, 0]),
        ("nn.relu6", (), INT, [0, 3, 0, 2, 5, 0]),
        ("nn.leaky_relu", (0.5,), FLOAT, [-3.5, 3, 0, 2, 5, -0.5]),
        ("nn.hsigmoid", (), FLOAT, [0, 1, 0.5, 5 / 6, 1, 1 / 3]),
        ("elemwise.maximum", (1.5,), FLOAT, [1.5, 3, 1.5, 2, 5, 1.5]),
    ],
)
def test_integers(name: str, arguments: tuple[Any, ...], dtype: np.dtype, expected: list[float]) -> None:
    actual = run(name, X, *arguments)
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual.reshape(-1), expected, rtol=1e-6)


def test_joined_dtypes_meet() -> None:
    joined = run("tensor.concat", [X, X.astype(np.float32) + np.float32(0.5)], 1)
    assert joined.dtype == FLOAT
    np.testing.assert_array_equal(joined[0], [-7, 3, 0, -6.5, 3.5, 0.5])


@pytest.mark.parametrize(
    ("name", "axis", "shape"),
    [("tensor.stack", 0, (2, 1)), ("tensor.stack", -1, (1, 2)), ("tensor.concat", 0, (2,))],
)
def test_joined_scalars_have_an_axis(name: str, axis: int, shape: tuple[int, ...]) -> None:
    joined = run(name, [np.float32(2), np.float32(3)], axis)
    assert joined.shape == shape
    np.testing.assert_array_equal(joined.reshape(-1), [2, 3])


def test_a_scalar_joins_a_vector() -> None:
    np.testing.assert_array_equal(run("tensor.concat", [np.float32([1, 2]), np.float32(3)]), [1, 2, 3])


def test_no_padding_of_a_scalar() -> None:
    assert run("nn.pad", np.array(2, np.float32), ()) == 2
