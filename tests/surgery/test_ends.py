"""Inputs and outputs that are added and set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.surgery.models import graph_of, loaded, traced_block
from tmconvert.errors import GraphError, TmconvertError, UsageError


def test_an_input_becomes_an_output() -> None:
    """MegEngine's own test of these functions."""
    module, graph, x = loaded("resnet18")
    before = module(x)
    data = graph.add_input_node(shape=(1, 3, 224, 224), name="data")
    graph.add_output_node(data)
    assert (data.name, graph.inputs[-1], len(graph.inputs), len(graph.outputs)) == ("data", data, 3, 2)
    first, second = module(x, x)
    np.testing.assert_array_equal(first, before)
    np.testing.assert_array_equal(second, x)
    graph.reset_outputs(({"orig_out": graph.outputs[0]}, graph.outputs[1]))
    out = module(x, x)
    assert isinstance(out, tuple) and isinstance(out[0], dict)
    np.testing.assert_array_equal(out[0]["orig_out"], before)


def test_new_ends_are_converted_and_saved(tmp_path: Path) -> None:
    module = traced_block(4, 8)
    graph = graph_of(module)
    (old,) = graph.outputs
    bias = graph.add_input_node((4, 1, 1), "float32", "bias")
    with graph.insert_exprs():
        y = old + bias
    graph.reset_outputs([y, {"plain": old}])
    rng = np.random.default_rng(0)
    inputs = [rng.random((1, 4, 8, 8), np.float32), rng.random((4, 1, 1), np.float32)]
    total, rest = module(*inputs)
    np.testing.assert_allclose(total, rest["plain"] + inputs[1], rtol=1e-6)
    assert module.example is None  # it has one input
    assert tmconvert.to_onnx(module, tmp_path / "m.onnx").verification
    assert tmconvert.to_tflite(module, tmp_path / "m.tflite").verification
    module.save(tmp_path / "m.tm")
    np.testing.assert_allclose(tmconvert.load(tmp_path / "m.tm")(*inputs)[0], total, rtol=1e-6)


def test_inputs_of_another_size() -> None:
    module, graph, x = loaded("sr_espcn")
    (old,) = graph.inputs[1:]
    (new,) = graph.reset_inputs(np.zeros((2, *x.shape[1:]), np.float32))
    assert new.name == old.name and graph.inputs[1:] == [new] and old.expr.graph is None
    assert graph.outputs[0].shape[0] == 2
    assert module(np.concatenate([x, x])).shape == graph.outputs[0].shape


def test_inputs_that_do_not_fit_change_nothing() -> None:
    module, graph, x = loaded("sr_espcn")
    text, edits = str(graph), graph.edits
    with pytest.raises(GraphError) as caught:
        graph.reset_inputs(np.zeros((1, 7, 8, 8), np.float32))
    assert caught.value.code == "TM3015"
    with pytest.raises(GraphError) as caught:
        graph.reset_inputs()
    assert caught.value.code == "TM3002"
    assert (str(graph), graph.edits) == (text, edits)
    module(x)


@pytest.mark.parametrize(
    ("shape", "dtype"), [((1, -2), "float32"), (3, "float32"), ((1,), "text"), ((1,), None)]
)
def test_types_that_no_tensor_has(shape: object, dtype: object) -> None:
    _, graph, _ = loaded("sr_espcn")
    with pytest.raises(UsageError) as caught:
        graph.add_input_node(shape, dtype)
    assert caught.value.code == "TM6063"
    assert len(graph.inputs) == 2


def test_outputs_are_tensors_of_this_graph() -> None:
    _, graph, _ = loaded("sr_espcn")
    _, other, _ = loaded("sr_espcn")
    for outputs in (other.outputs[0], (), [graph.inputs[0]]):
        with pytest.raises(TmconvertError) as caught:
            graph.reset_outputs(outputs)
        assert caught.value.code in ("TM3002", "TM3014")


def test_an_unused_input_is_erased() -> None:
    module, graph, x = loaded("sr_espcn")
    extra = graph.add_input_node((1,))
    assert extra.name == "args" and list(module.graphs) == ["((M,T,T,),{})"]
    graph.erase_node(extra)
    assert list(module.graphs) == ["((M,T,),{})"]
    module(x)
    for node in graph.inputs:
        with pytest.raises(GraphError):
            graph.erase_node(node)
