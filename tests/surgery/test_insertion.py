"""``with graph.insert_exprs()``: calls, operators, functions of torch, modules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tmconvert
from tests.surgery.models import called, graph_of, loaded, traced_block
from tmconvert.errors import GraphError, TmconvertError, UnsupportedError, UsageError
from tmconvert.ir import TensorNode


def test_calls_go_after_what_they_take() -> None:
    module, graph, x = loaded("resnet18")
    before = module(x)
    relu = called(graph, "nn.relu")
    old, following = relu.outputs[0], relu.next
    with graph.insert_exprs() as g:
        y = g.call("aten::neg", old)
    graph.replace_node({old: y})
    assert relu.next is y.expr and y.expr.next is following
    assert (y.name, y.shape, y.dtype) == ("neg_out", old.shape, old.dtype)
    with graph.insert_exprs() as g:
        z = -y
    graph.replace_node({y: z})
    np.testing.assert_allclose(module(x), before, rtol=1e-5)


def test_numbers_are_free_in_the_whole_model() -> None:
    module, graph, _ = loaded("resnet18")
    highest = max(expr.id for _, each in module.modules() for g in each.graphs.values() for expr in g)
    inner = graph_of(module.get("layer1"))
    with graph.insert_exprs() as g:
        first = g.call("aten::relu", graph.inputs[1])
    with inner.insert_exprs() as g:
        second = g.call("aten::relu", inner.inputs[1])
    assert (first.expr.id, second.expr.id) == (highest + 1, highest + 2)


def test_nodes_have_the_operators_of_python() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x.relu()

    module = tmconvert.trace(forward, torch.rand(2, 3))
    graph = graph_of(module)
    x = graph.inputs[1]
    weights = np.array([1.0, 2.0, 3.0], np.float32)
    with graph.insert_exprs():
        y = weights * (2 - x / 8 + abs(-x)) ** 2 @ weights
        z = (x[:, 1:] > 0.5) & ~(x[:, :2] >= 1)
    graph.reset_outputs([y, z])
    array = np.random.default_rng(0).random((2, 3), np.float32)
    expected = (weights * (2 - array / 8 + abs(-array)) ** 2) @ weights
    results = module(array)
    np.testing.assert_allclose(results[0], expected, rtol=1e-5)
    np.testing.assert_array_equal(results[1], (array[:, 1:] > 0.5) & ~(array[:, :2] >= 1))
    assert (z.shape, z.dtype) == ((2, 2), np.dtype(bool))


@pytest.mark.parametrize("name", ["resnet18", "sr_espcn"])
def test_functions_of_torch_record_themselves(name: str, tmp_path: Path) -> None:
    module, graph, x = loaded(name)
    (old,) = graph.outputs
    torch.manual_seed(0)
    with graph.insert_exprs() as g:
        y = torch.relu(old).sigmoid()
        y = F.softmax(y, dim=1) * torch.rand(1)
        y = y.reshape(y.shape).to(torch.float32)
        y = g.call(torch.add, y, g.constant(1.0))
    graph.replace_node({old: y})
    assert y.shape == old.shape
    report = tmconvert.to_onnx(module, tmp_path / "m.onnx")
    assert report.verification is not None
    module.save(tmp_path / "m.tm")
    np.testing.assert_allclose(tmconvert.load(tmp_path / "m.tm")(x), module(x), atol=1e-5)


def test_a_layer_of_torch_is_inserted_with_its_weights() -> None:
    module, graph, x = loaded("resnet18")
    old = called(graph, "nn.relu").outputs[0]
    torch.manual_seed(0)
    with graph.insert_exprs():
        y = torch.nn.Conv2d(8, 8, 1)(old)
    graph.replace_node({old: y})
    assert y.shape == old.shape
    module(x)


def test_an_exception_undoes_all() -> None:
    module, graph, x = loaded("resnet18")
    text, edits, before = str(graph), graph.edits, module(x)
    old = called(graph, "nn.relu").outputs[0]
    with pytest.raises(GraphError) as caught, graph.insert_exprs() as g:
        y = g.call("aten::relu", old)
        F.conv2d(y, torch.ones(3, 3, 1, 1))
    assert caught.value.code == "TM3015"
    assert (str(graph), graph.edits) == (text, edits)
    np.testing.assert_array_equal(module(x), before)


def test_what_cannot_be_inserted_is_refused() -> None:
    _, graph, _ = loaded("resnet18")
    _, other, _ = loaded("resnet18")
    x = graph.inputs[1]
    with pytest.raises(UnsupportedError) as unsupported, graph.insert_exprs() as g:
        g.call("user.function", x)
    assert unsupported.value.code == "TM2001"
    with pytest.raises(GraphError) as foreign, graph.insert_exprs() as g:
        g.call("aten::relu", other.inputs[1])
    assert foreign.value.code == "TM3002"
    for action in (lambda: x * 2, lambda: torch.relu(x), lambda: x[0]):
        with pytest.raises(UsageError) as outside:
            action()
        assert outside.value.code == "TM6060"
    with pytest.raises(AttributeError):
        x.relu()
    with pytest.raises(TypeError):
        list(x)


def test_nodes_are_compared_by_identity() -> None:
    _, graph, _ = loaded("resnet18")
    x = graph.inputs[1]
    with graph.insert_exprs() as g:
        y = g.call("aten::relu", x)
        assert x != y and x == x and len({x, y, x}) == 2
        assert isinstance(x.eq(y), TensorNode)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
def test_a_module_of_torch_within_a_model_of_megengine(target: str, tmp_path: Path) -> None:
    module, graph, x = loaded("resnet18")
    old = called(graph, "nn.relu").outputs[0]
    assert isinstance(old, TensorNode) and old.shape is not None
    block = traced_block(8, old.shape[2])
    with graph.insert_exprs() as g:
        y = block(g.call("aten::relu", old))
    graph.replace_node({old: y})
    assert module.get("Block") is block and y.shape == old.shape
    expected = module(x)
    np.testing.assert_allclose(module.flatten()(x), expected, atol=1e-5)
    for each in (module, module.flatten()):
        each.save(tmp_path / "m.tm")
        np.testing.assert_allclose(tmconvert.load(tmp_path / "m.tm")(x), expected, atol=1e-5)
    convert = getattr(tmconvert, f"to_{target}")
    assert convert(module, tmp_path / f"m.{'prototxt' if target == 'caffe' else target}").verification


def test_a_model_of_megengine_within_a_module_of_torch(tmp_path: Path) -> None:
    inner, inner_graph, x = loaded("resnet18")
    block = traced_block(3, x.shape[2])
    graph = graph_of(block)
    block.add_module("net", inner)
    (old,) = graph.outputs
    with graph.insert_exprs() as g:
        y = g.call_module("net", old)
    graph.reset_outputs(y)
    assert y.name == "net_out" and y.shape == inner_graph.outputs[0].shape
    expected = block(x)
    block.save(tmp_path / "m.tm")
    np.testing.assert_allclose(tmconvert.load(tmp_path / "m.tm")(x), expected, atol=1e-5)
    assert tmconvert.to_onnx(block, tmp_path / "m.onnx").verification


def test_a_module_is_not_called_with_other_arguments() -> None:
    module, graph, _ = loaded("resnet18")
    with pytest.raises(TmconvertError) as caught, graph.insert_exprs() as g:
        g.call_module("layer1", graph.inputs[1], graph.inputs[1])
    assert caught.value.code == "TM3014"
    with pytest.raises(GraphError) as missing, graph.insert_exprs() as g:
        g.call_module("layer9", graph.inputs[1])
    assert missing.value.code == "TM3008"
    assert module.get("layer1")


def test_parameters_are_added_and_read() -> None:
    module, graph, x = loaded("resnet18")
    (old,) = graph.outputs
    before = module(x)
    with graph.insert_exprs() as g:
        y = old * g.parameter(np.full(10, 2, np.float32), "gain") + g.get_attr("fc.bias")
    graph.replace_node({old: y})
    np.testing.assert_allclose(module(x), before * 2 + module.fc.bias, rtol=1e-5)
