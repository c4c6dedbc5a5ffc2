"""Floats that Python reads from tensors: operands of calls use the tensor, comparisons are decisions."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import tmconvert
from tmconvert.errors import UnsupportedError

from .harness import check

X = torch.linspace(-2, 3, 6).reshape(2, 3)

FUNCTIONS: dict[str, Any] = {
    "a bound": lambda x: torch.clamp(x, min=x.max().item() - 1.0),
    "arithmetic": lambda x: x / (x.abs().max().item() * 2 + 1) + (1 - x[0, 0].item()) ** 2 - x.mean().item(),
    "reflected": lambda x: (3.0 / (4 + x.max().item())) * x.exp() + -x.min().item(),
    "a branch": lambda x: x.sin() if x.max().item() > 2.5 else x.cos(),
    "a branch on two": lambda x: x.sin() if x.max().item() > abs(x.min().item()) else x.cos(),
    "the larger": lambda x: x * max(x.max().item(), 1.0),
    "truth": lambda x: x / x.sum().item() if x.sum().item() else x.exp(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_floats_follow_their_tensors(name: str) -> None:
    check(FUNCTIONS[name], X, second=[-X], tflite=True)
    check(FUNCTIONS[name], X, second=[X * 0.2], opsets=(13,))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + math.sqrt(x.abs().max().item()),
        lambda x: x + round(x.max().item()),
        lambda x: x + int(x.max().item()),
        lambda x: x + float(x.max().item()),
        lambda x: x + len(f"{x.max().item():.3f}"),
        lambda x: x + {3.0: 1}.get(x.max().item(), 2),
    ],
)
def test_other_uses_are_refused(function: Any) -> None:
    with pytest.raises(UnsupportedError, match="TM2011"):
        tmconvert.trace(function, X)
