"""Modules after which a trace fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


class After(nn.Module):
    """``function`` of the result of a module."""

    def __init__(self, module: nn.Module, function: Any) -> None:
        super().__init__()
        self.module, self.function = module, function

    def forward(self, x: Tensor) -> Any:
        return self.function(self.module(x))


def _sorted_by_numpy(x: Tensor) -> Tensor:
    return torch.from_numpy(np.sort(x.detach().numpy())) + x


def _listed(x: Tensor) -> Tensor:
    return x * sum(x.flatten().tolist()[:3])


def _eigenvalues(x: Tensor) -> Tensor:
    square = x.flatten()[:4].reshape(2, 2)
    return x + torch.linalg.eigvals(square).real.sum()


SEEDS: dict[str, Any] = {
    name: (lambda module, function=function: After(module, function))
    for name, function in (
        ("numpy", _sorted_by_numpy),
        ("list", _listed),
        ("eigenvalues", _eigenvalues),
    )
}
