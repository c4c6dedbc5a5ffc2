"""Tests draw the same numbers in any order."""

from __future__ import annotations

import pytest

from tests.frontends.onnx import one_node


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    one_node.RNG.bit_generator.state = one_node.STATE
