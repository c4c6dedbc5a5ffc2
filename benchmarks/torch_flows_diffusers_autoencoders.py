"""Encoders and decoders of the autoencoders of ``diffusers``: name -> flow."""

from __future__ import annotations

from typing import Any

import torch
from torch_flow import Flow, sizes_of
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


SIZES = sizes_of(__file__)
MODELS: dict[str, Flow] = {
    "vae-kl-encode": part("AutoencoderKL", "encode", (2, 3, 64, 48), **VAE),
    "vae-kl-decode": part("AutoencoderKL", "decode", (2, 4, 16, 12), **VAE),
    "vae-tiny-encode": part("AutoencoderTiny", "encode", (2, 3, 64, 48), **SIZES["vae-tiny-encode"]),
    "vae-tiny-decode": part("AutoencoderTiny", "decode", (2, 4, 16, 12), **SIZES["vae-tiny-decode"]),
    "vae-dc-encode": part("AutoencoderDC", "encode", (2, 3, 64, 64), **SIZES["vae-dc-encode"]),
    "vae-dc-decode": part("AutoencoderDC", "decode", (2, 4, 16, 12), **SIZES["vae-dc-decode"]),
    "vq-decode": part("VQModel", "decode", (2, 4, 16, 12), **VAE, latent_channels=4, num_vq_embeddings=16),
    "vq-encode": Flow(
        lambda: (
            Latents(model("VQModel", **VAE, latent_channels=4, num_vq_embeddings=16)),
            (torch.randn(2, 3, 64, 48),),
            {},
        ),
        {"sample": {0: "batch", 2: "height", 3: "width"}},
        IMAGE_SIZES,
    ),
    "vae-temporal-decode": Flow(
        lambda: (
            model(
                "AutoencoderKLTemporalDecoder",
                down_block_types=("DownEncoderBlock2D",) * 2,
                block_out_channels=(32, 64),
                layers_per_block=1,
            ),
            (torch.randn(3, 3, 32, 32),),
            {"num_frames": 3, "return_dict": False},
        )
    ),
    "vae-wan-decode": part(
        "AutoencoderKLWan",
        "decode",
        (1, 4, 2, 8, 8),
        dim_mult=[1, 2, 2, 2],
        latents_mean=[0.0] * 4,
        latents_std=[1.0] * 4,
        **SIZES["vae-wan-decode"],
    ),
    "vae-wan-encode": part(
        "AutoencoderKLWan",
        "encode",
        (1, 3, 5, 32, 32),
        dim_mult=[1, 2, 2, 2],
        latents_mean=[0.0] * 4,
        latents_std=[1.0] * 4,
        **SIZES["vae-wan-encode"],
    ),
    "vae-qwen-image-decode": part(
        "AutoencoderKLQwenImage",
        "decode",
        (1, 4, 1, 8, 8),
        dim_mult=[1, 2, 2, 2],
        latents_mean=[0.0] * 4,
        latents_std=[1.0] * 4,
        **SIZES["vae-qwen-image-decode"],
    ),
    "vae-hunyuan-video-decode": part(
        "AutoencoderKLHunyuanVideo", "decode", (1, 4, 2, 8, 8), **SIZES["vae-hunyuan-video-decode"]
    ),
    "vae-ltx-decode": part("AutoencoderKLLTXVideo", "decode", (1, 8, 2, 4, 4), **SIZES["vae-ltx-decode"]),
    "vae-cogvideox-decode": part(
        "AutoencoderKLCogVideoX", "decode", (1, 4, 2, 8, 8), **SIZES["vae-cogvideox-decode"]
    ),
    "vae-mochi-decode": part(
        "AutoencoderKLMochi",
        "decode",
        (1, 4, 2, 8, 8),
        latents_mean=[0.0] * 4,
        latents_std=[1.0] * 4,
        **SIZES["vae-mochi-decode"],
    ),
    "vae-cosmos-decode": part("AutoencoderKLCosmos", "decode", (1, 4, 2, 8, 8), **SIZES["vae-cosmos-decode"]),
    "vae-oobleck-decode": part(
        "AutoencoderOobleck",
        "decode",
        (2, 8, 16),
        downsampling_ratios=[2, 4],
        channel_multiples=[1, 2],
        **SIZES["vae-oobleck-decode"],
    ),
    "vae-oobleck-encode": part(
        "AutoencoderOobleck",
        "encode",
        (2, 2, 256),
        downsampling_ratios=[2, 4],
        channel_multiples=[1, 2],
        **SIZES["vae-oobleck-encode"],
    ),
}
