"""Replacement, renaming, removal, and other functions for calls that are there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import tmconvert
from tmconvert.errors import GraphError
from tmconvert.ir import CallFunction, CallMethod, TensorNode, TracedModule

DATA = Path(__file__).parents[1] / "data"


def loaded(name: str) -> tuple[TracedModule, np.ndarray]:
    module = tmconvert.load(DATA / f"{name}.tm")
    with np.load(DATA / f"{name}.npz") as arrays:
        return module, arrays["in0"]


def called(module: TracedModule, label: str) -> CallFunction:
    assert module.graph is not None
    return next(expr for expr in module.graph if isinstance(expr, CallFunction) and expr.label == label)


def test_a_removed_call_is_skipped() -> None:
    module, x = loaded("resnet18")
    graph = module.graph
    assert graph is not None
    relu = called(module, "nn.relu")
    graph.replace_node({relu.outputs[0]: relu.inputs[0]})
    assert graph.compile()
    assert relu.graph is None
    assert not graph.compile()
    before, _ = loaded("resnet18")
    assert np.abs(module(x) - before(x)).max() > 1e-6


@pytest.mark.parametrize("inserted_first", [True, False])
def test_the_new_call_keeps_the_node_that_it_replaces(inserted_first: bool) -> None:
    module, x = loaded("resnet18")
    graph = module.graph
    assert graph is not None
    old = called(module, "nn.relu").output
    expected = list(old.users)
    new = TensorNode(graph.free_name("twice"), old.shape, old.dtype)
    taken = old if inserted_first else graph.inputs[1]
    call = CallMethod("__mul__", (taken, 2.0), result=new)
    graph.insert(call)  # at the end, after all users
    if inserted_first:
        graph.replace_node({old: new})
    else:
        graph.relink(call, (old, 2.0), {})
        graph.replace_node({old: new})
    assert call.inputs == (old,)
    assert list(new.users) == expected
    order = list(graph)
    assert order.index(call) < min(order.index(user) for user in expected)
    module(x)


def test_the_last_pair_is_replaced_first() -> None:
    module, _ = loaded("op_elemwise_arith")
    graph = module.graph
    assert graph is not None
    calls = [expr for expr in graph if isinstance(expr, CallMethod) and len(expr.outputs) == 1]
    inner = next(expr for expr in calls if any(user in calls for user in expr.outputs[0].users))
    outer = next(user for user in inner.outputs[0].users if user in calls)
    graph.replace_node({inner.outputs[0]: inner.inputs[0], outer.outputs[0]: inner.outputs[0]})
    assert not graph.is_used(inner.outputs[0])


def test_a_misfit_changes_nothing() -> None:
    module, x = loaded("resnet18")
    graph = module.graph
    assert graph is not None
    text, edits = str(graph), graph.edits
    relu = called(module, "nn.relu")
    with pytest.raises(GraphError) as caught:
        graph.replace_node({relu.output: graph.inputs[1]})  # three channels for a block that takes eight
    assert caught.value.code == "TM3015"
    assert (str(graph), graph.edits) == (text, edits)
    module(x)


def test_nodes_of_other_graphs_are_refused() -> None:
    module, _ = loaded("resnet18")
    other, _ = loaded("resnet18")
    assert module.graph is not None and other.graph is not None
    with pytest.raises(GraphError) as caught:
        module.graph.replace_node({module.graph.outputs[0]: other.graph.inputs[1]})
    assert caught.value.code == "TM3002"
    with pytest.raises(GraphError) as caught:
        module.graph.replace_node({module.graph.outputs[0]: module.graph.inputs[0]})
    assert caught.value.code == "TM3014"


def test_types_that_follow_are_inferred_again() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.max_pool2d(x, 2).relu()
        return y.reshape(y.shape[0], -1).exp()

    module = tmconvert.trace(forward, torch.ones(2, 3, 8, 8))
    graph = module.graph
    assert graph is not None
    pool, relu, reshape, exp = graph
    graph.set_arguments(reshape, (relu.output, (2, 3, -1)), {})
    assert exp.output.shape == (2, 3, 16)
    graph.replace_node({pool.output: graph.inputs[1]})
    assert (relu.output.shape, exp.output.shape) == ((2, 3, 8, 8), (2, 3, 64))


def test_a_node_is_renamed_in_the_table() -> None:
    module, _ = loaded("resnet18")
    graph = module.graph
    assert graph is not None
    node = graph.outputs[0]
    with pytest.raises(GraphError) as caught:
        node.name = graph.inputs[1].name
    assert caught.value.code == "TM3003"
    node.name = "scores"
    assert graph.node_called("scores") is node
    assert graph.node_called("fc_out") is None


def test_another_function_is_called() -> None:
    module, _ = loaded("resnet18")
    graph = module.graph
    assert graph is not None
    relu, edits = called(module, "nn.relu"), graph.edits
    relu.function = "megengine.functional.elemwise.exp"
    assert relu.label == "elemwise.exp"
    assert graph.edits > edits
    assert "elemwise.exp(" in str(graph)


def test_a_function_that_cannot_take_the_arguments_is_refused() -> None:
    module, _ = loaded("resnet18")
    assert module.graph is not None
    relu, edits = called(module, "nn.relu"), module.graph.edits
    with pytest.raises(GraphError) as caught:
        relu.function = "megengine.functional.tensor.concat"
    assert caught.value.code == "TM3015"
    assert (relu.label, module.graph.edits) == ("nn.relu", edits)


def test_arguments_are_checked() -> None:
    module, _ = loaded("resnet18")
    graph = module.graph
    assert graph is not None
    relu = called(module, "nn.relu")
    with pytest.raises(GraphError) as caught:
        graph.set_arguments(relu, (graph.outputs[0],), {})
    assert caught.value.code == "TM3011"
    with pytest.raises(GraphError) as caught:
        graph.set_arguments(relu, (relu.inputs[0], relu.inputs[0]), {})
    assert caught.value.code == "TM3015"
    pooled = next(iter(relu.output.users))
    convolved = next(expr for expr in graph if expr.outputs[0].name == "conv1_out").outputs[0]
    graph.set_arguments(relu, (convolved,), {})
    assert relu.inputs == (convolved,)
    assert relu.output.users == (pooled,)


def test_what_is_used_is_not_erased() -> None:
    module, _ = loaded("resnet18")
    graph = module.graph
    assert graph is not None
    relu = called(module, "nn.relu")
    with pytest.raises(GraphError) as caught:
        graph.erase_node(relu.output)
    assert caught.value.code == "TM3002"
    graph.replace_node({relu.output: relu.inputs[0]})
    graph.erase_node(relu.output)
    assert relu.graph is None


def test_calls_without_results_stay() -> None:
    module, _ = loaded("resnet18")
    graph = module.graph
    assert graph is not None
    graph.insert(CallFunction("user.log", (graph.inputs[1],)))
    graph.compile()
    assert any(isinstance(expr, CallFunction) and expr.function == "user.log" for expr in graph)
    graph.eliminate_dead_code()
    assert any(isinstance(expr, CallFunction) and expr.function == "user.log" for expr in graph)
