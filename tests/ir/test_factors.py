"""Sizes without the atoms that all of their terms have."""

from __future__ import annotations

import pytest

from tmconvert.ir.symbolic.dims import dim
from tmconvert.ir.symbolic.factors import without_common_factor

batch, height, width = dim("batch", 2), dim("height", 64), dim("width", 48)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (batch * height - batch * 64, height - 64),
        (batch * batch * height - batch * 128, batch * height - 128),
        (batch * width * height - batch * width * 64, height - 64),
        (height - 64, height - 64),  # no common factor
        (batch * height, batch * height),  # one term
        (batch * height - batch * 3, batch * height - batch * 3),  # not 0 in the example
    ],
)
def test_common_factor(size: object, expected: object) -> None:
    assert without_common_factor(size) == expected  # type: ignore[arg-type]
