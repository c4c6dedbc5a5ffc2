"""How outputs are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tmconvert.errors import VerificationError
from tmconvert.ir.types import DTYPE_NAMES, TensorType
from tmconvert.verification.compare import TOLERANCES, check, compare, example_inputs

INF, NAN = np.inf, np.nan


def error(actual: Any, expected: Any, dtype: str = "float32") -> float:
    (comparison,) = compare([np.array(actual, dtype)], [np.array(expected, dtype)], ["y"])
    return comparison.max_error


@pytest.mark.parametrize(
    ("actual", "expected", "wanted"),
    [
        ([1, 2], [1, 2], 0),
        ([1, 2.5], [1, 2], 0.25),
        ([-1, 2.5], [0, -5], 1.5),
        ([0.5, 0], [0, 0], 0.5),
        ([0, 0], [0, 0], 0),
        ([], [], 0),
        ([NAN, 1], [NAN, 1], 0),
        ([NAN, 1.5], [NAN, 1], 0.5),
        ([NAN, 1], [1, 1], INF),
        ([1, 1], [NAN, 1], INF),
        ([INF, 1], [INF, 1], 0),
        ([INF, 1], [-INF, 1], INF),
        ([INF, 1], [NAN, 1], INF),
        ([INF, INF], [INF, INF], 0),
        ([NAN, INF], [NAN, INF], 0),
        ([INF, 1], [3e38, 1], INF),
    ],
    ids=str,
)
def test_error_of_floats(actual: list[float], expected: list[float], wanted: float) -> None:
    assert error(actual, expected) == wanted


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_error_of_integers_is_absolute(dtype: str) -> None:
    assert error([1, 120], [1, 120], dtype) == 0
    assert error([1, 120], [1, 117], dtype) == 3


def test_error_of_integers_neither_wraps_nor_rounds() -> None:
    assert error([-128], [127], "int8") == 255
    assert error([0], [255], "uint8") == 255
    assert error([2**62 + 1], [2**62], "int64") == 1


def test_error_of_booleans() -> None:
    assert error([True, False], [True, False], "bool") == 0
    assert error([True, False], [True, True], "bool") == 1


def test_float16_does_not_overflow() -> None:
    assert error([60000], [-60000], "float16") == 2


def test_integers_in_a_float_are_exact() -> None:
    (comparison,) = compare([np.array([3.0], np.float32)], [np.array([3])], ["y"])
    assert comparison.ok
    (comparison,) = compare([np.array([3.00001], np.float32)], [np.array([3])], ["y"])
    assert not comparison.ok


def test_the_coarser_float_counts() -> None:
    (comparison,) = compare([np.array([1.005], np.float16)], [np.array([1], np.float32)], ["y"])
    assert comparison.tolerance == TOLERANCES["float16"]
    assert comparison.ok


def test_every_dtype_has_a_tolerance() -> None:
    assert set(DTYPE_NAMES) <= set(TOLERANCES)


def test_check_names_the_worst_output_and_the_others() -> None:
    expected = [np.ones(2, np.float32)] * 3
    actual = [np.float32(1 + each) * np.ones(2, np.float32) for each in (0.001, 0, 0.25)]
    with pytest.raises(VerificationError) as caught:
        check(actual, expected, ["a", "b", "c"])
    assert str(caught.value) == (
        "error[TM4001]: the outputs of the file differ from those of its source: "
        "output c differs by 2.5e-01, more than 1e-04\n"
        "   = also: output a differs by 1.0e-03, more than 1e-04"
    )


def test_check_tells_shapes() -> None:
    with pytest.raises(VerificationError, match=r"output y has shape \[1, 2\], expected \[2\]"):
        check([np.ones((1, 2))], [np.ones(2)], ["y"])


def test_check_tells_non_finite_values() -> None:
    with pytest.raises(VerificationError, match="output y has NaN or infinity where its source does not"):
        check([np.array([NAN])], [np.array([1.0])], ["y"])


def test_check_returns_comparisons() -> None:
    (comparison,) = check([np.array([1.2])], [np.array([1.0])], ["y"], tolerances=[0.5])
    assert comparison.ok
    assert comparison.max_error == pytest.approx(0.2)


def test_example_inputs_depend_on_the_seed_alone() -> None:
    types = [
        TensorType(np.dtype(name), (2, 3, 5)) for name in ("float32", "float16", "int64", "uint8", "bool")
    ]
    first, again, other = example_inputs(types), example_inputs(types), example_inputs(types, seed=1)
    for type_, a, b, c in zip(types, first, again, other, strict=True):
        assert TensorType(a.dtype, a.shape) == type_
        assert np.array_equal(a, b)
        assert not np.array_equal(a, c)
        assert type_.dtype.kind == "f" or set(a.reshape(-1).tolist()) == {0, 1}


def test_example_input_of_rank_0() -> None:
    (array,) = example_inputs([TensorType(np.dtype("float32"), ())])
    assert isinstance(array, np.ndarray)
    assert array.shape == ()
