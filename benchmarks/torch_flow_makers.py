"""Makers of flows: a module of one tensor or two, imported when it is needed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch_flow import Example, Flow
from torchvision_ops import declare

BATCH = {0: "batch"}

SIZES = {
    "nodes": (12, 20, 33),
    "texts": (1, 5, 2),
    "length": (30, 64, 9),
}  # never fewer than the example's nodes


def found(module: str, name: str) -> Any:
    declare()
    return getattr(importlib.import_module(module), name)


def made(module: str, name: str, *args: Any, **settings: Any) -> Callable[[], nn.Module]:
    return lambda: found(module, name)(*args, **settings)


def normal(*shape: int) -> Callable[[], torch.Tensor]:
    return lambda: torch.randn(shape)


def indices(high: int, *shape: int) -> Callable[[], torch.Tensor]:
    return lambda: torch.randint(0, high, shape)


class One(nn.Module):
    """A module of one tensor."""

    def __init__(self, module: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.module, self.call = module, call

    def forward(self, x: torch.Tensor) -> Any:
        return self.call(self.module, x)


def plain(module: nn.Module, x: torch.Tensor) -> Any:
    return module(x)


def one(
    make: Callable[[], nn.Module],
    x: Callable[[], torch.Tensor],
    axes: Mapping[int, str] = BATCH,
    call: Callable[..., Any] = plain,
) -> Flow:
    def example() -> Example:
        torch.manual_seed(0)
        return One(make().eval(), call).eval(), (), {"x": x()}

    return Flow(example, {"x": axes}, SIZES)


class Two(nn.Module):
    """A module of two tensors."""

    def __init__(self, module: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.module, self.call = module, call

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return self.call(self.module, x, y)


def two(
    make: Callable[[], nn.Module],
    x: Callable[[], torch.Tensor],
    y: Callable[[], torch.Tensor],
    axes: tuple[Mapping[int, str], Mapping[int, str]] = (BATCH, BATCH),
    call: Callable[..., Any] = lambda m, x, y: m(x, y),
) -> Flow:
    def example() -> Example:
        torch.manual_seed(0)
        return Two(make().eval(), call).eval(), (), {"x": x(), "y": y()}

    return Flow(example, {"x": axes[0], "y": axes[1]})


def with_variance_1(flow: Flow) -> Flow:
    """The flow with weights that give the results of convolutions the variance 1.

    With the weights of an untrained model images fade away, all places have the same score, and rounding
    decides which are taken.
    """

    def make() -> Example:
        module, args, kwargs = flow.make()
        hooks = [
            part.register_forward_hook(_to_variance_1)
            for part in module.modules()
            if isinstance(part, torch.nn.Conv2d)
        ]
        with torch.no_grad():
            module(*args, **kwargs)
        for hook in hooks:
            hook.remove()
        return module, args, kwargs

    return replace(flow, make=make)


def _to_variance_1(conv: torch.nn.Conv2d, _: Any, result: torch.Tensor) -> torch.Tensor:
    """A hook that divides the weights by the deviation of the result."""
    deviation = result.std()
    for parameter in conv.parameters():
        parameter.data /= deviation
    return result / deviation
