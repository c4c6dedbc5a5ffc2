"""What the rows of ``torch_flows/diffusers_autoencoders.models`` use."""

from __future__ import annotations

from typing import Any

import torch
from torch_flow import Flow
from torch_flow_diffusers import IMAGE_SIZES, LATENT_SIZES, model


class Part(torch.nn.Module):
    """A method of an autoencoder as a module: ``encode`` or ``decode``."""

    def __init__(self, whole: Any, method: str) -> None:
        super().__init__()
        self.whole, self.method = whole, method

    def forward(self, sample: torch.Tensor) -> torch.Tensor:
        found = getattr(self.whole, self.method)(sample, return_dict=False)[0]
        return found.mode() if hasattr(found, "mode") and not isinstance(found, torch.Tensor) else found


def part(name: str, method: str, shape: tuple[int, ...], *, opened: bool = True, **sizes: Any) -> Flow:
    """The encoder (its mode) or the decoder of an autoencoder, with open batch, height and width."""
    last = len(shape) - 1
    axes = {0: "batch", **({last - 1: "height", last: "width"} if opened else {})}
    scale = IMAGE_SIZES if method == "encode" else LATENT_SIZES
    return Flow(
        lambda: (Part(model(name, **sizes), method), (torch.randn(shape),), {}), {"sample": axes}, scale
    )


VAE = {
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    "block_out_channels": (32, 64),
    "norm_num_groups": 8,
}


class Latents(torch.nn.Module):
    """The encoder of VQModel: its result has a name."""

    def __init__(self, whole: Any) -> None:
        super().__init__()
        self.whole = whole

    def forward(self, sample: torch.Tensor) -> torch.Tensor:
        return self.whole.encode(sample).latents
