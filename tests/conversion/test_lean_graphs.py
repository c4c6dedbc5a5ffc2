"""ONNX and Caffe files without operators that a neighbour can do, or that do nothing."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import torch

import tmconvert


class Head(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.register_buffer("temperature", torch.rand(4, 1, 1) + 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x) * 3) / self.temperature


class Idle(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (x.exp() * 1 + 0).tanh() * 1, x.abs() + x.abs()


def operators(net: torch.nn.Module, x: torch.Tensor, folder: Path) -> tuple[list[str], list[str]]:
    """Of ONNX, and the layers of Caffe behind the Input."""
    for target in ("onnx", "caffe"):
        path = folder / f"net.{'onnx' if target == 'onnx' else 'prototxt'}"
        assert getattr(tmconvert, f"to_{target}")(net, path, example_inputs=(x,)).verified
    layers = re.findall(r'type: "(.*)"', (folder / "net.prototxt").read_text())
    return [node.op_type for node in onnx.load(folder / "net.onnx").graph.node], layers[1:]


def test_scales_around_a_layer_are_in_its_weights(tmp_path: Path) -> None:
    nodes, layers = operators(Head(), torch.randn(1, 3, 8, 8), tmp_path)
    assert (nodes, layers) == (["Conv", "Relu"], ["Convolution", "ReLU"])


def test_what_does_nothing_goes_and_what_is_equal_is_computed_once(tmp_path: Path) -> None:
    nodes, layers = operators(Idle(), torch.randn(2, 3), tmp_path)
    assert nodes == ["Exp", "Tanh", "Abs", "Add"]
    assert layers == ["Exp", "TanH", "AbsVal", "Eltwise"]


def test_open_sizes_too(tmp_path: Path) -> None:
    options = {"example_inputs": (torch.randn(2, 3),), "dynamic_shapes": {"x": {0: "batch"}}}
    tmconvert.to_onnx(Idle(), tmp_path / "net.onnx", **options)
    assert [node.op_type for node in onnx.load(tmp_path / "net.onnx").graph.node] == [
        "Exp",
        "Tanh",
        "Abs",
        "Add",
    ]
