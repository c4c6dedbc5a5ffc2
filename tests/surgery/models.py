"""Models that the tests of edits begin with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

import tmconvert
from tmconvert.ir import CallFunction, Expr, InternalGraph, TracedModule

DATA = Path(__file__).parents[1] / "data"


def loaded(name: str) -> tuple[TracedModule, InternalGraph, np.ndarray]:
    """Returns a recorded model of MegEngine, its graph, and its first input."""
    module = tmconvert.load(DATA / f"{name}.tm")
    with np.load(DATA / f"{name}.npz") as arrays:
        return module, graph_of(module), arrays["in0"]


def graph_of(module: TracedModule) -> InternalGraph:
    assert module.graph is not None
    return module.graph


def called(graph: InternalGraph, label: str) -> Expr:
    """Returns the first call of a function."""
    return next(expr for expr in graph if isinstance(expr, CallFunction) and expr.label == label)


class Block(torch.nn.Module):
    """A convolution, and an activation that is not MegEngine's."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(self.conv(x)).mul(0.5)


def traced_block(channels: int, size: int) -> TracedModule:
    torch.manual_seed(1)
    return tmconvert.trace(Block(channels).eval(), torch.rand(1, channels, size, size))
