"""Folding, dead code, ranks and decompositions: limits, and random networks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.passes.graphs import Net, apply
from tmconvert.errors import InternalError
from tmconvert.ir import CallFunction, Constant, InternalGraph, TensorNode
from tmconvert.ir.parser import parse_graph
from tmconvert.passes import fold_constants
from tmconvert.passes.decompose import Decompose
from tmconvert.passes.drop_identities import DropIdentities
from tmconvert.passes.eliminate_common_subexpressions import EliminateCommonSubexpressions
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.fold_constants import FoldConstants
from tmconvert.symbolics.op import FLOATS, Op, Tensor
from tmconvert.symbolics.registry import Catalogue, catalogue
from tmconvert.symbolics.results import same_as
from tmconvert.targets.tflite.passes.align_ranks import AlignRanks


def functions(graph: InternalGraph) -> list[str]:
    return [expr.function for expr in graph if isinstance(expr, CallFunction)]


@st.composite
def networks(draw: st.DrawFn) -> InternalGraph:
    """Elementwise ops on inputs and constants that broadcast, with dead ends."""
    net = Net()
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    nodes = [net.input(*shape), net.input(*shape[-1:])]
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["constant", "neg", "relu", "add", "mul", "sub"]))
        if kind == "constant":
            kept = shape[draw(st.integers(0, len(shape))) :]
            nodes.append(net.constant(*(draw(st.sampled_from([1, extent])) for extent in kept)))
        elif kind in ("neg", "relu"):
            nodes.append(net(f"aten::{kind}", draw(st.sampled_from(nodes))))
        else:
            nodes.append(net(f"aten::{kind}", *(draw(st.sampled_from(nodes)) for _ in range(2))))
    return net.give(*draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=3)))


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(networks())
def test_random_networks(graph: InternalGraph) -> None:
    apply(FoldConstants(catalogue()), graph)
    for expr in graph:
        assert not isinstance(expr, CallFunction) or not all(
            isinstance(node.expr, Constant) for node in expr.inputs
        )
    apply(AlignRanks(catalogue()), graph)
    for expr in graph:
        if isinstance(expr, CallFunction) and expr.function != "aten::reshape":
            ranks = {
                node.type.rank
                for node in expr.inputs
                if node.type.size > 1 or not isinstance(node.expr, Constant)
            }
            assert len(ranks) <= 1
    apply(EliminateDeadCode(), graph)
    assert all(graph.use_count(node) for expr in graph for node in expr.outputs)
    for step in (FoldConstants(catalogue()), AlignRanks(catalogue()), EliminateDeadCode()):
        assert not apply(step, graph)


# ---- fold_constants


def constant_call(op: str, shape: tuple[int, ...], **attributes: object) -> InternalGraph:
    """A call on a constant, which the emitter would fold at once."""
    net = Net()
    value = net.constant(*shape)
    types = catalogue()[op].infer([value.type], attributes)
    result = TensorNode("y", types[0].shape, types[0].dtype)
    net.graph.insert(CallFunction(op, (value,), attributes, result=result, made_by="test"))
    net.graph.set_result(result)
    return net.graph


def test_a_folded_value_has_the_name_and_the_quantization_of_the_result() -> None:
    text = (
        'graph g() -> (%y) {\n  %c = aten::constant() {value=[1.0], name="scale"} : f32[1] by("a")\n'
        '  %y = aten::neg(%c) : f32[1] q{dtype="int8", scale=[0.5], zero_point=[0], range=[-128, 127], '
        'channel_axis=none} by("b")\n}\n'
    )
    graph = parse_graph(text)
    assert apply(FoldConstants(catalogue()), graph)
    (folded,) = [expr for expr in graph if expr.outputs[0].name == "y"]
    assert isinstance(folded, Constant)
    assert folded.name == "scale"
    assert folded.made_by == "fold_constants"
    assert folded.output.qparams is not None


def test_results_that_grow_are_not_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_constants, "MAX_ELEMENTS", 1000)
    assert not apply(FoldConstants(catalogue()), constant_call("aten::neg", (1001,)))
    assert apply(FoldConstants(catalogue()), constant_call("aten::neg", (1000,)))


def test_huge_padding_is_not_folded() -> None:
    attributes = {
        "kernel_size": [10**9 + 1, 1], "stride": [10**9, 1], "padding": [5 * 10**8, 0], "dilation": [1, 1],
        "ceil_mode": False,
    }  # fmt: skip
    graph = constant_call("aten::max_pool2d", (1, 1, 2, 2), **attributes)
    assert not FoldConstants(catalogue()).run(graph)


def test_an_op_without_kernel_is_not_folded() -> None:
    op = Op("t::opaque", args=[Tensor("x", FLOATS)], result=same_as("x"))
    graph = parse_graph(
        'graph g() -> (%y) {\n  %c = aten::constant() {value=[1.0]} : f32[1] by("a")\n'
        '  %y = t::opaque(%c) : f32[1] by("b")\n}\n'
    )
    assert not FoldConstants(Catalogue([op])).run(graph)


# ---- decompose


def test_only_what_the_target_lacks_is_decomposed() -> None:
    for version, expected in ((7, False), (17, False)):
        net = Net()
        graph = net.give(net("aten::relu", net.input(2, 3)))
        assert apply(Decompose(catalogue(), "onnx", version), graph) is expected


def test_what_a_decomposition_emits_is_decomposed_in_turn() -> None:
    once = Op("t::once", args=[Tensor("x", FLOATS)], result=same_as("x"))
    twice = Op("t::twice", args=[Tensor("x", FLOATS)], result=same_as("x"))
    once.decompose(lambda g, x: g.call("aten::neg", x))
    twice.decompose(lambda g, x: g.call("t::once", g.call("t::once", x)))
    ops = Catalogue([once, twice, *catalogue().values()])
    graph = parse_graph('graph g(%x: f32[2]) -> (%y) {\n  %y = t::twice(%x) : f32[2]   loc("a.py":3)\n}\n')
    assert Decompose(ops, "onnx", 17).run(graph)
    assert functions(graph) == ["aten::neg", "aten::neg"]
    assert graph.outputs[0].name == "y"
    assert all(expr.source.line == 3 and expr.made_by == "decompose" for expr in graph)


def test_a_decomposition_may_give_its_argument_back() -> None:
    same = Op("t::same", args=[Tensor("x", FLOATS)], result=same_as("x"))
    same.decompose(lambda g, x: x)
    graph = parse_graph('graph g(%x: f32[2]) -> (%y) {\n  %y = t::same(%x) : f32[2] by("a")\n}\n')
    assert Decompose(Catalogue([same]), "onnx", 17).run(graph)
    assert graph.outputs == graph.inputs


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda g, x: [x, x], "the decomposition of t::bad gives 2 results, not 1"),
        (lambda g, x: g.call("aten::reshape", x, [2, 1]), "gives f32[2,1], not f32[2]"),
    ],
)
def test_a_wrong_decomposition_is_our_defect(made: object, message: str) -> None:
    bad = Op("t::bad", args=[Tensor("x", FLOATS)], result=same_as("x"))
    bad.decompose(made)  # type: ignore[arg-type]
    graph = parse_graph('graph g(%x: f32[2]) -> (%y) {\n  %y = t::bad(%x) : f32[2]   loc("a.py":3)\n}\n')
    with pytest.raises(InternalError) as caught:
        Decompose(Catalogue([bad, *catalogue().values()]), "onnx", 17).run(graph)
    assert caught.value.code == "TM9004"
    assert message in str(caught.value)
    assert "a.py:3" in str(caught.value)


# ---- align_ranks


def test_operands_used_twice_are_aligned_together() -> None:
    net = Net()
    x, y = net.input(2, 3, 4), net.input(4)
    graph = net.give(net("aten::add", net("aten::mul", y, y), x))
    assert apply(AlignRanks(catalogue()), graph)
    assert functions(graph) == ["aten::mul", "aten::reshape", "aten::add"]


def test_scalars_stay_as_they_are() -> None:
    net = Net()
    scalar = net.emitter.constant(np.float32(2))
    graph = net.give(net("aten::mul", net.input(2, 3, 4, 5), scalar))
    assert not apply(AlignRanks(catalogue()), graph)


def test_equal_calls_are_computed_once() -> None:
    net = Net()
    x = net.input(2, 4)
    halves = [net("aten::slice", x, 1, 0, 2) for _ in range(3)]
    twice = [net("aten::mul", half, net.emitter.constant(np.float32(2))) for half in halves[:2]]
    graph = net.give(net("aten::mul", *twice), halves[2], net("aten::slice", x, 1, 2, 4))
    assert apply(EliminateCommonSubexpressions(catalogue()), graph)
    calls = [expr.function for expr in graph if isinstance(expr, CallFunction)]
    assert sorted(calls) == ["aten::mul"] * 2 + ["aten::slice"] * 3  # outputs stay
    assert not apply(EliminateCommonSubexpressions(catalogue()), graph)


@pytest.mark.parametrize("steps", [0, 6])
def test_equal_searches_find_as_many(steps: int) -> None:
    """That few calls before a search are equal is known when it is made; of many, the pass finds it."""
    net = Net()
    x = net.input(2, 4)
    masks = []
    for _ in range(2):
        value = x
        for _ in range(steps):
            value = net("aten::mul", value, net.emitter.constant(np.float32(2)))
        masks.append(net("aten::gt", value, net.emitter.constant(np.float32(0))))
    places = [net("aten::nonzero", mask) for mask in masks]
    assert len({str(each.type) for each in places}) == (2 if steps else 1)
    graph = net.give(*(net("aten::neg", each) for each in places))
    assert apply(EliminateCommonSubexpressions(catalogue()), graph)  # which is verified
    assert functions(graph) == ["aten::mul"] * steps + ["aten::gt", "aten::nonzero", "aten::neg", "aten::neg"]
    assert len({str(node.type) for node in graph.outputs}) == 1


@pytest.mark.parametrize(
    ("op", "number", "place", "is_dropped"),
    [
        ("mul", 1, 1, True),
        ("mul", 1, 0, True),
        ("div", 1, 1, True),
        ("div", 1, 0, False),
        ("add", 0, 0, True),
        ("sub", 0, 1, True),
        ("sub", 0, 0, False),
        ("mul", 0, 1, False),
    ],
)
@pytest.mark.parametrize("shape", [(), (2, 1, 1)])
def test_neutral_elements_are_left_out(
    op: str, number: int, place: int, is_dropped: bool, shape: tuple[int, ...]
) -> None:
    net = Net()
    x = net("aten::relu", net.input(1, 2, 4, 4))
    constant = net.emitter.constant(np.full(shape, number, np.float32))
    graph = net.give(net("aten::tanh", net(f"aten::{op}", *((x, constant) if place else (constant, x)))))
    assert apply(DropIdentities(), graph) == is_dropped
    assert (f"aten::{op}" not in functions(graph)) == is_dropped


def test_a_neutral_element_that_widens_stays() -> None:
    net = Net()
    ones = net.emitter.constant(np.ones((3, 1, 4, 4), np.float32))
    assert not apply(DropIdentities(), net.give(net("aten::mul", net.input(1, 2, 4, 4), ones)))


def test_identities_are_left_out() -> None:
    net = Net()
    x = net("aten::pad", net.input(1, 2, 4, 4), [0] * 8, "constant", 0.0)
    x = net("aten::slice", net("aten::avg_pool2d", x, [1, 1], [1, 1]), 2, 0, 4)
    x = net("aten::max_pool2d", net("aten::relu", x), [1, 1], [1, 1])
    graph = net.give(net("aten::slice", net("aten::relu", x), 1, 0, 2))
    name = graph.outputs[0].name
    assert apply(DropIdentities(), graph)
    assert functions(graph) == ["aten::relu", "aten::relu"]
    assert graph.outputs[0].name == name  # the last relu has it now
    assert not apply(DropIdentities(), graph)
    net = Net()
    x = net("aten::slice", net.input(1, 2, 4, 4), 1, 0, 2)
    assert not apply(DropIdentities(), net.give(x))  # an input keeps its name, too
    net = Net()
    x = net("aten::avg_pool2d", net.input(1, 2, 4, 4), [1, 1], [2, 2])
    assert not apply(DropIdentities(), net.give(net("aten::relu", x)))


def test_factors_of_one_are_left_out() -> None:
    net = Net()
    x, one, zero = (
        net.input(2, 3),
        net.emitter.constant(np.ones((), np.float32)),
        net.emitter.constant(np.zeros(3, np.float32)),
    )
    x = net("aten::sub", net("aten::div", net("aten::mul", net("aten::relu", x), one), one), zero)
    graph = net.give(net("aten::relu", x), net("aten::mul", x, net.constant(3)))
    assert apply(DropIdentities(), graph)
    assert functions(graph) == ["aten::relu", "aten::relu", "aten::mul"]
    net = Net()  # a wider result is no identity
    x = net("aten::mul", net.input(3), net.emitter.constant(np.ones((2, 3), np.float32)))
    assert not apply(DropIdentities(), net.give(net("aten::relu", x)))


def test_dead_code_is_removed_after_the_edits_that_made_it() -> None:
    graph = parse_graph(
        """
graph net(%x: f32[2]) -> (%b) {
  %a = aten::neg(%x) : f32[2]   loc("m.tm":1)
  %b = aten::relu(%a) : f32[2]   loc("m.tm":2)
}
"""
    )
    step = EliminateDeadCode()
    assert not step.run(graph)
    assert not step.run(graph)
    last = graph.last
    assert last is not None
    graph.relink(last, (graph.inputs[0],), {})
    assert [event.node for event in step.run(graph).done] == ["a"]
