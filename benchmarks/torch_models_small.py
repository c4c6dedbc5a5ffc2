"""Small modules that stress what a model may do: name -> (module, args, kwargs)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from rows import table
from torch import nn

Example = tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]


class Called(nn.Module):
    """A function, with modules as its first argument."""

    def __init__(self, function: Callable[..., Any], *parts: nn.Module) -> None:
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, **inputs: Any) -> Any:
        return self.function(*self.parts, **inputs)


def called(
    function: Callable[..., Any], *parts: Callable[[], nn.Module], **inputs: Any
) -> Callable[[], Example]:
    """``inputs`` are shapes of normal numbers, or functions that make a tensor."""

    def factory() -> Example:
        torch.manual_seed(0)
        made = {name: make() if callable(make) else torch.randn(make) for name, make in inputs.items()}
        return Called(function, *(part() for part in parts)).eval(), (), made

    return factory


def encoder(**settings: Any) -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **settings), 2)


def padding() -> torch.Tensor:
    return torch.tensor([[False] * 5, [False] * 3 + [True] * 2])


MODELS: dict[str, Callable[[], Example]] = table(__file__, globals())
