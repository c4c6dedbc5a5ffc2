"""Edited models of quantization-aware training keep their scales, and are converted to integers."""

from __future__ import annotations

from pathlib import Path

import pytest

import tmconvert
from tests.ir.editing.models import loaded
from tmconvert.ir import InternalGraph, TensorNode


def node(graph: InternalGraph, name: str) -> TensorNode:
    found = graph.node_called(name)
    assert isinstance(found, TensorNode)
    return found


def without_a_layer(graph: InternalGraph) -> None:
    graph.replace_node({node(graph, "c4_out"): node(graph, "c3_out")})
    graph.compile()


def with_a_clamp(graph: InternalGraph) -> None:
    old = node(graph, "c4_out")
    with graph.insert_exprs() as g:
        new = g.call("aten::relu", old)
    graph.replace_node({old: new})


def with_a_layer_again(graph: InternalGraph) -> None:
    old = node(graph, "far_out")
    with graph.insert_exprs() as g:
        new = g.call_module("far", old, node(graph, "c1_out"))
    graph.replace_node({old: new})


@pytest.mark.parametrize("edit", [without_a_layer, with_a_clamp, with_a_layer_again])
@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_an_edited_model_is_converted_to_integers(edit: object, target: str, tmp_path: Path) -> None:
    assert callable(edit)
    module, graph, x = loaded("qat_small_ema")
    edit(graph)
    graph.lint()
    convert = getattr(tmconvert, f"to_{target}")
    report = convert(module, tmp_path / f"m.{target}", quantized=True, example_inputs=[x])
    assert report.verification is not None
