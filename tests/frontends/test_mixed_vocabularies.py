"""Calls of one framework in graphs of another."""

from __future__ import annotations

import pytest

from tmconvert.frontends.aten.vocabulary import VOCABULARY as ATEN
from tmconvert.frontends.megengine.vocabulary import VOCABULARY as MEGENGINE
from tmconvert.frontends.shared.multi_source import vocabulary_of_call
from tmconvert.frontends.torch.vocabulary import VOCABULARY as TORCH
from tmconvert.ir import CallFunction


@pytest.mark.parametrize("declared", [None, ATEN, MEGENGINE, TORCH])
@pytest.mark.parametrize("own", [ATEN, MEGENGINE, TORCH])
@pytest.mark.parametrize(
    ("function", "expected"),
    [("aten::relu", ATEN), ("torch.relu", TORCH), ("megengine.functional.nn.relu", MEGENGINE)],
)
def test_a_function_belongs_to_one_vocabulary(
    function: str, expected: object, own: object, declared: object
) -> None:
    """Whatever graph the call is in, and whatever the expression declares."""
    expr = CallFunction(function, ())
    expr.vocabulary = declared  # type: ignore[assignment]
    found = vocabulary_of_call(own, expr, ()) or own  # type: ignore[arg-type]
    assert found is expected
    assert vocabulary_of_call(found, expr, ()) is None  # type: ignore[arg-type]
