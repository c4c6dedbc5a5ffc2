"""Makers of flows of images and volumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch_flow import Example, Flow
from torch_flow_makers import BATCH
from torchvision_ops import declare

OPEN = {0: "batch", 2: "height", 3: "width"}

SIZES = {"depth": (64, 32, 96), "texts": (1, 5, 2)}

VOLUME = {0: "batch", 2: "depth", 3: "height", 4: "width"}
# images of usual sizes as slices of a volume would take more memory than a computer has
VOLUME_SIZES = {"batch": (1, 3, 2), "depth": (64, 32, 48), "height": (32, 64, 48), "width": (48, 32, 64)}


class Net(nn.Module):
    """A module and what follows it, as it is wrapped for an export."""

    def __init__(self, module: nn.Module, after: Callable[[Any], Any]) -> None:
        super().__init__()
        self.module, self.after = module, after

    def forward(self, image: torch.Tensor) -> Any:
        return self.after(self.module(image))


def same(outputs: Any) -> Any:
    return outputs


def image(
    make: Callable[[], nn.Module],
    *size: int,
    axes: Mapping[int, str] = BATCH,
    channels: int = 3,
    after: Callable[[Any], Any] = same,
) -> Flow:
    """A model of images in [0, 1) of a height and a width (or a volume)."""

    def example() -> Example:
        declare()
        module = make().eval()
        return Net(module, after).eval(), (), {"image": torch.rand(2, channels, *size)}

    return Flow(example, {"image": axes}, VOLUME_SIZES if axes is VOLUME else SIZES)


class Pair(nn.Module):
    """A function of two images."""

    def __init__(self, module: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.module, self.call = module, call

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> Any:
        return self.call(self.module, left, right)


def pair(
    make: Callable[[], nn.Module],
    call: Callable[..., Any],
    axes: Mapping[int, str],
    *size: int,
    channels: int = 3,
) -> Flow:
    def example() -> Example:
        declare()
        given = {name: torch.rand(2, channels, *size) for name in ("left", "right")}
        return Pair(make(), call).eval(), (), given

    return Flow(example, dict.fromkeys(("left", "right"), axes))
