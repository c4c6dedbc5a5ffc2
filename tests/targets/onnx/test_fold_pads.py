"""Zeros around images become the padding of convolutions; ONNX Runtime computes the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tmconvert


class Padded(nn.Module):
    """Padding before a convolution, and what else is made of it."""

    def __init__(
        self,
        rank: int,
        pad: tuple[int, ...],
        inner: int = 0,
        after: Callable[..., Any] = lambda layer, x: layer(x),
        **padding: Any,
    ) -> None:
        super().__init__()
        kind: Any = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[rank - 1]
        self.conv = kind(3, 4, 3, stride=2, padding=inner)
        self.pad, self.after, self.padding = pad, after, padding

    def forward(self, x: torch.Tensor) -> Any:
        return self.after(self.conv, F.pad(x, self.pad, **self.padding))


def written(module: nn.Module, rank: int, path: Path, **options: Any) -> tuple[Counter[str], list[list[int]]]:
    """Returns the operators of the verified file, and the padding of its convolutions."""
    x = torch.randn(2, 3, *[9] * rank)
    report = tmconvert.to_onnx(module, path, example_inputs=(x,), **options)
    assert report.verification is not None
    nodes = onnx.load(str(path)).graph.node
    pads = [
        list(a.ints) for each in nodes if each.op_type == "Conv" for a in each.attribute if a.name == "pads"
    ]
    return Counter(each.op_type for each in nodes), pads


@pytest.mark.parametrize("opset", [9, 10, 11, 13, 17, 21])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_each_end_has_its_own(rank: int, opset: int, tmp_path: Path) -> None:
    amounts = (0, 1, 2, 3, 1, 0)[: 2 * rank]  # of the last axis first
    operators, pads = written(Padded(rank, amounts, inner=1), rank, tmp_path / "m.onnx", opset=opset)
    assert "Pad" not in operators
    before, after = amounts[::2][::-1], amounts[1::2][::-1]
    assert pads == [[1 + each for each in (*before, *after)]]


def test_several_convolutions_share_it(tmp_path: Path) -> None:
    module = Padded(2, (0, 1, 0, 1), after=lambda layer, x: (layer(x), F.conv2d(x, layer.weight.flip(0))))
    operators, pads = written(module, 2, tmp_path / "m.onnx")
    assert "Pad" not in operators
    assert pads == [[0, 0, 1, 1]] * 2


@pytest.mark.parametrize(
    "module",
    [
        Padded(2, (0, 1, 0, 1), value=1.0),
        Padded(2, (0, 1, 0, 1), mode="reflect"),
        Padded(2, (0, 1, -1, 0)),
        Padded(2, (0, 1, 0, 1), after=lambda layer, x: (layer(x), x)),
        Padded(2, (0, 1, 0, 1), after=lambda layer, x: layer(x) + x.relu().mean()),
    ],
)
def test_other_padding_stays(module: nn.Module, tmp_path: Path) -> None:
    operators, _ = written(module, 2, tmp_path / "m.onnx")
    assert operators["Pad"] == 1
