"""Memory orders: values stay, every op gets what its rule wants, and no plan is cheaper."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.passes.graphs import Net, apply
from tmconvert.errors import GraphError
from tmconvert.ir import CallFunction, Constant, Expr, InternalGraph, TensorNode
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.passes.fuse_views import FuseViews
from tmconvert.symbolics.ops.shapes.view import simplified, stored
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.registry import lower
from tmconvert.targets.tflite.builder import TfliteBuilder
from tmconvert.targets.tflite.passes.align_ranks import AlignRanks
from tmconvert.targets.tflite.passes.assign_layout import AssignLayout, absorbs_flatten
from tmconvert.targets.tflite.passes.check_layout import check_layout
from tmconvert.targets.tflite.passes.layout_plan import (
    OPERATOR_COST,
    LayoutPlan,
    is_image,
    plan_layout,
    rule_of,
    transpose_cost,
)


def relayouts(graph: InternalGraph) -> int:
    return sum(isinstance(expr, CallFunction) and expr.function == "tm::relayout" for expr in graph)


def prepared(graph: InternalGraph) -> InternalGraph:
    apply(AlignRanks(catalogue()), graph)
    apply(FuseViews(catalogue()), graph)
    return graph


@st.composite
def networks(draw: st.DrawFn, size: int = 6) -> InternalGraph:
    """Convolutions, elementwise ops of one and two operands, reductions and views, joined at random."""
    net = Net()
    nodes = [net.input(*draw(st.sampled_from([(1, 2, 4, 6), (2, 3, 1, 5), (1, 1, 4, 6), (1, 6, 2, 2)])))]
    for _ in range(draw(st.integers(1, size))):
        x = draw(st.sampled_from(nodes))
        rank = x.type.rank
        kind = draw(
            st.sampled_from(["conv", "conv", "relu", "add", "constant", "softmax", "mean", "view", "cat"])
        )
        if kind == "conv" and rank == 4:
            nodes.append(net.conv(x, draw(st.integers(1, 3))))
        elif kind == "add":
            same = [node for node in nodes if node.type.shape == x.type.shape]
            nodes.append(net("aten::add", x, draw(st.sampled_from(same))))
        elif kind == "constant":
            nodes.append(net("aten::mul", x, net.constant(*x.type.shape[-draw(st.integers(1, rank)) :])))
        elif kind == "softmax":
            nodes.append(net("aten::softmax", x, draw(st.integers(0, rank - 1))))
        elif kind == "mean" and rank == 4:
            nodes.append(net("aten::mean", x, [2, 3], draw(st.booleans())))
        elif kind == "cat":
            nodes.append(net("aten::cat", [x, x], draw(st.integers(0, rank - 1))))
        elif kind == "view" and rank == 4:
            nodes.append(net("aten::permute", x, draw(st.permutations(range(4)))))
        elif kind == "view":
            nodes.append(net("aten::reshape", x, [1] * (4 - rank) + list(x.type.shape)))
        else:
            nodes.append(net("aten::relu", x))
    return net.give(nodes[-1], *draw(st.lists(st.sampled_from(nodes[1:]), max_size=1)))


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(networks(), st.sampled_from(["nhwc", "source"]))
def test_values_stay_and_rules_hold(graph: InternalGraph, io_layout: str) -> None:
    prepared(graph)
    order = "nhwc" if io_layout == "nhwc" else None
    names = [node.name for node in graph.outputs]
    inputs = {node.name for node in graph.inputs}
    if apply(AssignLayout(catalogue(), io_layout), graph):
        for node in [*graph.inputs, *graph.outputs]:
            assert isinstance(node, TensorNode)
            assert node.layout == (order if is_image(node) else None)
    check_layout(graph, catalogue())
    kept = [name for name in names if name not in inputs]
    assert [node.name for node in graph.outputs if node.name in kept] == kept


# ---- no plan is cheaper


def plans(graph: InternalGraph, io_nhwc: bool) -> Iterator[LayoutPlan]:
    """Every plan that the rules allow."""
    calls = [expr for expr in graph if not isinstance(expr, Constant)]
    choices: list[list[tuple[bool, bool]]] = []
    for call in calls:
        kind = rule_of(call, catalogue()).kind
        sides = {"nhwc": [(True, True)], "any": [(False, False), (True, True)]}.get(kind, [(False, False)])
        if kind == "view":
            x = [False, True] if is_image(call.args[0]) else [False]
            y = [False, True] if is_image(call.outputs[0]) else [False]
            sides = list(itertools.product(x, y))
        choices.append(sides)
    for chosen in itertools.product(*choices):
        takes = {call: pair[0] for call, pair in zip(calls, chosen, strict=True)}
        gives = {call: pair[1] for call, pair in zip(calls, chosen, strict=True)}
        yield LayoutPlan(takes, {**{node.expr: io_nhwc for node in graph.inputs}, **gives})


def view_cost(expr: Expr, plan: LayoutPlan) -> float:
    try:
        attributes = stored(
            expr.kwargs,
            expr.args[0].type.shape,
            nhwc_x=plan.takes_nhwc[expr],
            nhwc_result=plan.gives_nhwc[expr],
        )
    except ValueError:
        return float("inf")
    _, _, order = simplified(attributes["split"], attributes["index"], attributes["order"])
    result = expr.outputs[0].type
    return 0 if order == sorted(order) else result.size * result.dtype.itemsize + OPERATOR_COST


def cost(graph: InternalGraph, plan: LayoutPlan, io_nhwc: bool) -> float:
    """Bytes moved by transposes of tensors and inside views."""
    total = 0.0
    nodes = [*graph.inputs, *(node for expr in graph for node in expr.outputs)]
    for node in nodes:
        if not is_image(node) or isinstance(node.expr, Constant):
            continue
        users = {plan.takes_nhwc[user] for user in node.users} | (
            {io_nhwc} if graph.is_output(node) else set()
        )
        total += transpose_cost(node) if users - {plan.gives_nhwc[node.expr]} else 0
    for expr in graph:
        if isinstance(expr, CallFunction) and expr.function == "tm::view":
            total += view_cost(expr, plan)
    return total


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(networks(size=7), st.booleans())
def test_no_plan_is_cheaper(graph: InternalGraph, io_nhwc: bool) -> None:
    prepared(graph)
    inputs, outputs = (set(graph.inputs), set(graph.outputs)) if io_nhwc else (set(), set())
    plan = plan_layout(
        graph, catalogue(), nhwc_inputs=inputs, nhwc_outputs=outputs, absorbs_flatten=lambda expr: False
    )
    views = [expr for expr in graph if isinstance(expr, CallFunction) and expr.function == "tm::view"]
    best = min(cost(graph, other, io_nhwc) for other in plans(graph, io_nhwc))
    if all(is_submodular(view) for view in views):
        assert cost(graph, plan, io_nhwc) == best
    else:  # such a view keeps its result in the order of the source
        assert best <= cost(graph, plan, io_nhwc) < float("inf")


def is_submodular(view: Expr) -> bool:
    if not (is_image(view.args[0]) and is_image(view.outputs[0])):
        return True
    table = {
        pair: view_cost(view, LayoutPlan({view: pair[0]}, {view: pair[1]}))
        for pair in itertools.product([False, True], repeat=2)
    }
    return table[False, False] + table[True, True] <= table[False, True] + table[True, False]


# ---- particular networks


def test_a_chain_of_convolutions_has_no_relayout() -> None:
    net = Net()
    x = net.input(1, 2, 5, 7)
    y = net("aten::relu", net.conv(x, 3, kernel=3))
    graph = net.give(net("aten::add", net.conv(y, 3, kernel=3), y))
    assert apply(AssignLayout(catalogue(), "nhwc"), graph)
    assert relayouts(graph) == 0


def test_the_sources_order_costs_one_relayout_at_each_end() -> None:
    net = Net()
    graph = net.give(net("aten::relu", net.conv(net.input(1, 2, 5, 7), 3)))
    assert apply(AssignLayout(catalogue(), "source"), graph)
    assert relayouts(graph) == 2
    assert graph.inputs[0].layout is None
    assert graph.outputs[0].layout is None


def test_without_spatial_ops_nothing_changes() -> None:
    net = Net()
    graph = net.give(net("aten::relu", net.input(1, 2, 5, 7)))
    assert not apply(AssignLayout(catalogue(), "nhwc"), graph)
    assert graph.inputs[0].layout is None


def test_a_tensor_that_two_users_want_otherwise_is_moved_once() -> None:
    net = Net()
    y = net.conv(net.input(1, 2, 5, 7), 3)
    results = [net("aten::reshape", y, [3, 35]), net("aten::reshape", y, [15, 7])]
    graph = prepared(net.give(*results))
    assert apply(AssignLayout(catalogue(), "nhwc"), graph)
    assert relayouts(graph) <= 1


def test_computed_weights_stay_in_the_order_of_the_source() -> None:
    net = Net()
    x, w = net.input(1, 2, 5, 7), net.input(3, 2, 1, 1)
    weight = net("aten::relu", w)
    graph = net.give(net("aten::conv2d", x, weight, None, [1, 1], [0, 0], [1, 1], 1))
    assert apply(AssignLayout(catalogue(), "nhwc"), graph)
    *_, conv = graph
    assert conv.args[0].layout == "nhwc"
    assert conv.args[1].layout is None


def test_one_tensor_as_operand_and_as_weight() -> None:
    net = Net()
    x = net.input(2, 2, 1, 1)
    graph = net.give(net("aten::conv2d", x, x, None, [1, 1], [0, 0], [1, 1], 1))
    assert apply(AssignLayout(catalogue(), "nhwc"), graph)
    *_, conv = [expr for expr in graph if expr.function == "aten::conv2d"]
    assert [node.layout for node in conv.inputs] == ["nhwc", None]


@pytest.mark.parametrize("users", [1, 2])
def test_a_flatten_in_front_of_linear_layers_moves_the_weights(users: int) -> None:
    net = Net()
    flat = net("aten::reshape", net.conv(net.input(2, 2, 3, 5), 3), [2, 45])
    graph = prepared(net.give(*(net("aten::linear", flat, net.constant(4, 45), None) for _ in range(users))))
    (view,) = [expr for expr in graph if getattr(expr, "function", "") == "tm::view"]
    assert absorbs_flatten(graph, view)
    assert apply(AssignLayout(catalogue(), "nhwc"), graph)
    assert relayouts(graph) == 0
    assert view.kwargs["order"] == [0, 2, 3, 1]


def test_moved_weights_stay_where_they_are_in_memory() -> None:
    net = Net()
    flat = net("aten::reshape", net.conv(net.input(1, 1, 32, 64), 2), [1, 4096])
    weight = net.constant(65, 4096)
    graph = prepared(net.give(net("aten::linear", flat, weight, None)))
    assert apply(AssignLayout(catalogue(), "nhwc"), graph)
    made = lower(graph, catalogue(), "tflite", 20).graph
    (product,) = [each for each in made.operators if each.type == "FULLY_CONNECTED"]
    rows = product.inputs[1]
    assert rows is not None and rows.shape == (65, 4096)
    assert np.shares_memory(rows.stored, weight.expr.value)


def test_a_flatten_that_is_an_output_keeps_its_order() -> None:
    net = Net()
    flat = net("aten::reshape", net.conv(net.input(2, 2, 3, 5), 3), [2, 45])
    graph = prepared(net.give(net("aten::linear", flat, net.constant(4, 45), None), flat))
    assert apply(AssignLayout(catalogue(), "nhwc"), graph)


def test_constants_are_stored_in_both_orders_where_both_are_used() -> None:
    net = Net()
    x = net.input(1, 2, 5, 7)
    shared = net.constant(1, 2, 5, 7)
    y = net("aten::mul", net.conv(x, 2), shared)
    z = net("aten::reshape", net("aten::neg", shared), [2, 35])
    graph = prepared(net.give(y, z))
    assert apply(AssignLayout(catalogue(), "nhwc"), graph)
    assert relayouts(graph) == 0


def test_quantization_stays_with_a_tensor_that_is_moved() -> None:
    from tmconvert.ir import QParams

    net = Net()
    y = net.conv(net.input(1, 2, 5, 7), 3)
    y.qparams = QParams("int8", (0.5,), (0,), -128, 127)
    graph = net.give(y)
    apply(AssignLayout(catalogue(), "source"), graph)
    assert graph.outputs[0] is not y
    assert graph.outputs[0].qparams == y.qparams


# ---- the check itself


def assigned() -> InternalGraph:
    net = Net()
    y = net("aten::add", net.conv(net.input(1, 2, 5, 7), 2), net.input(1, 2, 5, 7))
    graph = net.give(net("aten::reshape", y, [2, 35]))
    AssignLayout(catalogue(), "source").run(prepared(graph))
    check_layout(graph, catalogue())
    return graph


@pytest.mark.parametrize(
    ("function", "spoil", "message"),
    [
        (
            "aten::conv2d",
            lambda expr: setattr(expr.output, "layout", None),
            "its first operand and its result",
        ),
        ("aten::conv2d", lambda expr: setattr(expr.inputs[1], "layout", "nhwc"), "weights must not"),
        ("aten::add", lambda expr: setattr(expr.inputs[1], "layout", "nhwc"), "have different layouts"),
        ("tm::relayout", lambda expr: setattr(expr.output, "layout", None), "it does not convert"),
        ("tm::view", lambda expr: setattr(expr.output, "layout", "nhwc"), "cannot be stored as nhwc"),
        ("aten::add", lambda expr: setattr(expr.output, "layout", "chwn"), "cannot be stored as chwn"),
    ],
)
def test_a_broken_layout_is_found(function: str, spoil: object, message: str) -> None:
    graph = assigned()
    expr = next(expr for expr in graph if getattr(expr, "function", "") == function)
    if function == "aten::add":
        assert [node.layout for node in expr.inputs] == [expr.output.layout] * 2
        for node in (*expr.inputs, expr.output):
            node.layout = None
    spoil(expr)  # type: ignore[operator]
    with pytest.raises(GraphError, match="TM3019") as caught:
        check_layout(graph, catalogue())
    assert message in caught.value.message or "first operand" in caught.value.message


def test_an_operand_of_lower_rank_is_found() -> None:
    net = Net()
    x = net.input(1, 2, 5, 7)
    graph = net.give(net("aten::add", x, net.constant(7)))
    for node in (x, graph.outputs[0]):
        node.layout = "nhwc"
    with pytest.raises(GraphError, match="an operand of lower rank"):
        check_layout(graph, catalogue())
    assert np.prod(x.shape) == 70


@pytest.mark.parametrize("shape", [(6, 4), (3, 8), (24,), (2, 3, 4), (1, 24)])
def test_constants_in_another_order_have_the_shape_asked_for(shape: tuple[int, ...]) -> None:
    builder = TfliteBuilder(TargetGraph("tflite", 20, "net"))
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    value = builder.const(array.T, shape=shape)
    assert value.shape == value.elements().reshape(shape).shape == value.data.shape
    assert np.array_equal(value.data, array.T.reshape(shape))
