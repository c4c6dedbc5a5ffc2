"""The example of the page on surgery: constants of a detection head go into its convolution."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import tmconvert
from tests.surgery.models import DATA, called, graph_of
from tmconvert.ir import TracedModule


class Head(torch.nn.Module):
    """The same head as a module of PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.box = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.scale = torch.nn.Parameter(torch.tensor([1.5]))
        self.register_buffer("stride", torch.tensor([8.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.box(x) * self.scale) / self.stride


def recorded() -> tuple[TracedModule, np.ndarray]:
    with np.load(DATA / "made/scale_stride_head.npz") as arrays:
        return tmconvert.load(DATA / "made/scale_stride_head.tm"), arrays["in0"]


def traced() -> tuple[TracedModule, np.ndarray]:
    torch.manual_seed(0)
    x = torch.rand(1, 3, 8, 8)
    return tmconvert.trace(Head().eval(), x), x.numpy()


def fold(head: TracedModule, first: int, second: int) -> None:
    graph = graph_of(head)
    head.box.weight *= head.scale / head.stride
    head.box.bias *= head.scale / head.stride
    mul = graph.get_expr_by_id(first).as_unique()
    graph.replace_node({mul.outputs[0]: mul.inputs[0]})
    div = graph.get_expr_by_id(second).as_unique()
    graph.replace_node({div.outputs[0]: div.inputs[0]})
    graph.compile()


def operators(path: Path) -> int:
    return len(onnx.load(path).graph.node)


@pytest.mark.parametrize("source", [recorded, traced])
def test_constants_go_into_the_convolution(
    source: Callable[[], tuple[TracedModule, np.ndarray]], tmp_path: Path
) -> None:
    head, x = source()
    graph = graph_of(head)
    expected = head(x)
    assert len(graph) == 7
    tmconvert.to_onnx(head, tmp_path / "before.onnx")
    tmconvert.to_caffe(head, tmp_path / "before.prototxt")
    fold(head, *(expr.id for expr in graph if expr.outputs[0].name in ("mul_out", "truediv_out", "div_out")))
    assert len(graph) == 3
    np.testing.assert_allclose(head(x), expected, atol=1e-6)
    reports = [
        tmconvert.to_onnx(head, tmp_path / "after.onnx"),
        tmconvert.to_tflite(head, tmp_path / "after.tflite"),
        tmconvert.to_caffe(head, tmp_path / "after.prototxt"),
    ]
    assert all(report.verification is not None for report in reports)
    # conversions fold such constants themselves where they can; they need not any more
    assert operators(tmp_path / "after.onnx") == 2 <= operators(tmp_path / "before.onnx")
    layers = [(tmp_path / f"{name}.prototxt").read_text().count("layer {") for name in ("before", "after")]
    assert layers[1] <= layers[0]
    head.save(tmp_path / "head.tm")
    np.testing.assert_allclose(tmconvert.load(tmp_path / "head.tm")(x), expected, atol=1e-6)
    assert called(graph, "nn.relu" if source is recorded else "torch.relu")


def test_integer_files_are_as_small_without_folding_by_hand(tmp_path: Path) -> None:
    """Conversions and calibration fold such constants by themselves, too."""
    found = []
    for is_folded in (False, True):
        head, x = recorded()
        if is_folded:
            fold(head, 5, 8)
        options: dict[str, Any] = {"quantized": True, "calibration": [x]}
        tmconvert.to_onnx(head, tmp_path / "head.onnx", **options)
        tmconvert.to_tflite(head, tmp_path / "head.tflite", **options)
        lite = graph_of(tmconvert.load(tmp_path / "head.tflite"))
        found.append(
            (operators(tmp_path / "head.onnx"), len([expr for expr in lite if expr.op.startswith("call")]))
        )
    before, after = found
    assert after == before
