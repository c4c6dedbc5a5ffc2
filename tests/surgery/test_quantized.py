"""Edited models of quantization-aware training keep their scales, and are converted to integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import tmconvert
from tests.surgery.models import loaded
from tmconvert.errors import GraphError
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


def test_float_values_are_rounded_as_in_the_source_before_a_concatenation(tmp_path: Path) -> None:
    """Without its stub a model computes its first layers in float, whose results have scales of their own."""
    module, graph, x = loaded("qat_concat_elemwise")
    graph.replace_node({node(graph, "quant_out"): node(graph, "x")})
    graph.compile()
    report = tmconvert.to_tflite(module, tmp_path / "m.tflite", quantized=True, example_inputs=[x])
    assert report.verification is not None


def test_a_scale_stays_positive() -> None:
    """Values that a quantization looks at are looked at after an edit, too."""

    def quantized(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return torch.fake_quantize_per_tensor_affine(x, scale, torch.tensor(0, dtype=torch.int32), 0, 255)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(0.1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return quantized(x, self.scale.detach())

    module = tmconvert.trace(Net(), torch.rand(2, 3))
    graph = module.graph
    assert graph is not None
    scale = next(each for each in graph.nodes if each.op == "get_attr" and each.target == "scale")
    with graph.insert_exprs() as g:
        negative = g.call("aten::neg", scale)
    before = str(graph)
    with pytest.raises(GraphError) as error:
        graph.replace_node({scale: negative})
    assert error.value.code == "TM3015"
    assert str(graph) == before
    graph.lint()


def test_constants_of_one_element_are_in_lookup_tables_at_any_rank(tmp_path: Path) -> None:
    module, graph, x = loaded("qat_concat_elemwise")
    old = node(graph, "sg_out")
    with graph.insert_exprs() as g:
        new = g.call("aten::relu", old) * np.full((1, 1, 1, 1), 0.75, np.float32) - 0.1
    graph.replace_node({old: new})
    report = tmconvert.to_tflite(module, tmp_path / "m.tflite", quantized=True, example_inputs=[x])
    assert report.verification is not None
