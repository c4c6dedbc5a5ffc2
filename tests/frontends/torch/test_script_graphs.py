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


def read_in_loop(x: torch.Tensor) -> torch.Tensor:
    total = 0
    for i in range(2):
        total = total + int(x[i].sum() * 3)
    return x * total


def read_as_size(x: torch.Tensor) -> torch.Tensor:
    size = int(x.abs().sum()) + 1
    return torch.arange(size) * x.sum() + torch.full([1], size)


FUNCTIONS = (branches, nested, counted, stopped, trips, branch_in_loop, read_in_loop, read_as_size)


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


def written_rows(x: torch.Tensor) -> torch.Tensor:
    found = torch.zeros(8, 4)
    n, row = 0, x
    while n < 8 and bool(row.sum() > 1):
        found[n] = row
        row = row * 0.75
        n += 1
    return found + x


def written_in_branches(x: torch.Tensor) -> torch.Tensor:
    found = torch.zeros(8)
    n, total = 0, x.sum()
    while bool(total > 0):
        found[n] = total
        if bool(total > 1):
            found[n + 1] += total * 2
            x[0] = total
        else:
            found.mul_(0.5)
        total = total - 1
        n += 1
    return found + x.mean()


def written_view(x: torch.Tensor) -> torch.Tensor:
    found = torch.zeros(2, 4)
    row, total = found[0], x.sum()
    while bool(total > 0):
        row.add_(total)
        total = total - found.mean()
    return found + x


@pytest.mark.parametrize("function", [written_rows, written_in_branches], ids=["rows", "branches"])
def test_loops_and_branches_write_to_tensors_around_them(function: Any, tmp_path: Path) -> None:
    """Here the number of rounds depends on the data, and another input has another one."""
    script = torch.jit.script(function)

    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return script(x * 1)

    traced = tmconvert.trace(Net(), torch.tensor([1.0, 0.5, 0.75, 0.5]))
    assert tmconvert.to_onnx(traced, tmp_path / "net.onnx").verified
    for x in (torch.tensor([0.0, 0.25, 0.5, 3.0]), torch.full((4,), 0.125)):
        np.testing.assert_allclose(traced(x.numpy()), Net()(x).numpy(), rtol=1e-6)


def test_a_view_of_a_tensor_that_a_loop_writes_to_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="uses a view of it"):
        tmconvert.trace(torch.jit.script(written_view), torch.rand(4))
