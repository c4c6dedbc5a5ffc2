"""Formulas that change less than a tolerance are rejected: results near an argument are compared exactly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.symbolics.ops import trivial
from tests.symbolics.ops.harness import assert_target_matches, normal, reference
from tests.symbolics.ops.samples import Sample
from tmconvert.symbolics import registry
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, Op, Tensor
from tmconvert.symbolics.registry import temporary_symbolics
from tmconvert.symbolics.results import broadcast

NAME = "aten::nextafter"
ARGS = [normal(0, 2, 3), normal(1, 2, 3)]


@pytest.fixture(autouse=True)
def nextafter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The op, with the identity as its symbolic for ONNX."""

    def nextafter_onnx7(g: Any, x: Any, other: Any) -> Any:
        return g.op("Identity", x)

    tensors = [Tensor("x", FLOATS), Tensor("other", FLOATS)]
    op = Op(NAME, args=tensors, result=broadcast("x", "other"), layout=ANY)
    op.reference(lambda x, other: np.nextafter(x, other))
    op.onnx(since=7)(nextafter_onnx7)
    monkeypatch.setitem(trivial.SAMPLES, NAME, [Sample(ARGS)])
    with temporary_symbolics():
        registry._registry.set_registered({NAME: op})
        yield
    trivial.tolerance_of.cache_clear()


def test_a_formula_that_changes_less_than_the_tolerance_is_rejected() -> None:
    expected = reference(NAME, ARGS, {})
    assert_target_matches("onnx", 13, NAME, ARGS, {}, expected)  # 1e-4 does not tell it
    assert trivial.tolerance_of(NAME) == 0
    with pytest.raises(AssertionError, match=r"output y0 differs by .*, more than 0e"):
        assert_target_matches("onnx", 13, NAME, ARGS, {}, expected, trivial.tolerance_of(NAME))


def test_a_sample_beyond_the_tolerance_is_compared_within_it() -> None:
    zeros, ones = np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32)
    assert trivial.accepted(NAME, [Sample(ARGS)]) == {"x": False}
    assert trivial.accepted(NAME, [Sample(ARGS), Sample([zeros, ones])]) == {}


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("aten::abs", [np.abs(ARGS[0])], {"x": True}),
        ("aten::relu", [-np.abs(ARGS[0])], {"zeros": True}),
        ("aten::relu", [ARGS[0]], {}),
        ("aten::eq", [ARGS[0], ARGS[0]], {"ones": True}),
    ],
)
def test_samples_that_a_trivial_formula_passes(name: str, args: list[Any], expected: dict[str, bool]) -> None:
    assert trivial.accepted(name, [Sample(args)]) == expected
