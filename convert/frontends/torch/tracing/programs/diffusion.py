"""Parts of a pipeline of diffusers: each is a folder with a configuration and weights in safetensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from tmconvert.frontends.torch.pretrained import check_folder, read_json, unusable
from tmconvert.frontends.torch.tracing.programs.confined_libraries import confined
from tmconvert.frontends.torch.tracing.programs.pretrained import Pretrained, pretrained_model
from tmconvert.frontends.torch.tracing.programs.pretrained_inputs import BATCH, Part, vocabulary_size

WEIGHTS = "diffusion_pytorch_model.safetensors"
STEP = 500  # of the noise, in the example


class Returning(torch.nn.Module):
    """A module that calls a function of a model, and names what it returns."""

    def __init__(self, model: Any, call: Callable[..., dict[str, torch.Tensor]]) -> None:
        super().__init__()
        self.model, self.call = model, call

    def forward(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        return self.call(self.model, **inputs)


def parts_of_pipeline(folder: Path, classes: Mapping[str, str]) -> Iterator[tuple[str, Pretrained, Part]]:
    """Yields the parts of a pipeline with the names of optimum's folders. Raises LoadError TM1028.

    ``classes`` are the names of classes by folder, those of the U-Net and the VAE of diffusers.
    """
    text = pretrained_model(check_folder(str(folder / "text_encoder")))
    unet = _loaded(folder / "unet", classes["unet"])
    vae = _loaded(folder / "vae", classes["vae"])
    latents = _images(unet.config.in_channels, unet.config.sample_size)
    scale = 2 ** (len(vae.config.block_out_channels) - 1)
    images = _images(vae.config.in_channels, scale * latents.shape[-1])
    coded = _images(vae.config.latent_channels, latents.shape[-1])
    tokens = torch.randint(
        3, vocabulary_size(text.module.config), (BATCH, text.module.config.max_position_embeddings)
    )
    states = torch.randn(BATCH, tokens.shape[1], unet.config.cross_attention_dim)
    denoising = {"sample": latents, "timestep": torch.tensor(STEP), "encoder_hidden_states": states}
    if unet.config.time_cond_proj_dim is not None:
        denoising["timestep_cond"] = torch.randn(BATCH, unet.config.time_cond_proj_dim)
    for name, model, call, inputs in (
        ("text_encoder", text.module, _encode_text, {"input_ids": tokens}),
        ("unet", unet, _denoise, denoising),
        ("vae_encoder", vae, _encode_image, {"sample": images}),
        ("vae_decoder", vae, _decode_image, {"latent_sample": coded}),
    ):
        sizes = {key: {0: "batch_size"} for key, each in inputs.items() if each.dim()}
        notes = text.notes if model is text.module else []
        yield name, Pretrained(model, notes), Part(Returning(model, call).eval(), inputs, sizes)


def _images(channels: int, size: int) -> torch.Tensor:
    return torch.randn(BATCH, channels, size, size)


def _encode_text(model: Any, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    made = model(**inputs)
    return {name: made[name] for name in ("last_hidden_state", "pooler_output")}


def _denoise(model: Any, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"out_sample": model(**inputs).sample}


def _encode_image(model: Any, sample: torch.Tensor) -> dict[str, torch.Tensor]:
    made = model.encode(sample)
    if hasattr(made, "latent_dist"):
        return {"latent_parameters": made.latent_dist.parameters}
    return {"latent_sample": made.latents}  # of a VAE that draws nothing, such as AutoencoderTiny


def _decode_image(model: Any, latent_sample: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"sample": model.decode(latent_sample).sample}


def _loaded(folder: Path, kind: str) -> Any:
    """Returns a model of diffusers with all weights of its folder. Raises LoadError TM1028."""
    try:
        import diffusers
        from safetensors.torch import load_file
    except ImportError as error:
        raise unusable(str(folder), "diffusers is not installed", "pip install diffusers") from error
    found: Any = getattr(diffusers, kind, None)
    is_model = isinstance(found, type) and issubclass(found, diffusers.ModelMixin)
    if not is_model:
        raise unusable(str(folder), f"{kind:.80} is not a model of diffusers {diffusers.__version__}")
    config = {name: value for name, value in read_json(str(folder), "config.json").items() if name[:1] != "_"}
    if not (folder / WEIGHTS).is_file():
        raise unusable(str(folder), f"it has no {WEIGHTS}")
    try:
        weights = load_file(folder / WEIGHTS)
        with confined(str(folder)):
            model = found.from_config(config)
            model.load_state_dict(weights)
    except Exception as error:  # of many kinds: unknown options, other shapes, damaged headers
        raise unusable(str(folder), f"diffusers cannot load it: {error!s:.300}") from error
    return model.float().eval()
