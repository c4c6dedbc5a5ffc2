"""aten::scaled_dot_product_attention where a query may look at nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.opsets import skip_for_old_runtime
from tests.symbolics.ops.harness import Const, assert_op_matches, normal, op_graph, prepared
from tmconvert.passes.decompose import Decompose
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.registry import lower

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


# ---- Attention, from opset 23 on

HEADS = normal(0, 2, 4, 3, 8), normal(1, 2, 4, 5, 8), normal(2, 2, 4, 5, 6)
PADDED = np.array([[True] * 5, [True, True, False, False, False]])[:, None, None]
NEAR = np.tri(3, 5) > 0


def operators(args: list[object], attributes: dict[str, object], opset: int) -> list[str]:
    graph = prepared("onnx", opset, ATTENTION, args, attributes)
    return [each.type for each in lower(graph, catalogue(), "onnx", opset).graph.operators]


@pytest.mark.parametrize("opset", [23, 24, 25])
@pytest.mark.parametrize(
    ("args", "attributes"),
    [
        ([*HEADS, None], {}),
        ([*HEADS, None], {"is_causal": True}),
        ([*HEADS, None], {"scale": 0.5}),
        ([*HEADS, PADDED], {}),
        ([*HEADS, NEAR], {}),
        ([*HEADS, np.array([[True] * 5, [False] * 5, [True] * 5])], {}),
        ([*HEADS, Const(normal(3, 3, 5))], {}),
        ([HEADS[0], HEADS[1][:, :2], HEADS[2][:, :2], None], {"enable_gqa": True}),
    ],
    ids=["plain", "causal", "scale", "padding", "bool", "blind", "float", "gqa"],
)
def test_one_operator_from_opset_23_on(args: list[object], attributes: dict[str, object], opset: int) -> None:
    found = operators(args, attributes, opset)
    assert set(found) <= {"Attention", "Expand"} and found.count("Attention") == 1
    assert "Attention" not in operators(args, attributes, 22)
    skip_for_old_runtime(ATTENTION)
    assert_op_matches(ATTENTION, args, attributes, targets=["onnx"], opsets=[opset])


HIDDEN = np.where(PADDED, 0, np.finfo(np.float32).min).astype(np.float32)


@pytest.mark.parametrize(
    ("args", "attributes"),
    [
        ([*(each[:, 0] for each in HEADS), None], {}),
        ([HEADS[0], HEADS[1][:1], HEADS[2][:1], None], {}),
        ([*HEADS, HIDDEN], {}),
        ([*HEADS, Const(np.full((3, 5), np.finfo(np.float32).min, np.float32))], {}),
        ([*HEADS, None], {"scale": -0.5}),
        ([*(each.astype(np.float16) for each in HEADS), None], {}),
    ],
    ids=["three-axes", "broadcast", "float-mask", "lowest-mask", "negative-scale", "float16"],
)
def test_what_the_operator_of_the_runtime_computes_otherwise_is_decomposed(
    args: list[object], attributes: dict[str, object]
) -> None:
    assert "Attention" not in operators(args, attributes, 23)
    assert_op_matches(ATTENTION, args, attributes, targets=["onnx"], opsets=[23])
