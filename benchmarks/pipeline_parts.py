"""The parts of the pipelines of pipelines.py: name -> (module, example inputs, open sizes)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torchvision_ops import declare

Part = tuple[nn.Module, tuple[torch.Tensor, ...], dict[str, dict[int, str]]]
Parts = dict[str, Part]
WIDTH = 32
LATENTS = {"latents": {0: "batch", 2: "height", 3: "width"}}


class First(nn.Module):
    """Calls a module of a library with keywords, and returns the first output."""

    def __init__(self, whole: nn.Module, *names: str) -> None:
        super().__init__()
        self.whole, self.names = whole, names

    def forward(self, *arguments: torch.Tensor) -> torch.Tensor:
        return self.whole(**dict(zip(self.names, arguments, strict=True)), return_dict=False)[0]


class Text(nn.Module):
    """The hidden states of CLIP's text encoder."""

    def __init__(self, whole: nn.Module) -> None:
        super().__init__()
        self.whole = whole

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.whole(input_ids=tokens).last_hidden_state


class Decoder(nn.Module):
    """The decoder of an autoencoder, with its factor."""

    def __init__(self, whole: Any) -> None:
        super().__init__()
        self.whole = whole

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        return self.whole.decode(latents / self.whole.config.scaling_factor, return_dict=False)[0]


def text_part(hidden: int = WIDTH) -> Part:
    declare()
    from transformers import CLIPTextConfig, CLIPTextModel

    settings = CLIPTextConfig(
        vocab_size=99,
        hidden_size=hidden,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        eos_token_id=2,
    )
    example = torch.randint(3, 90, (2, 7))
    return Text(CLIPTextModel(settings).eval()), (example,), {"tokens": {0: "batch"}}


def denoiser_part(module: nn.Module) -> Part:
    """Latents, times and texts; the axes are those of ``First``."""
    example = torch.randn(2, 4, 8, 8), torch.tensor([7, 900]), torch.randn(2, 7, WIDTH)
    names = ("arguments.0", "arguments.1", "arguments.2")
    sizes = {0: "batch", 2: "height", 3: "width"}, {0: "batch"}, {0: "batch"}
    return module, example, dict(zip(names, sizes, strict=True))


def decoder_part() -> Part:
    import diffusers

    whole = diffusers.AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        block_out_channels=(16, 32),
        norm_num_groups=8,
    ).eval()
    return Decoder(whole), (torch.randn(2, 4, 8, 8),), LATENTS


def unet_parts() -> Parts:
    text = text_part()
    import diffusers

    unet = diffusers.UNet2DConditionModel(
        block_out_channels=(32, 64),
        layers_per_block=1,
        cross_attention_dim=WIDTH,
        attention_head_dim=8,
        norm_num_groups=8,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    ).eval()
    first = First(unet, "sample", "timestep", "encoder_hidden_states")
    return {"text": text, "denoiser": denoiser_part(first), "decoder": decoder_part()}


class Pooled(nn.Module):
    """Gives Stable Diffusion 3's transformer the mean of the texts as the pooled projection."""

    def __init__(self, whole: nn.Module) -> None:
        super().__init__()
        self.whole = whole

    def forward(self, *arguments: torch.Tensor) -> torch.Tensor:
        latents, times, texts = arguments
        return self.whole(latents, texts, texts.mean(1), times, return_dict=False)[0]


def dit_parts() -> Parts:
    text = text_part()
    import diffusers

    transformer = diffusers.SD3Transformer2DModel(
        sample_size=8,
        in_channels=4,
        out_channels=4,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=4,
        joint_attention_dim=WIDTH,
        caption_projection_dim=32,
        pooled_projection_dim=WIDTH,
        pos_embed_max_size=24,
    ).eval()
    return {"text": text, "denoiser": denoiser_part(Pooled(transformer)), "decoder": decoder_part()}


class OwnUNet(nn.Module):
    """A U-Net with one skip connection, cross-attention and embedded times."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))
        self.enter, self.down = nn.Conv2d(4, WIDTH, 3, padding=1), nn.Conv2d(WIDTH, WIDTH, 3, 2, 1)
        self.norm, self.leave = nn.GroupNorm(8, 2 * WIDTH), nn.Conv2d(2 * WIDTH, 4, 3, padding=1)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)

    def forward(self, *arguments: torch.Tensor) -> torch.Tensor:
        latents, times, texts = arguments
        angles = times[:, None] * torch.exp(torch.arange(8) * -1.1)
        place = self.time(torch.cat([angles.sin(), angles.cos()], -1))[:, :, None, None]
        skip = self.enter(latents) + place
        x = self.down(nn.functional.silu(skip))
        rows = x.flatten(2).transpose(1, 2)
        rows = rows + self.attention(rows, texts, texts, need_weights=False)[0]
        x = rows.transpose(1, 2).reshape(x.shape)
        x = nn.functional.interpolate(x, size=skip.shape[-2:], mode="nearest")
        return self.leave(nn.functional.silu(self.norm(torch.cat([x, skip], 1))))


class OwnDecoder(nn.Module):
    """Latents to an image of twice their size."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Conv2d(4, WIDTH, 3, padding=1), nn.Conv2d(WIDTH, 12, 3, padding=1)

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        return nn.functional.pixel_shuffle(self.leave(nn.functional.silu(self.enter(latents))), 2).tanh()


def own_unet_parts() -> Parts:
    decoder = OwnDecoder().eval(), (torch.randn(2, 4, 8, 8),), LATENTS
    return {"text": text_part(), "denoiser": denoiser_part(OwnUNet().eval()), "decoder": decoder}


class SpeechText(nn.Module):
    """VITS's text encoder with its durations: means and log variances [N, L, C], durations [N, 1, L]."""

    def __init__(self, whole: Any) -> None:
        super().__init__()
        self.whole = whole

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        seen = mask.unsqueeze(-1).float()
        found = self.whole.text_encoder(tokens, seen, mask)
        hidden = found.last_hidden_state.transpose(1, 2)
        durations = self.whole.duration_predictor(hidden, seen.transpose(1, 2)).exp() * seen.transpose(1, 2)
        return found.prior_means, found.prior_log_variances, 2 * durations


class Flow(nn.Module):
    """VITS's flow, backwards."""

    def __init__(self, whole: Any) -> None:
        super().__init__()
        self.whole = whole

    def forward(self, latents: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        return self.whole.flow(latents, seen, None, reverse=True) * seen


def speech_parts() -> Parts:
    declare()
    from transformers import VitsConfig, VitsModel

    settings = VitsConfig(
        vocab_size=38,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        ffn_dim=32,
        flow_size=16,
        spectrogram_bins=8,
        upsample_initial_channel=16,
        upsample_rates=[4, 4],
        upsample_kernel_sizes=[8, 8],
        resblock_kernel_sizes=[3, 5],
        resblock_dilation_sizes=[[1, 3], [1, 3]],
        prior_encoder_num_flows=2,
        prior_encoder_num_wavenet_layers=2,
        duration_predictor_filter_channels=16,
        use_stochastic_duration_prediction=False,
    )
    whole: Any = VitsModel(settings).eval()
    tokens, mask = torch.randint(1, 30, (2, 9)), torch.ones(2, 9, dtype=torch.int64)
    open_text = {name: {0: "batch", 1: "sequence"} for name in ("tokens", "mask")}
    open_frames = {0: "batch", 2: "frames"}
    latents, seen = torch.randn(2, 16, 20), torch.ones(2, 1, 20)
    return {
        "text": (SpeechText(whole), (tokens, mask), open_text),
        "flow": (Flow(whole), (latents, seen), {"latents": open_frames, "seen": open_frames}),
        "vocoder": (whole.decoder, (latents,), {"spectrogram": open_frames}),
    }
