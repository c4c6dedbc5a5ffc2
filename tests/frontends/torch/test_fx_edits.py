"""Edits of graphs and nodes that PyTorch's tests of torch.fx make, made to a traced graph.

``fx_suite.py`` has the test of PyTorch for each of these.
"""

from __future__ import annotations

import copy
import gc
import operator
import sys
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tmconvert  # noqa: E402
from tests.frontends.torch.fx_cases import X, check, flat, traced  # noqa: E402
from tmconvert.errors import GraphError, TmconvertError  # noqa: E402
from tmconvert.ir import Node  # noqa: E402

Y = X.flip(0) * 2


class Affine(torch.nn.Module):
    """A module, a parameter, a method and a function: each kind of expression."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 5)
        self.offset = torch.nn.Parameter(torch.linspace(-2, 2, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(self.linear(x).add(self.offset))


# ---- graphs in graphs


def test_a_copied_graph_is_used_twice() -> None:
    tm, graph = traced(lambda a, b: a + b, X, Y)
    a, _, total, _ = graph.nodes
    _, other = traced(lambda a, b: a * b, X, Y)
    values: dict[Node, Any] = dict(zip(list(other.nodes)[:2], (a, total), strict=True))
    with graph.inserting_after(total):
        product = graph.graph_copy(other, values)
    with graph.insert_exprs():
        graph.output(product + product)
    check(tm, 2 * X * (X + Y), X, Y)
    names = [node.name for node in graph.nodes]
    assert len(set(names)) == len(names)
    assert values[list(other.nodes)[2]] is product


def test_names_of_copies_are_unique() -> None:
    _, graph = traced(lambda x: torch.relu(x) + 1)
    _, relu, total, _ = graph.nodes
    relu.name, total.name = "foo_1_1", "foo_1"
    _, other = traced(lambda x: torch.relu(x) + 1)
    for node, name in zip(list(other.nodes)[1:3], ("foo_1", "foo_1_1"), strict=True):
        node.name = name
    graph.graph_copy(other, {next(iter(other.nodes)): total})
    names = [node.name for node in graph.nodes]
    assert len(set(names)) == len(names) == 6


def test_graphs_are_inlined() -> None:
    tm, graph = traced(lambda x: torch.relu(x))
    _, other = traced(lambda x: torch.neg(x))
    result = graph.graph_copy(other, {next(iter(other.nodes)): graph.output_node().args[0]})
    graph.output(result)
    check(tm, -torch.relu(X))


def test_a_copy_has_the_place_of_its_source() -> None:
    _, graph = traced(lambda a, b: a + b, X, Y)
    total = list(graph.nodes)[2]
    assert "test_fx_edits.py" in str(total.stack_trace)
    copied = graph.node_copy(total)
    assert copied.stack_trace == total.stack_trace


def test_nodes_of_another_graph_are_refused() -> None:
    _, graph = traced(lambda x: torch.relu(x + 3.0))
    _, other = traced(lambda x: torch.sin(x))
    before = str(graph)
    with pytest.raises(GraphError):
        graph.node_copy(list(other.nodes)[1])
    assert str(graph) == before


# ---- calls of each kind


def test_calls_of_each_kind() -> None:
    net = Affine().eval()
    tm, graph = traced(net)
    x = next(iter(graph.nodes))
    b = graph.call_module("linear", (x,))
    c = graph.get_attr("offset")
    d = graph.call_method("sub", (b, c))
    e = graph.call_function(torch.cos, (d,))
    graph.output(e)
    assert graph.eliminate_dead_code()
    assert [node.op for node in graph.nodes] == [
        *["placeholder", "call_module", "get_attr", "call_method", "call_function", "output"]
    ]
    check(tm, torch.cos(net.linear(X) - net.offset))


def test_nodes_are_created_by_kind() -> None:
    net = Affine().eval()
    tm, graph = traced(net)
    x = next(iter(graph.nodes))
    b = graph.create_node("call_module", "linear", args=(x,), name="b")
    c = graph.create_node("get_attr", "offset", name="b")
    d = graph.create_node("call_function", operator.add, args=(b, c))
    e = graph.create_node("call_function", torch.unsqueeze, args=(d,), kwargs={"dim": 0}, name="e")
    graph.create_node("output", "output", (e,))
    assert b.name == "b" and c.name != "b" and e.name == "e"
    assert (b.all_input_nodes, c.all_input_nodes, d.all_input_nodes) == ([x], [], [b, c])
    assert e.all_input_nodes == [d]
    check(tm, (net.linear(X) + net.offset).unsqueeze(0))


def test_infinite_constants() -> None:
    tm, graph = traced(lambda x: torch.relu(x))
    x = next(iter(graph.nodes))
    high = graph.create_node("call_function", operator.add, (x, float("inf")), {}, name="inf")
    none = graph.create_node("call_function", operator.add, (x, float("nan")), {}, name="nan")
    graph.output((high, none))
    check(tm, (X + float("inf"), X + float("nan")))


def test_unknown_functions_are_refused() -> None:
    _, graph = traced(lambda x: torch.relu(x))
    before = str(graph)
    with pytest.raises(TmconvertError):
        graph.create_node("call_function", "foo", (next(iter(graph.nodes)),))
    with pytest.raises(TmconvertError):
        graph.create_node("call", torch.relu, (next(iter(graph.nodes)),))
    assert str(graph) == before


# ---- uses


def test_removed_nodes_use_nothing() -> None:
    tm, graph = traced(lambda x: torch.neg(torch.relu(x)))
    _, relu, neg, _ = graph.nodes
    call = neg.expr
    neg.replace_all_uses_with(relu)
    graph.erase_node(neg)
    assert call not in relu.users
    check(tm, torch.relu(X))


def test_the_caller_chooses_the_users() -> None:
    _, graph = traced(lambda x: torch.neg(torch.relu(x)))
    _, relu, neg, _ = graph.nodes
    neg.replace_all_uses_with(relu, lambda user: user != neg.expr)
    assert neg.expr in relu.users


@pytest.mark.slow
def test_erased_nodes_are_freed() -> None:
    _, graph = traced(lambda x: (torch.relu(x), torch.neg(x)))
    _, relu, neg, _ = graph.nodes
    relu.prepend(neg)
    graph.output(relu)
    neg.meta["token"] = token = Token()
    reference = weakref.ref(token)
    graph.erase_node(neg)
    del neg, token
    gc.collect()
    assert reference() is None


class Token:
    """What only the notes of a node refer to."""


def test_users_of_values() -> None:
    tm, graph = traced(lambda x: torch.relu(x))
    x = next(iter(graph.nodes))
    with graph.insert_exprs():
        y, z, u = torch.relu(x), x + x, torch.neg(x)
        graph.output(y + z + u)
    graph.eliminate_dead_code()
    assert len(x.users) == 3
    assert [user.name.partition("_")[0] for user in x.users] == ["relu", "add", "neg"]
    check(tm, torch.relu(X) + X + X - X)


def test_reassigned_arguments_change_the_users() -> None:
    tm, graph = traced(lambda x, y: ((x + y) + (x + y)) + y, X, Y)
    x, y, z, _, double, last, _ = graph.nodes
    double.args = (z, z)
    last.args = (last.args[0], x)
    graph.eliminate_dead_code()
    assert list(x.users) == [z.expr, last.expr]
    z.args = (y, y)
    assert list(x.users) == [last.expr]
    check(tm, 4 * Y + X, X, Y)


def test_an_input_replaces_an_input() -> None:
    tm, graph = traced(lambda x, y: torch.relu(x), X, torch.cat([Y, Y]))
    x, y, relu, _ = graph.nodes
    relu.replace_input_with(x, y)
    check(tm, torch.relu(torch.cat([Y, Y])), X, torch.cat([Y, Y]))
    relu.update_arg(0, x)
    check(tm, torch.relu(X), X, torch.cat([Y, Y]))


def test_arguments_by_keyword() -> None:
    tm, graph = traced(lambda x, y: torch.relu(input=x), X, Y)
    _, y, relu, _ = graph.nodes
    assert list(relu.kwargs) == ["input"]
    relu.update_kwarg("input", y)
    check(tm, torch.relu(Y), X, Y)


def test_arguments_are_inserted() -> None:
    tm, graph = traced(lambda x, y: torch.cat([x, y]), X, Y)
    x, y, cat, output = graph.nodes
    cat.insert_arg(1, 1)
    check(tm, torch.cat([X, Y], 1), X, Y)
    with pytest.raises(GraphError):
        cat.insert_arg(0, x)
    output.args = ((cat, x),)
    output.replace_input_with(x, y)
    check(tm, (torch.cat([X, Y], 1), Y), X, Y)
    output.update_arg(0, cat)
    check(tm, torch.cat([X, Y], 1), X, Y)


# ---- order


def test_insertion_before_a_node() -> None:
    tm, graph = traced(lambda x: torch.relu(x))
    x, relu, _ = graph.nodes
    with graph.inserting_before(relu):
        neg = graph.call_function(the_function=torch.neg, args=(x,))
        _, *rest = relu.args
        relu.args = (neg, *rest)
    check(tm, torch.relu(-X))


def test_values_are_inserted_in_order() -> None:
    tm, graph = traced(lambda x: torch.relu(x))
    x, relu, _ = graph.nodes
    with graph.inserting_before(relu):
        y = graph.call_function(torch.neg, (x,))
        z = graph.call_function(torch.tanh, (y,))
    graph.output((relu, z))
    assert [node.name.partition("_")[0] for node in graph.nodes][:4] == ["x", "neg", "tanh", "relu"]
    check(tm, (torch.relu(X), torch.tanh(-X)))


def test_a_late_call_is_moved_forward() -> None:
    tm, graph = traced(lambda x: torch.relu(x))
    x, relu, _ = graph.nodes
    neg = graph.call_function(the_function=torch.neg, args=(x,))
    relu.prepend(neg)
    relu.args = (neg,)
    check(tm, torch.relu(-X))


def test_a_node_is_next_to_itself() -> None:
    tm, graph = traced(lambda x: torch.relu(x))
    x, relu, _ = graph.nodes
    relu.prepend(relu)
    x.append(relu)
    assert len(graph.nodes) == 3
    check(tm, torch.relu(X))


def test_wrong_orders_are_refused() -> None:
    _, graph = traced(Affine().eval())
    nodes = list(graph.nodes)
    before = str(graph)
    with pytest.raises(GraphError) as error:
        nodes[3].append(nodes[2])
    assert error.value.code == "TM3011"
    assert str(graph) == before
    graph.lint()


def test_used_nodes_stay() -> None:
    tm, graph = traced(lambda x: torch.relu(x + 3.0))
    for node in list(graph.nodes)[1:3]:
        with pytest.raises(GraphError, match="use"):
            graph.erase_node(node)
    check(tm, torch.relu(X + 3))


# ---- copies


def test_copies_with_new_calls() -> None:
    tm, graph = traced(lambda x: torch.relu(x + 3.0))
    result = graph.create_node(op="call_method", target="neg", args=graph.output_node().args, kwargs={})
    graph.output(result)
    clone = copy.deepcopy(tm)
    check(clone, -torch.relu(X + 3))
    check(tm, -torch.relu(X + 3))


def test_copies_have_modules_and_parameters() -> None:
    net = torch.nn.Sequential(Affine(), torch.nn.Linear(5, 2)).eval()
    tm, _ = traced(net)
    clone = copy.deepcopy(tm)
    with torch.no_grad():
        clone.get_submodule("1").weight *= 2
        check(tm, net(X))
        net[1].weight *= 2
        check(clone, net(X))


def test_long_graphs_are_copied() -> None:
    tm, graph = traced(lambda x: torch.relu(x))
    node = list(graph.nodes)[1]
    for _ in range(sys.getrecursionlimit() + 20):
        node = graph.call_function(torch.relu, (node,))
    graph.output(node)
    other = copy.deepcopy(tm).graph
    assert other is not None
    twin = dict(zip([node.expr for node in graph.nodes if node.op != "output"], other, strict=False))
    assert len(other.nodes) == len(graph.nodes)
    for mine, theirs in zip(graph.nodes, other.nodes, strict=True):
        assert len(mine.users) == len(theirs.users)
    assert twin


def test_notes_of_a_model_are_copied() -> None:
    tm, _ = traced(lambda x: torch.relu(x))
    tm.meta["hello"] = "world"
    tm.meta["self"] = tm
    clone = copy.deepcopy(tm)
    assert clone.meta["hello"] == "world"
    assert clone.meta["self"] is clone


def test_inputs_of_calls() -> None:
    _, graph = traced(Affine().eval())
    x, linear, offset, total, sin, output = graph.nodes
    assert [node.all_input_nodes for node in (x, linear, offset, total, sin, output)] == [
        *[[], [x], [], [linear, offset], [total], [sin]]
    ]


class Block(torch.nn.Module):
    """Two calls of one activation around a convolution, and a sum."""

    def __init__(self, activation: torch.nn.Module) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(4, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)
        self.activation = activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(self.norm(self.conv(self.activation(x))) + x)


class Neg(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return -x


def test_all_calls_of_a_function_are_replaced() -> None:
    x = torch.linspace(-1, 1, 4 * 64).reshape(1, 4, 8, 8)
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[Block(torch.nn.ReLU()) for _ in range(4)]).eval()
    tm = tmconvert.trace(model, x).flatten()
    graph = tm.graph
    assert graph is not None
    erased = []
    for node in graph.nodes:
        if node.op == "call_function" and node.target in (torch.relu, torch.nn.functional.relu):
            with graph.inserting_before(node):
                new = graph.call_function(the_function=torch.neg, args=node.args[:1])
            node.replace_all_uses_with(replace_with=new)
            erased.append(node)
    for node in erased:
        graph.erase_node(node)
    assert len(erased) == 8
    for block in model:
        block.activation = Neg()
    check(tm, model(x), x, rtol=1e-4)


def test_results_in_structures() -> None:
    tm, graph = traced(lambda x: torch.relu(x))
    x, relu, _ = graph.nodes
    graph.output({"a": relu, "b": [x, relu]})
    assert [array.shape for array in flat(tm(X.numpy()))] == [(3, 4)] * 3
