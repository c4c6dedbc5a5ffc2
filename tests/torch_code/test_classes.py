"""Modules of the source are classes of the generated code, with a ``forward`` of their own."""

from __future__ import annotations

import copy
import io
import re

import numpy as np
import pytest

import tmconvert
from tests.models import corpus

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


class Block(nn.Module):
    def __init__(self, channels: int, *, is_short: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.act = nn.ReLU()
        self.conv2 = nn.Conv2d(channels, channels, 1)
        self.scale = nn.Parameter(torch.full((channels, 1, 1), 0.5))
        self.is_short = is_short

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.act(self.conv1(x))
        if not self.is_short:
            y = self.conv2(y) * self.scale * gate
        return y + x, y


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(3), Block(3), Block(3, is_short=True)])
        self.shared = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Tanh(), nn.Conv2d(3, 3, 1))
        self.again = self.shared

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x.mean()
        for block in self.blocks:
            x, y = block(x, torch.sigmoid(total))
            total = total + y.mean()
        return self.shared(self.again(x)) * total


@pytest.fixture(scope="module")
def nets() -> tuple[nn.Module, nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    source, x = Net().eval(), torch.randn(2, 3, 5, 5)
    return source, tmconvert.trace(source, x).to_torch(), x


def test_submodules_run_alone(nets: tuple[nn.Module, nn.Module, torch.Tensor]) -> None:
    source, net, x = nets
    assert torch.allclose(net(x), source(x), atol=1e-6)
    gate = torch.tensor(0.25)
    for ours, theirs in zip(net.blocks[:2], source.blocks[:2], strict=True):
        for result, right in zip(ours(x, gate), theirs(x, gate), strict=True):
            assert torch.allclose(result, right, atol=1e-6)
    assert torch.allclose(net.shared(x), source.shared(x), atol=1e-6)
    assert net.again is net.shared
    assert set(net.state_dict()) == set(source.state_dict())


def test_equal_modules_are_of_one_class(nets: tuple[nn.Module, nn.Module, torch.Tensor]) -> None:
    _, net, x = nets
    names = [type(block).__name__ for block in net.blocks]
    assert names == ["Block", "Block", "Block_1"]
    code = tmconvert.trace(Net().eval(), x).code
    assert re.findall(r"^class (\w+)\((.*)\):", code, re.MULTILINE) == [
        ("Block", "nn.Module"),
        ("Block_1", "nn.Module"),
        ("Sequential", "nn.ModuleList"),
        ("Net", "nn.Module"),
    ]
    assert "y = self.conv2(" not in code and "conv2d_out_1 = self.conv2(relu_out)" in code


def test_copies_and_files(nets: tuple[nn.Module, nn.Module, torch.Tensor]) -> None:
    _, net, x = nets
    copied = copy.deepcopy(net)
    assert type(copied.blocks[0]) is type(net.blocks[0])
    stored = io.BytesIO()
    torch.save(net, stored)
    stored.seek(0)
    again = torch.load(stored, weights_only=False)
    assert type(again.blocks[0]) is type(net.blocks[0])
    assert torch.equal(again(x), net(x)) and torch.equal(copied(x), net(x))
    with pytest.warns(DeprecationWarning):
        scripted = torch.jit.script(net)
    assert torch.allclose(scripted(x), net(x), atol=1e-6)


def test_traces_have_the_modules_again(nets: tuple[nn.Module, nn.Module, torch.Tensor]) -> None:
    """Names of values included, the graph of the code is that of the code of its trace."""
    _, net, x = nets
    first = tmconvert.trace(net, x)
    second = tmconvert.trace(first.to_torch(), x)
    assert first.code == second.code
    assert str(first.graph) == str(second.graph)
    assert tmconvert.normalize(first).graph.to_text() == tmconvert.normalize(second).graph.to_text()


def test_a_model_of_megengine_has_its_blocks() -> None:
    net = tmconvert.load(corpus.model("resnet18")).to_torch()
    (x,) = corpus.golden("resnet18")[0]
    y = net.layer1(F_relu(net, torch.from_numpy(np.array(x))))
    assert y.shape[1] == 8 and type(net.layer1[0]) is type(net.layer1[1])


def F_relu(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.relu(net.bn1(net.conv1(x)))
