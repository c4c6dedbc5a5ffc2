"""Encoders and decoders of the autoencoders of ``diffusers``: name -> flow."""

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


MODELS: dict[str, Flow] = {
    "vae-kl-encode": part("AutoencoderKL", "encode", (2, 3, 64, 48), **VAE),
    "vae-kl-decode": part("AutoencoderKL", "decode", (2, 4, 16, 12), **VAE),
    "vae-tiny-encode": part(
        "AutoencoderTiny",
        "encode",
        (2, 3, 64, 48),
        encoder_block_out_channels=(32, 32),
        decoder_block_out_channels=(32, 32),
        num_encoder_blocks=(1, 1),
        num_decoder_blocks=(1, 1),
    ),
    "vae-tiny-decode": part(
        "AutoencoderTiny",
        "decode",
        (2, 4, 16, 12),
        encoder_block_out_channels=(32, 32),
        decoder_block_out_channels=(32, 32),
        num_encoder_blocks=(1, 1),
        num_decoder_blocks=(1, 1),
    ),
    "vae-dc-encode": part(
        "AutoencoderDC",
        "encode",
        (2, 3, 64, 64),
        latent_channels=4,
        attention_head_dim=8,
        encoder_block_types=("ResBlock", "EfficientViTBlock"),
        decoder_block_types=("ResBlock", "EfficientViTBlock"),
        encoder_block_out_channels=(16, 32),
        decoder_block_out_channels=(16, 32),
        encoder_layers_per_block=(1, 1),
        decoder_layers_per_block=(1, 1),
        encoder_qkv_multiscales=((), (5,)),
        decoder_qkv_multiscales=((), (5,)),
    ),
    "vae-dc-decode": part(
        "AutoencoderDC",
        "decode",
        (2, 4, 16, 12),
        latent_channels=4,
        attention_head_dim=8,
        encoder_block_types=("ResBlock", "EfficientViTBlock"),
        decoder_block_types=("ResBlock", "EfficientViTBlock"),
        encoder_block_out_channels=(16, 32),
        decoder_block_out_channels=(16, 32),
        encoder_layers_per_block=(1, 1),
        decoder_layers_per_block=(1, 1),
        encoder_qkv_multiscales=((), (5,)),
        decoder_qkv_multiscales=((), (5,)),
    ),
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
        opened=False,
        base_dim=16,
        z_dim=4,
        dim_mult=[1, 2, 2, 2],
        num_res_blocks=1,
        latents_mean=[0.0] * 4,
        latents_std=[1.0] * 4,
    ),
    "vae-wan-encode": part(
        "AutoencoderKLWan",
        "encode",
        (1, 3, 5, 32, 32),
        opened=False,
        base_dim=16,
        z_dim=4,
        dim_mult=[1, 2, 2, 2],
        num_res_blocks=1,
        latents_mean=[0.0] * 4,
        latents_std=[1.0] * 4,
    ),
    "vae-qwen-image-decode": part(
        "AutoencoderKLQwenImage",
        "decode",
        (1, 4, 1, 8, 8),
        opened=False,
        base_dim=16,
        z_dim=4,
        dim_mult=[1, 2, 2, 2],
        num_res_blocks=1,
        latents_mean=[0.0] * 4,
        latents_std=[1.0] * 4,
    ),
    "vae-hunyuan-video-decode": part(
        "AutoencoderKLHunyuanVideo",
        "decode",
        (1, 4, 2, 8, 8),
        opened=False,
        latent_channels=4,
        block_out_channels=(16, 16, 16, 16),
        layers_per_block=1,
        norm_num_groups=4,
    ),
    "vae-ltx-decode": part(
        "AutoencoderKLLTXVideo",
        "decode",
        (1, 8, 2, 4, 4),
        opened=False,
        latent_channels=8,
        block_out_channels=(16, 16, 16, 16),
        decoder_block_out_channels=(16, 16, 16, 16),
        layers_per_block=(1, 1, 1, 1, 1),
        decoder_layers_per_block=(1, 1, 1, 1, 1),
    ),
    "vae-cogvideox-decode": part(
        "AutoencoderKLCogVideoX",
        "decode",
        (1, 4, 2, 8, 8),
        opened=False,
        latent_channels=4,
        block_out_channels=(16, 16, 16, 16),
        layers_per_block=1,
        norm_num_groups=4,
    ),
    "vae-mochi-decode": part(
        "AutoencoderKLMochi",
        "decode",
        (1, 4, 2, 8, 8),
        opened=False,
        latent_channels=4,
        encoder_block_out_channels=(32, 32, 32, 32),
        decoder_block_out_channels=(32, 32, 32, 32),
        layers_per_block=(1, 1, 1, 1, 1),
        latents_mean=[0.0] * 4,
        latents_std=[1.0] * 4,
    ),
    "vae-cosmos-decode": part(
        "AutoencoderKLCosmos",
        "decode",
        (1, 4, 2, 8, 8),
        opened=False,
        latent_channels=4,
        encoder_block_out_channels=(16, 32, 32, 32),
        decode_block_out_channels=(32, 32, 32, 32),
        attention_resolutions=(8,),
        resolution=64,
        num_layers=1,
        latents_mean=None,
        latents_std=None,
    ),
    "vae-oobleck-decode": part(
        "AutoencoderOobleck",
        "decode",
        (2, 8, 16),
        opened=False,
        encoder_hidden_size=16,
        downsampling_ratios=[2, 4],
        channel_multiples=[1, 2],
        decoder_channels=16,
        decoder_input_channels=8,
        audio_channels=2,
    ),
    "vae-oobleck-encode": part(
        "AutoencoderOobleck",
        "encode",
        (2, 2, 256),
        opened=False,
        encoder_hidden_size=16,
        downsampling_ratios=[2, 4],
        channel_multiples=[1, 2],
        decoder_channels=16,
        decoder_input_channels=8,
        audio_channels=2,
    ),
}
