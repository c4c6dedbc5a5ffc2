"""The names of torch.fx for editing, and ``graph.lint``."""

from __future__ import annotations

import operator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import fx

import tmconvert
from tests.surgery.models import called, graph_of, loaded, traced_block
from tmconvert.errors import GraphError, TmconvertError, UsageError
from tmconvert.ir import CallFunction, GetAttr, InternalGraph, TensorNode, TracedModule


def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.add(x, y).relu()


def traced() -> tuple[TracedModule, InternalGraph]:
    module = tmconvert.trace(function, torch.rand(2, 3), torch.rand(2, 3))
    return module, graph_of(module)


def test_a_transformation_of_torch_fx_as_it_stands() -> None:
    """The example of torch.fx's documentation, on both kinds of graphs."""

    def transform(graph: object) -> None:
        for node in graph.nodes:  # type: ignore[attr-defined]
            if node.op == "call_function" and node.target in (torch.add, "torch.add"):
                node.target = torch.mul
                with graph.inserting_after(node):  # type: ignore[attr-defined]
                    new = graph.call_function(torch.neg, (node,))  # type: ignore[attr-defined]
                    node.replace_all_uses_with(new)
                if new.args != (node,):  # torch.fx replaced the argument of the new call, too
                    new.args = (node,)
        graph.lint()  # type: ignore[attr-defined]

    theirs = fx.symbolic_trace(function)
    transform(theirs.graph)
    theirs.recompile()
    module, graph = traced()
    transform(graph)
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    np.testing.assert_allclose(module(x.numpy(), y.numpy()), theirs(x, y).numpy())


def test_a_tensor_of_rank_0_stays_one() -> None:
    module = tmconvert.trace(torch.sum, torch.rand(2, 3))
    graph = graph_of(module)
    (result,) = graph.outputs
    with graph.inserting_after(result):
        made = graph.call_function(torch.mul, (result, torch.tensor(3.0)))
    graph.output(made)
    array = np.ones((2, 3), np.float32)
    assert made.shape == () == np.shape(module(array))
    assert float(module(array)) == 18


def test_calls_are_inserted_where_torch_fx_inserts_them(tmp_path: Path) -> None:
    module, graph = traced()
    x, y = graph.inputs[1:]
    add, relu = graph
    with graph.inserting_before(relu.outputs[0]):
        first = graph.call_function(torch.neg, (add.outputs[0],))
        second = graph.call_method("abs", (first,))
    third = graph.call_function(operator.add, (second, 1.0))
    assert list(graph) == [add, first.expr, second.expr, relu, third.expr]
    extra = graph.placeholder("z", shape=(2, 3))
    fourth = graph.create_node("call_function", "aten::mul", (third, extra), name="product")
    assert fourth.name == "product"
    graph.output((fourth, relu.outputs[0]))
    arrays = [np.random.default_rng(i).random((2, 3), np.float32) for i in range(3)]
    expected = (abs(-(arrays[0] + arrays[1])) + 1) * arrays[2]
    np.testing.assert_allclose(module(*arrays)[0], expected, rtol=1e-6)
    graph.lint()
    assert tmconvert.to_onnx(module, tmp_path / "m.onnx").verification
    with pytest.raises(GraphError) as caught, graph.inserting_before(add.outputs[0]):
        graph.call_function(torch.neg, (fourth,))
    assert caught.value.code == "TM3011"
    for wrong in (
        lambda: graph.placeholder("w"),
        lambda: graph.create_node("call", torch.neg, (x, y)),
    ):
        with pytest.raises(UsageError):
            wrong()


def test_users_are_chosen() -> None:
    _, graph = traced()
    add, relu = graph
    with graph.inserting_after(add.outputs[0]):
        neg = graph.call_function(torch.neg, (add.outputs[0],))
        exp = graph.call_function(torch.exp, (add.outputs[0],))
    changed = add.outputs[0].replace_all_uses_with(neg, delete_user_cb=lambda user: user is relu)
    assert changed == [relu]
    assert exp.args == (add.outputs[0],)
    relu.outputs[0].replace_input_with(neg, exp)
    assert relu.outputs[0].args == (exp,)
    graph.eliminate_dead_code()
    assert neg.expr.graph is None


def test_nodes_are_moved_only_where_they_are_defined() -> None:
    _, graph = traced()
    add, relu = graph
    with graph.inserting_before():
        neg = graph.call_function(torch.neg, (graph.inputs[1],))
    assert graph.first is neg.expr
    add.outputs[0].append(neg)
    assert list(graph) == [add, neg.expr, relu]
    add.outputs[0].prepend(neg)
    assert list(graph) == [neg.expr, add, relu]
    for move in (
        lambda: relu.outputs[0].append(add.outputs[0]),
        lambda: add.outputs[0].prepend(relu.outputs[0]),
    ):
        with pytest.raises(GraphError) as caught:
            move()
        assert caught.value.code == "TM3011"
    assert list(graph) == [neg.expr, add, relu]


def test_arguments_are_set_one_by_one() -> None:
    _, graph = traced()
    x, y = graph.inputs[1:]
    add, _ = graph
    add.outputs[0].update_arg(1, x)
    add.outputs[0].update_kwarg("alpha", 2)
    assert add.outputs[0].args == (x, x) and add.outputs[0].kwargs == {"alpha": 2}
    assert add not in y.users
    with pytest.raises(GraphError):
        add.outputs[0].update_kwarg("beta", 2)
    assert add.outputs[0].kwargs == {"alpha": 2}


def test_a_graph_is_copied_into_another() -> None:
    module, graph = traced()
    block = traced_block(3, 4)
    target = graph_of(block)
    x = target.outputs[0]
    values = {graph.inputs[1]: x, graph.inputs[2]: x}
    result = target.graph_copy(graph, values)
    target.output(result)
    array = np.random.default_rng(0).random((1, 3, 4, 4), np.float32)
    before = traced_block(3, 4)(array)
    np.testing.assert_allclose(block(array), module.vocabulary and np.maximum(2 * before, 0), rtol=1e-6)
    copied = target.node_copy(next(iter(target)).outputs[0] if not isinstance(target.first, GetAttr) else x)
    assert copied is not x


@pytest.mark.parametrize("target", ["run", "onnx"])
def test_no_bare_exception_of_a_broken_graph(target: str, tmp_path: Path) -> None:
    module, graph, x = loaded("resnet18")
    relu = called(graph, "nn.relu")
    graph.relink(relu, (TensorNode("lost", (1, 8, 32, 32), np.dtype(np.float32)),), {})
    with pytest.raises(TmconvertError) as caught:
        graph.lint()
    assert caught.value.code == "TM3011"
    with pytest.raises(TmconvertError) as caught:
        module(x) if target == "run" else tmconvert.to_onnx(module, tmp_path / "m.onnx")
    assert caught.value.code == "TM3011"


def test_lint_finds_what_is_wrong() -> None:
    module, graph, _ = loaded("resnet18")
    graph.lint()
    node = TensorNode("again", (1,), np.dtype(np.float32))
    graph.insert(CallFunction("aten::conv2d", (graph.inputs[1],), result=node))
    with pytest.raises(GraphError) as caught:
        graph.lint()
    assert caught.value.code in ("TM3014", "TM3015")
    graph.remove(node.expr)
    module.fc.weight = np.zeros((10, 7), np.float32)
    with pytest.raises(GraphError) as caught:
        graph.lint()
    assert caught.value.code == "TM3015"
    module.get("fc").tensors.pop("weight")
    del module.children["conv1"]
    with pytest.raises(GraphError) as caught:
        graph.lint()
    assert caught.value.code == "TM3008"


def test_lint_infers_types_again() -> None:
    module, graph, _ = loaded("resnet18")
    module.fc.weight = np.zeros((12, 64), np.float32)
    module.fc.bias = np.zeros(12, np.float32)
    graph.lint()
    assert graph.outputs[0].shape == (1, 12)


def test_a_called_function_is_set_by_itself() -> None:
    tm = tmconvert.trace(torch.nn.Sequential(torch.nn.ReLU()).eval(), torch.randn(1, 4)).flatten()
    (call,) = (expr for expr in tm.graph if expr.op == "call_function")
    call.function = torch.nn.functional.silu
    x = np.array([[-1.0, 0.0, 1.0, 2.0]], np.float32)
    np.testing.assert_allclose(tm(x), x / (1 + np.exp(-x)), rtol=1e-6)
    assert tm.graph.python_code("self") == tm.graph.python_code()
    assert tm.print_readable(print_output=False) == tm.code


WRONG = {
    "add_submodule": (lambda tm: tm.add_submodule("act", torch.nn.GELU()), "TM6061"),
    "add_module": (lambda tm: tm.add_module("act", 3), "TM6061"),
    "call_module": (lambda tm: tm.graph.call_module(torch.nn.GELU(), (tm.graph.outputs[0],)), "TM6061"),
    "call_method": (lambda tm: tm.graph.call_method(torch.relu, (tm.graph.outputs[0],)), "TM6061"),
    "function": (lambda tm: setattr(tm.graph.outputs[0].expr, "function", 3), "TM3014"),
    "python_code": (lambda tm: tm.graph.python_code("module"), "TM6004"),
}


@pytest.mark.parametrize("name", WRONG)
def test_arguments_of_another_type_are_refused_by_a_code(name: str) -> None:
    edit, code = WRONG[name]
    tm = tmconvert.trace(torch.relu, torch.randn(1, 4))
    with pytest.raises(TmconvertError) as caught:
        edit(tm)
    assert caught.value.code == code
