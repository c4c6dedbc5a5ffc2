"""aten::scaled_dot_product_attention where a query may look at nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.symbolics.ops.harness import Const, assert_op_matches, normal, op_graph
from tmconvert.passes.decompose import Decompose
from tmconvert.symbolics.registry import catalogue

ATTENTION = "aten::scaled_dot_product_attention"
SEES = np.array([[True, False], [False, False], [True, True]])
QUERY, KEY = normal(0, 2, 3, 4), normal(1, 2, 2, 4)


@pytest.mark.parametrize("mask", [SEES, np.where(SEES, 0, -np.inf).astype(np.float32)], ids=["bool", "float"])
def test_a_query_that_sees_nothing_gets_zeros(mask: np.ndarray) -> None:
    """As torch has it since 2.5; softmax alone gives NaN."""
    scores = np.where(SEES, QUERY @ KEY.swapaxes(1, 2) / 2, -np.inf)
    powers = np.exp(scores)
    weights = powers / np.maximum(powers.sum(-1, keepdims=True), 1e-30)
    expected = [(weights @ KEY).astype(np.float32)]
    assert not expected[0][:, 1].any()
    for given in (mask, Const(mask)):
        args = [QUERY, KEY, KEY, given]
        assert_op_matches(ATTENTION, args, {}, expected=expected, targets=["onnx"])


def test_nothing_is_added_where_each_query_is_known_to_see_something() -> None:

    graph = op_graph(ATTENTION, [QUERY, KEY, KEY, Const(np.zeros((3, 2), np.float32))], {})
    Decompose(catalogue(), "onnx", 17).run(graph)
    assert "where" not in graph.to_text()
