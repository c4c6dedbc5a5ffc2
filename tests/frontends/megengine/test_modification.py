"""The edits that MegEngine's own tests of TracedModule make, on models that MegEngine recorded.

``modification_models.py`` made the models, and computed in MegEngine what they give after each edit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tmconvert
from tmconvert.errors import GraphError, WriteError
from tmconvert.ir import CallFunction, CallMethod, Expr, Input, InternalGraph, ModuleNode, Node, TracedModule
from tmconvert.ir.tree import leaves

DATA = Path(__file__).parents[2] / "data/modification"
NEG = "megengine.functional.elemwise.neg"
CONV, RELU = "megengine.module.conv.Conv2d", "megengine.functional.nn.relu"


def opened(name: str) -> tuple[TracedModule, dict[str, np.ndarray]]:
    """A model, and MegEngine's arrays."""
    with np.load(DATA / f"{name}.npz") as arrays:
        return tmconvert.load(DATA / f"{name}.tm"), dict(arrays)


def graph_of(model: TracedModule) -> InternalGraph:
    assert model.graph is not None
    return model.graph


def graphs_of(model: TracedModule) -> list[InternalGraph]:
    return [graph for _, module in model.modules() for graph in module.graphs.values()]


def check_computes(model: TracedModule, x: np.ndarray, expected: np.ndarray, folder: Path) -> None:
    """The model computes this now, after saving it, and after saving it for MegEngine."""
    np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-6)
    for format in ("tm", "megengine"):
        model.save(folder / "saved.tm", format=format)
        again = tmconvert.load(folder / "saved.tm")
        np.testing.assert_allclose(again(x), expected, rtol=1e-5, atol=1e-6)
    assert tmconvert.to_onnx(model, folder / "model.onnx").verified


def negate(graph: InternalGraph, out: Node) -> None:
    with graph.insert_exprs() as g:
        negative = g.call(NEG, out)
    graph.replace_node({out: negative})
    graph.compile()


def relu_of(model: TracedModule) -> Expr:
    return graph_of(model).get_function_by_type(RELU).as_unique()


def test_search() -> None:
    model, _ = opened("block")
    graph = graph_of(model)
    relu = graph.get_function_by_type("nn.relu").as_unique()
    assert isinstance(relu, CallFunction) and relu.function == RELU
    convolution = graph.get_module_by_type(CONV).as_unique()
    assert isinstance(convolution, ModuleNode) and convolution.class_name == CONV
    add = graph.get_method_by_type("__add__").as_unique()
    assert isinstance(add, CallMethod) and add.method == "__add__"
    assert graph.get_node_by_name("Block_conv").as_unique() is convolution


def test_producers_and_users() -> None:
    model, _ = opened("nested")
    for graph in graphs_of(model):
        exprs = set(graph)
        for expr in graph:
            for node in (*expr.inputs, *expr.outputs):
                assert isinstance(node.expr, Input) or node.expr in exprs
                for user in node.users:
                    assert user in exprs and node in user.inputs


def test_insert(tmp_path: Path) -> None:
    model, arrays = opened("block")
    negate(graph_of(model), relu_of(model).outputs[0])
    check_computes(model, arrays["x"], arrays["inserted"], tmp_path)


def test_insert_module() -> None:
    """The module is one of PyTorch, since there is no MegEngine here to trace one."""

    class Negated(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return -x

    model, arrays = opened("block")
    graph, out = graph_of(model), relu_of(model).outputs[0]
    model.add_module("negated", tmconvert.trace(Negated(), torch.zeros(1, 3, 4, 4)))
    with graph.insert_exprs() as g:
        negative = g.call_module("negated", out)
    graph.replace_node({out: negative})
    graph.compile()
    np.testing.assert_allclose(model(arrays["x"]), arrays["inserted_module"], rtol=1e-5, atol=1e-6)
    inner = model.get("negated").graph
    assert inner is not None and len(inner) == 1


def test_a_module_of_pytorch_cannot_be_saved_for_megengine(tmp_path: Path) -> None:
    model, _ = opened("block")
    graph, out = graph_of(model), relu_of(model).outputs[0]
    model.add_module("negated", tmconvert.trace(nn.Tanh(), torch.zeros(1, 3, 4, 4)))
    with graph.insert_exprs() as g:
        made = g.call_module("negated", out)
    graph.replace_node({out: made})
    with pytest.raises(WriteError, match=r"TM5005.*negated"):
        model.save(tmp_path / "saved.tm", format="megengine")


def test_add_input_and_output() -> None:
    model, arrays = opened("nested")
    graph, x, y = graph_of(model), arrays["x"], arrays["y"]
    added = graph.add_input_node(shape=(1, 3, 4, 4), name="data")
    graph.add_output_node(added)
    assert added.name == "data" and graph.inputs[-1] is added
    assert len(graph.inputs) == 3 and len(graph.outputs) == 2
    first, second = model(x, x + 1)
    np.testing.assert_allclose(first, arrays["with_another_input"], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(second, x + 1)
    graph.reset_outputs(({"orig_out": graph.outputs[0]}, graph.outputs[1]))
    out = model(x, x)
    assert isinstance(out, tuple) and isinstance(out[0], dict)
    np.testing.assert_allclose(out[0]["orig_out"], y, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(out[1], x)


def test_delete(tmp_path: Path) -> None:
    model, arrays = opened("block")
    graph, relu = graph_of(model), relu_of(model)
    graph.replace_node({relu.outputs[0]: relu.inputs[0]})
    graph.compile()
    check_computes(model, arrays["x"], arrays["deleted"], tmp_path)
    graph.replace_node({graph.outputs[0]: graph.inputs[1]})
    graph.compile()
    assert len(graph) == 0
    np.testing.assert_array_equal(model(arrays["x"]), arrays["x"])


def test_flatten() -> None:
    model, arrays = opened("nested")
    for _ in range(2):
        model = model.flatten()
        calls = [expr for expr in graph_of(model) if isinstance(expr, (CallFunction, CallMethod))]
        assert len(calls) == 8  # MegEngine has 12 expressions, with one GetAttr for each module
        np.testing.assert_allclose(model(arrays["x"]), arrays["y"], rtol=1e-5, atol=1e-6)


def test_flatten_has_the_users_of_each_node() -> None:
    model, arrays = opened("pairs")
    flat = model.flatten()
    graph = graph_of(flat)
    for node in [*graph.inputs, *(node for expr in graph for node in expr.outputs)]:
        assert set(node.users) == {expr for expr in graph if node in expr.inputs}
    np.testing.assert_allclose(leaves(flat(arrays["x"]))[1], arrays["y"], rtol=1e-6)


def check_ids(model: TracedModule) -> None:
    exprs = graph_of(model).exprs().as_list()
    ids = [node.id for expr in exprs for node in expr.outputs]
    assert len(set(ids)) == len(ids)
    numbers = [expr.id for expr in exprs]
    assert len(set(numbers)) == len(numbers)


def check_names(flat: TracedModule) -> None:
    names = [node.name for node in graph_of(flat).nodes]
    assert len(set(names)) == len(names)


def test_ids_and_names(tmp_path: Path) -> None:
    model, arrays = opened("nested")
    check_ids(model)
    check_names(model.flatten())
    model.save(tmp_path / "saved.tm", format="megengine")
    model = tmconvert.load(tmp_path / "saved.tm")
    for relu in graph_of(model).get_function_by_type(RELU).as_list():
        assert relu.graph is not None
        negate(relu.graph, relu.outputs[0])
    check_ids(model)
    check_computes(model, arrays["x"], arrays["negated_below"], tmp_path)
    check_names(model.flatten())


def test_set_node_name() -> None:
    model, _ = opened("nested")
    output = graph_of(model).outputs[0]
    with pytest.raises(GraphError, match="second_out"):
        output.name = "second_out"
    output.name = "output"
    assert str(graph_of(model).outputs[0]) == "output"


def test_set_graph_name() -> None:
    model, _ = opened("nested")
    graph = graph_of(model)
    output = graph.outputs[0]
    graph.name = "Top"
    assert graph.get_node_by_name(f"Top_{output.name}").as_unique() is output


def test_functions_of_torch_are_written_as_those_of_megengine(tmp_path: Path) -> None:
    model, arrays = opened("block")
    graph, out = graph_of(model), relu_of(model).outputs[0]
    with graph.insert_exprs() as g:
        made = torch.softmax(torch.tanh(out * 2.0), dim=1) - g.call("aten::mean", out, dim=[1], keepdim=True)
    graph.replace_node({out: made})
    graph.compile()
    check_computes(model, arrays["x"], model(arrays["x"]), tmp_path)
    model.save(tmp_path / "saved.tm", format="megengine")
    text = str(tmconvert.load(tmp_path / "saved.tm").graph)
    assert "elemwise.tanh" in text and "nn.softmax" in text and "math.mean" in text
    with graph.insert_exprs():
        unknown = torch.cumsum(made, 1)
    graph.replace_node({made: unknown})
    with pytest.raises(WriteError, match=r"(?s)TM5005.*cumsum"):
        model.save(tmp_path / "saved.tm", format="megengine")


@pytest.mark.parametrize("name", ["block", "nested"])
def test_a_traced_module_is_traced_again(name: str, tmp_path: Path) -> None:
    class Doubled(nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.inner(x - 1) * 2
            return result

    inner, arrays = opened(name)
    model = tmconvert.trace(Doubled(inner), torch.from_numpy(arrays["x"]))
    np.testing.assert_allclose(model(arrays["x"]), arrays["traced_again"], rtol=1e-5, atol=1e-5)
    check_ids(model)
    check_names(model.flatten())
    assert tmconvert.to_onnx(model, tmp_path / "model.onnx").verified
