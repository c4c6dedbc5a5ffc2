"""Chains of reshapes, transposes and selections compute the same when fused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.passes.graphs import Net, apply
from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.passes.decompose import Decompose
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.fuse_views import FuseViews
from tmconvert.symbolics.registry import catalogue


def functions(graph: InternalGraph) -> list[str]:
    return [expr.function for expr in graph if isinstance(expr, CallFunction)]


def fused(graph: InternalGraph) -> list[str]:
    apply(FuseViews(catalogue()), graph)
    apply(EliminateDeadCode(), graph)
    return functions(graph)


@st.composite
def reshaped(draw: st.DrawFn, shape: tuple[int, ...]) -> list[int]:
    """Another shape of as many elements: factors merged and split, axes of extent 1 anywhere."""
    size = math.prod(shape)
    if size == 0:
        return draw(st.permutations(shape))
    result: list[int] = []
    for extent in draw(st.sampled_from([list(shape), [size]])):
        divisors = [d for d in range(1, extent + 1) if extent % d == 0]
        first = draw(st.sampled_from(divisors))
        result += draw(st.sampled_from([[extent], [first, extent // first], [1, extent], [extent, 1]]))
    while len(result) > 1 and draw(st.booleans()):
        place = draw(st.integers(0, len(result) - 2))
        result[place : place + 2] = [result[place] * result[place + 1]]
    if result and size == 1 and draw(st.booleans()):
        return []
    return result[:7] if math.prod(result[:7]) == size else [size]


@st.composite
def networks(draw: st.DrawFn) -> InternalGraph:
    net = Net()
    extents = st.sampled_from([1, 1, 2, 3, 4, 6, 8, 0])
    nodes: list[Any] = [net.input(*draw(st.lists(extents, min_size=1, max_size=4)))]
    for _ in range(draw(st.integers(1, 8))):
        x = draw(st.sampled_from(nodes[-3:]))
        shape = x.type.shape
        kind = draw(st.sampled_from(["reshape", "reshape", "permute", "permute", "select", "neg"]))
        if kind == "permute" and shape:
            nodes.append(net("aten::permute", x, draw(st.permutations(range(len(shape))))))
        elif kind == "select" and shape and all(shape):
            dim = draw(st.integers(0, len(shape) - 1))
            nodes.append(net("aten::select", x, dim, draw(st.integers(0, shape[dim] - 1))))
        elif kind == "neg":
            nodes.append(net("aten::neg", x))
        else:
            nodes.append(net("aten::reshape", x, draw(reshaped(shape))))
    outputs = draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=3))
    return net.give(nodes[-1], *outputs)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(networks())
def test_any_chain_computes_the_same(graph: InternalGraph) -> None:
    left = fused(graph)
    # only an axis that cuts across a factor, or an empty tensor, keeps a chain from being one view
    assert all(function != "aten::permute" for function in left)
    apply(Decompose(catalogue(), "caffe", 0), graph)


def test_a_chain_becomes_one_view() -> None:
    net = Net()
    x = net.input(2, 12, 5, 7)
    y = net("aten::permute", net("aten::reshape", x, [2, 3, 4, 5, 7]), [0, 2, 1, 3, 4])
    y = net("aten::select", net("aten::reshape", y, [2, 12, 35]), 0, 1)
    assert fused(net.give(net("aten::permute", y, [1, 0]))) == ["tm::view"]


def test_an_axis_across_a_factor_ends_the_chain() -> None:
    net = Net()
    y = net("aten::permute", net.input(6, 4), [1, 0])
    assert fused(net.give(net("aten::reshape", y, [6, 4]))) == ["tm::view", "aten::reshape"]


def test_a_transpose_with_two_users_is_done_once() -> None:
    net = Net()
    y = net("aten::permute", net.input(4, 6, 5), [2, 1, 0])
    graph = net.give(net("aten::reshape", y, [30, 4]), net("aten::reshape", y, [5, 24]))
    assert fused(graph) == ["tm::view"] * 3
    assert graph.inputs[0].users[0].outputs[0].name == y.name


def test_selections_of_a_transpose_take_their_part_only() -> None:
    net = Net()
    y = net("aten::permute", net.input(3, 2, 5), [1, 0, 2])
    graph = net.give(*(net("aten::select", y, 0, i) for i in range(2)))
    assert fused(graph) == ["tm::view"] * 2
    assert len(graph.inputs[0].users) == 2


def test_what_is_no_view_ends_the_chain() -> None:
    net = Net()
    y = net("aten::relu", net("aten::permute", net.input(2, 3), [1, 0]))
    assert fused(net.give(net("aten::permute", y, [1, 0]))) == ["tm::view", "aten::relu", "tm::view"]


def test_axes_and_indices_may_count_from_the_end() -> None:
    net = Net()
    y = net("aten::permute", net.input(2, 3, 5), [0, 1, 2])
    graph = net.give(net("aten::select", y, 0, 1))
    *_, select = graph
    select.kwargs.update(dim=-3, index=-1)
    assert fused(graph) == ["tm::view"]


def test_names_and_outputs_in_the_middle_stay() -> None:
    net = Net()
    x = net.input(2, 3, 5)
    a = net("aten::reshape", x, [6, 5])
    b = net("aten::permute", a, [1, 0])
    c = net("aten::reshape", b, [5, 2, 3])
    graph = net.give(b, c, a)
    names = [node.name for node in graph.outputs]
    assert fused(graph) == ["tm::view"] * 3
    assert [node.name for node in graph.outputs] == names
    assert all(isinstance(node, TensorNode) for node in graph.outputs)
    assert {"aten::reshape", "aten::permute", "aten::select"}.isdisjoint(functions(graph))
