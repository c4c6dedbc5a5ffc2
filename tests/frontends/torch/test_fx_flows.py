"""What PyTorch's own tests of torch.fx do to a captured graph, done under the same names to a traced one.

PyTorch computes what the edited model must compute. docs/from-torch-fx.md is the table of names.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tmconvert  # noqa: E402
from tests.frontends.torch.fx_cases import X, check, traced  # noqa: E402
from tmconvert.errors import TmconvertError  # noqa: E402
from tmconvert.ir.interpreter import Interpreter  # noqa: E402


def test_replace_a_function() -> None:
    tm, graph = traced(lambda x: torch.neg(torch.relu(x)))
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target == torch.relu:
            with graph.inserting_after(node):
                new = graph.call_function(torch.sigmoid, args=(node.args[0],))
            node.replace_all_uses_with(new)
            graph.erase_node(node)
    check(tm, -torch.sigmoid(X))


def test_the_target_is_set() -> None:
    tm, graph = traced(lambda x: torch.neg(torch.relu(x)))
    (relu,) = graph.find_nodes(op="call_function", target=torch.relu)
    relu.target = torch.tanh
    check(tm, -torch.tanh(X))


def test_arguments_are_set() -> None:
    tm, graph = traced(lambda x, y: torch.sub(x, y), X, X + 1)
    x, y, difference, _ = graph.nodes
    difference.args = (y, x)
    check(tm, (X + 1) - X, X, X + 1)
    difference.update_arg(0, x)
    check(tm, X - X, X, X + 1)
    difference.kwargs = {"alpha": 2}
    check(tm, X - 2 * X, X, X + 1)
    difference.update_kwarg("alpha", 3)
    check(tm, X - 3 * X, X, X + 1)
    difference.args = (y, x)
    difference.replace_input_with(x, y)
    assert difference.args == (y, y)


def test_insertion_before_and_after() -> None:
    tm, graph = traced(lambda x: torch.relu(x) + 1)
    x, relu, total, output = graph.nodes
    with graph.inserting_before(total):
        neg = graph.call_function(torch.neg, (relu,))
    total.replace_input_with(relu, neg)
    check(tm, 1 - torch.relu(X))
    with graph.inserting_after(x):
        abs_ = graph.call_method("abs", (x,))
    relu.args = (abs_,)
    check(tm, 1 - X.abs())
    assert list(graph.nodes) == [x, abs_, relu, neg, total, output]


def test_uses_are_replaced_where_the_caller_wants() -> None:
    tm, graph = traced(lambda x: (torch.relu(x) + 1, torch.relu(x) * 2))
    first, second = graph.find_nodes(op="call_function", target=torch.relu)
    with graph.inserting_after(second):
        new = graph.call_function(torch.abs, (next(iter(graph.nodes)),))
    second.replace_all_uses_with(new, delete_user_cb=lambda user: user.target != "mul")
    check(tm, (torch.relu(X) + 1, torch.relu(X) * 2))
    second.replace_all_uses_with(new)
    check(tm, (torch.relu(X) + 1, X.abs() * 2))
    first.replace_all_uses_with(new)
    check(tm, (X.abs() + 1, X.abs() * 2))


def test_a_used_node_is_not_erased() -> None:
    _, graph = traced(lambda x: torch.neg(torch.relu(x)))
    (relu,) = graph.find_nodes(op="call_function", target=torch.relu)
    with pytest.raises(TmconvertError):
        graph.erase_node(relu)


def test_dead_code() -> None:
    tm, graph = traced(lambda x: torch.relu(x))
    with graph.inserting_after(next(iter(graph.nodes))):
        graph.call_function(torch.sin, (next(iter(graph.nodes)),))
    assert len(graph.nodes) == 4
    assert graph.eliminate_dead_code()
    assert len(graph.nodes) == 3
    assert not graph.eliminate_dead_code()
    check(tm, torch.relu(X))


def test_nodes_are_moved() -> None:
    tm, graph = traced(lambda x: torch.relu(x) + torch.sin(x))
    x, relu, sin, total, output = graph.nodes
    relu.prepend(sin)
    assert list(graph.nodes) == [x, sin, relu, total, output]
    relu.append(sin)
    assert list(graph.nodes) == [x, relu, sin, total, output]
    check(tm, torch.relu(X) + torch.sin(X))


def test_inputs_outputs_and_names() -> None:
    tm, graph = traced(lambda x: torch.relu(x))
    x, relu, _ = graph.nodes
    with graph.inserting_before(relu):
        total = graph.call_function(torch.add, (x, x))
    graph.output((relu, total))
    total.name = "twice"
    check(tm, (torch.relu(X), X + X))
    assert [node.name for node in graph.outputs][1] == "twice"


def test_parameters_and_submodules() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(4, 4)
            self.second = torch.nn.Linear(4, 4)
            self.scale = torch.nn.Parameter(torch.tensor(3.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x)) * self.scale

    net = Net().eval()
    tm, graph = traced(net)
    _, first, second, scale, product, _ = graph.nodes
    assert (second.op, second.target) == ("call_module", "second")
    assert (scale.op, scale.target) == ("get_attr", "scale")
    with graph.inserting_after(second):
        again = graph.call_module("first", (second,))
        also = graph.get_attr("scale")
    product.args = (again, also)
    check(tm, net.first(net.second(net.first(X))) * 3)
    product.args = (first, also)
    graph.eliminate_dead_code()
    tm.delete_all_unused_submodules()
    assert [path for path, _ in tm.named_modules()] == ["", "first"]
    check(tm, net.first(X) * 3)


def test_nodes_are_copied_into_another_graph() -> None:
    tm, graph = traced(lambda x: torch.relu(x) + 1)
    _, other = traced(lambda x: torch.sin(x) * 2)
    _, relu, _, _ = graph.nodes
    with graph.inserting_after(relu):
        result = graph.graph_copy(other, {next(iter(other.nodes)): relu})
    graph.output(result)
    check(tm, torch.sin(torch.relu(X)) * 2)
    with graph.inserting_after(result):
        copied = graph.node_copy(relu)
    graph.output(copied)
    check(tm, torch.relu(X))


def test_deep_copies_are_independent() -> None:
    tm, graph = traced(lambda x: torch.neg(torch.relu(x)))
    clone = copy.deepcopy(tm)
    (relu,) = graph.find_nodes(op="call_function", target=torch.relu)
    relu.target = torch.sin
    check(tm, -torch.sin(X))
    check(clone, -torch.relu(X))


def test_an_interpreter_replaces_functions() -> None:
    class Swap(Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target == torch.sigmoid:
                return -args[0]
            return super().call_function(target, args, kwargs)

        def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
            return args[0] if target == "neg" else super().call_method(target, args, kwargs)

    tm, _ = traced(lambda x: torch.sigmoid(x).neg())
    np.testing.assert_allclose(Swap(tm).run(X.numpy()), -X.numpy())


def test_a_transformer_replaces_functions() -> None:
    class Swap(tmconvert.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target == torch.sigmoid:
                return super().call_function("torch.tanh", args, kwargs)
            return super().call_function(target, args, kwargs)

    tm, _ = traced(lambda x: torch.sigmoid(x).neg())
    check(Swap(tm).transform(), -torch.tanh(X))
    check(tmconvert.Transformer(tm).transform(), -torch.sigmoid(X))


def test_patterns_are_replaced() -> None:
    tm, _ = traced(lambda x: torch.relu(torch.neg(x)) + torch.relu(torch.neg(x * 2)))
    matches = tmconvert.replace_pattern(tm, lambda x: torch.relu(torch.neg(x)), lambda x: torch.sigmoid(x))
    assert len(matches) == 2
    check(tm, torch.sigmoid(X) + torch.sigmoid(X * 2))
