"""If and Loop of TorchScript that depend on data: tm::cond and tm::loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tmconvert
from tmconvert.errors import UnsupportedError
from tmconvert.ir.tree import leaves

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
ONES = torch.ones(2, 3)
INPUTS = (ONES, -ONES, ONES * 50, torch.zeros(2, 3))


def branches(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y, factor = x * 2, 1
    else:
        y, factor = x - 1, 3
    return y * factor


def nested(x: torch.Tensor) -> torch.Tensor:
    if bool(x.sum() > 0) and bool(x.max() > 10):
        return x + 1
    return -x


def counted(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    i = 0
    while bool(x.sum() < 100.0):
        x = torch.abs(x) * 2 + 1
        i += 1
    return x, x + i


def stopped(x: torch.Tensor) -> torch.Tensor:
    for i in range(4):
        if bool(x.sum() > 10):
            break
        x = x * 2 + i
    return x


def trips(x: torch.Tensor) -> torch.Tensor:
    for _ in range(int(x.abs().max().clamp(max=5))):
        x = x + 1
    return x


def branch_in_loop(x: torch.Tensor) -> torch.Tensor:
    while bool(x.sum() < 20.0):
        if bool(x.min() < 0):
            x = x * 0 + 1
            x = x * 2
        else:
            x = x * 3
        x = x + 1
    return x


FUNCTIONS = (branches, nested, counted, stopped, trips, branch_in_loop)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_control_flow_follows_the_data(function: Any, tmp_path: Path) -> None:
    script = torch.jit.script(function)
    for example in INPUTS[:2]:
        model = tmconvert.trace(script, example)
        for x in INPUTS:
            expected = script(x)
            for ours, theirs in zip(leaves(model(x.numpy())), leaves(expected), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-6)
        assert tmconvert.to_onnx(model, tmp_path / "model.onnx").verified


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: torch.Tensor, bias: float = 0.5) -> torch.Tensor:
        if x.mean() > 0:
            return self.first(x) + bias
        return self.second(x)


def test_modules_and_their_parameters() -> None:
    torch.manual_seed(0)
    script = torch.jit.script(Gated())
    model = tmconvert.trace(script, ONES)
    assert "torch.cond" in str(model.graph)
    for x in INPUTS:
        np.testing.assert_allclose(model(x.numpy()), script(x).detach(), rtol=1e-5, atol=1e-6)
    assert sum(tensor.size for tensor in model.tensors.values()) + model.parameter_count() >= 24


def mixed(x: torch.Tensor) -> torch.Tensor:
    text = "a"
    if x.sum() > 0:
        text = "b"
    return x if text == "a" else -x


def test_what_no_tensor_holds_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"TM2011.*returns a str"):
        tmconvert.trace(torch.jit.script(mixed), ONES)


def test_frozen_scripts_take_the_way_of_the_example() -> None:
    model = tmconvert.trace(torch.jit.script(branches), ONES, freeze_control_flow=True)
    assert "cond" not in str(model.graph)
    assert any("decided by the example inputs" in note for note in model.notes)
