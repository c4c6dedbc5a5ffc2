"""Makers of the flows of ``diffusers``: few layers and random weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch_flow import Axes, Example, Flow
from torchvision_ops import declare

LATENT_SIZES = {"height": (12, 24, 20), "width": (20, 8, 32)}
IMAGE_SIZES = {"height": (48, 96, 64), "width": (64, 80, 32)}
HEADS = {"num_attention_heads": 4, "attention_head_dim": 32, "num_layers": 2}


def model(name: str, **sizes: Any) -> Any:
    """Returns the module; outputs are tuples."""
    declare()
    import diffusers

    return getattr(diffusers, name)(**sizes).eval()


def flow(
    name: str,
    inputs: Callable[[], Mapping[str, Any]],
    axes: Axes | None = None,
    *,
    frozen: bool = False,
    dict_flag: bool = True,
    **sizes: Any,
) -> Flow:
    """A model of keyword arguments. Without ``axes`` each tensor has an open batch."""

    def make() -> Example:
        return model(name, **sizes), (), {**inputs(), **({"return_dict": False} if dict_flag else {})}

    if axes is None:
        batched = [key for key, value in inputs().items() if isinstance(value, torch.Tensor) and value.dim()]
        axes = {key: {0: "batch"} for key in batched}
    return Flow(make, axes, sizes=LATENT_SIZES, freeze=frozen)


def times(batch: int = 2) -> torch.Tensor:
    return torch.linspace(3, 700, batch)


def video(batch: int = 1, channels: int = 16, frames: int = 3, side: int = 8) -> torch.Tensor:
    return torch.randn(batch, channels, frames, side, side)


def image_of(channels: int = 4, side: int = 16) -> dict[str, Any]:
    return {"hidden_states": torch.randn(2, channels, side, side), "timestep": times()}
