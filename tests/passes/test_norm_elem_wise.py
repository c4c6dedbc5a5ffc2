"""Differences and quotients with constants become sums and products; a quotient by 0 stays."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.graphs import apply, refusals
from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.passes.norm_elem_wise import NormElemWise
from tmconvert.symbolics.registry import catalogue


def graph_of(op: str, constant: float, is_first: bool) -> InternalGraph:
    graph = InternalGraph()
    x = TensorNode("x", (2,), np.dtype(np.float32))
    graph.add_input(x)
    g = GraphEmitter(graph, catalogue(), made_by="test")
    operands = [x, g.constant(np.full(1, constant, np.float32))]
    graph.set_result(g.call(op, *(operands[::-1] if is_first else operands)))
    return graph


@pytest.mark.parametrize(
    ("op", "is_first", "functions"),
    [
        ("aten::sub", False, ["aten::add"]),
        ("aten::sub", True, ["aten::neg", "aten::add"]),
        ("aten::div", False, ["aten::mul"]),
        ("aten::div", True, ["aten::reciprocal", "aten::mul"]),
    ],
)
def test_inverse_arithmetic(op: str, is_first: bool, functions: list[str]) -> None:
    graph = graph_of(op, 4.0, is_first)
    assert apply(NormElemWise(catalogue()), graph)
    assert [expr.function for expr in graph if isinstance(expr, CallFunction)] == functions


def test_a_quotient_by_0_stays() -> None:
    assert refusals(NormElemWise(catalogue()), graph_of("aten::div", 0.0, False)) == ["it divides by 0"]
