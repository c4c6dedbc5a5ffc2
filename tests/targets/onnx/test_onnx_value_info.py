"""Types and shapes of intermediate results in ONNX files, for tools that do not infer them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

import tmconvert
from tests.cli.runner import run
from tmconvert.symbolics.registry import temporary_symbolics

DATA = Path(__file__).parents[2] / "data"


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _graphs(attribute.g)


def _undescribed(graph: onnx.GraphProto) -> list[str]:
    described = {each.name for each in [*graph.value_info, *graph.output]}
    computed = [name for node in graph.node for name in node.output if name]
    return [name for name in computed if name not in described]


def _shapes(model: onnx.ModelProto) -> dict[str, tuple[Any, ...]]:
    return {
        each.name: (
            each.type.tensor_type.elem_type,
            *(dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim),
        )
        for each in model.graph.value_info
    }


@pytest.mark.parametrize("opset", [7, 13, 17])
@pytest.mark.parametrize("name", ["shufflenet_v2", "op_mha_rnncell"])
def test_every_result_is_described_as_onnx_infers_it(name: str, opset: int, tmp_path: Path) -> None:
    path = tmp_path / "out.onnx"
    tmconvert.to_onnx(DATA / f"{name}.tm", path, opset=opset)
    model = onnx.load(path)
    assert not _undescribed(model.graph)
    written = _shapes(model)
    del model.graph.value_info[:]
    inferred = _shapes(onnx.shape_inference.infer_shapes(model, data_prop=True))
    assert inferred
    assert {key: written[key] for key in inferred if key in written} == {
        key: shape for key, shape in inferred.items() if key in written
    }


def test_they_are_left_out_on_request(tmp_path: Path) -> None:
    with_them, without = tmp_path / "with.onnx", tmp_path / "without.onnx"
    tmconvert.to_onnx(DATA / "op_norms.tm", with_them)
    report = tmconvert.to_onnx(DATA / "op_norms.tm", without, value_info=False)
    assert report.verified
    bare, full = onnx.load(without), onnx.load(with_them)
    assert not bare.graph.value_info
    assert full.graph.value_info
    assert run("onnx", DATA / "op_norms.tm", tmp_path / "cli.onnx", "--no-value-info").status == 0
    assert (tmp_path / "cli.onnx").read_bytes() == without.read_bytes()


def test_open_sizes_have_their_names(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(2))
    tmconvert.to_onnx(
        net,
        tmp_path / "out.onnx",
        example_inputs=(torch.randn(2, 3, 8, 8),),
        dynamic_shapes={"input": {0: "batch", 2: "height"}},
    )
    model = onnx.load(tmp_path / "out.onnx")
    assert not _undescribed(model.graph)
    assert (1, "batch", 4, "height-2", 6) in _shapes(model).values()


class Doubling(torch.nn.Module):
    def forward(self, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        def body(i: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return i + 1, (y * 2 + 1).sin() * 2

        return torch.while_loop(lambda i, y: i < n, body, (torch.zeros_like(n), x))[1]


def test_graphs_inside_of_operators_too(tmp_path: Path) -> None:
    example = (torch.ones(2, 3), torch.tensor(3))
    tmconvert.to_onnx(Doubling(), tmp_path / "out.onnx", example_inputs=example)
    graphs = list(_graphs(onnx.load(tmp_path / "out.onnx").graph))
    assert len(graphs) > 1
    assert not any(_undescribed(graph) for graph in graphs)


def test_results_inside_of_a_users_symbolic_are_not_guessed(tmp_path: Path) -> None:
    """Their shapes default to the broadcast of the operands, which is wrong for a Transpose."""

    def turned(g: Any, x: Any) -> Any:
        back = g.op("Transpose", x, perm=[1, 0])
        return g.op("Transpose", g.op("Relu", back), perm=[1, 0])

    with temporary_symbolics():
        tmconvert.register_symbolic("aten::relu", turned, target="onnx")
        report = tmconvert.to_onnx(
            torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()),
            tmp_path / "out.onnx",
            example_inputs=(torch.randn(2, 3),),
        )
    assert report.verified
    graph = onnx.load(tmp_path / "out.onnx").graph
    assert [node.op_type for node in graph.node] == ["Transpose", "Relu", "Transpose", "Tanh"]
    assert _undescribed(graph) == [graph.node[0].output[0], graph.node[1].output[0]]
