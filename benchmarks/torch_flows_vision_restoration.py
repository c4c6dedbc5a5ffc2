"""What the rows of ``torch_flows/vision_restoration.models`` use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch_flow import Flow
from torch_flow_images import OPEN, VOLUME, image, same
from torch_flow_makers import made


def first(outputs: Any) -> Any:
    return outputs[0]


class WithoutNoise(nn.Module):
    """A face restorer that adds its own noise, not new one at each call."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> Any:
        return self.module(x, return_rgb=False, randomize_noise=False)[0]


def spandrel(name: str, kind: str, size: int = 48, channels: int = 3, **settings: Any) -> Flow:
    return image(
        made(f"spandrel.architectures.{name}", kind, **settings), size, size, axes=OPEN, channels=channels
    )


def medical(name: str, *size: int, after: Callable[[Any], Any] = same, **settings: Any) -> Flow:
    axes = VOLUME if len(size) == 3 else OPEN
    return image(made("monai.networks.nets", name, **settings), *size, axes=axes, channels=1, after=after)
