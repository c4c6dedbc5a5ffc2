"""Turns classic dropout into inverted dropout: the factor of inference goes into the weights after it.

    python samples/surgery/inverted_dropout.py out/inverted.onnx

A network trained with classic dropout keeps each element with probability p and multiplies by p at inference.
With inverted dropout, which PyTorch has, inference does nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tmconvert

KEPT = 0.8


class ClassicDropout(torch.nn.Module):
    """What inference does of classic dropout."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * KEPT


def scaled_linear(g: Any, x: Any, factor: Any, weight: Any, bias: Any) -> Any:
    """The pattern: a linear layer of something multiplied by a number."""
    return g.call("aten::linear", g.call("aten::mul", x, factor), weight, bias)


def linear(g: Any, x: Any, factor: Any, weight: Any, bias: Any) -> Any:
    """The replacement: the number is in the weights; the bias is added after it, and stays."""
    scaled = (g.known(weight) * g.known(factor)).astype(np.float32)
    return g.call("aten::linear", x, g.parameter(scaled, f"{weight.expr.name}_scaled"), bias)


def is_one_number(match: Any, graph: Any, pattern: Any) -> bool:
    """The filter: the factor is a constant of one element, not a tensor."""
    value = getattr(match["factor"].expr, "value", None)
    return isinstance(value, np.ndarray) and value.size == 1


def main(output: str) -> None:
    torch.manual_seed(0)
    layers: list[torch.nn.Module] = []
    for _ in range(3):
        layers += [ClassicDropout(), torch.nn.Linear(8, 8), torch.nn.ReLU()]
    x = torch.rand(2, 8)
    model = tmconvert.trace(torch.nn.Sequential(*layers), x)
    before = model(x.numpy())
    matches = tmconvert.replace_pattern(model, scaled_linear, linear, match_filters=[is_one_number])
    error = np.abs(model(x.numpy()) - before).max()
    left = sum(getattr(expr, "function", "") == "aten::mul" for expr in model.graph)
    print(f"{len(matches)} factors went into weights, {left} are left; outputs differ by {error:.1e}")
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    tmconvert.to_onnx(model, output)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out/inverted.onnx")
