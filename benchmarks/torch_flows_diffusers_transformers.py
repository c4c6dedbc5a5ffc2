"""Transformers of ``diffusers`` that denoise images and sound, and their control networks: name -> flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch_flow import Flow, sizes_of
from torch_flow_diffusers import HEADS, flow, image_of, model, times

LATENT = {"hidden_states": {0: "batch", 2: "height", 3: "width"}}


def flux_ids(tokens_of_text: int = 7, side: int = 4, axes: int = 3) -> dict[str, Any]:
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    places = torch.zeros(side * side, axes)
    places[:, 1], places[:, 2] = rows.reshape(-1), columns.reshape(-1)
    return {"img_ids": places, "txt_ids": torch.zeros(tokens_of_text, axes)}


def flux_like(name: str, *, pooled: bool = True, axes: int = 3, **sizes: Any) -> Flow:
    def make() -> Mapping[str, Any]:
        given = {
            "hidden_states": torch.randn(2, 16, 16),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "timestep": torch.tensor([0.5, 0.9]),
            **flux_ids(axes=axes),
        }
        return given | ({"pooled_projections": torch.randn(2, 32)} if pooled else {})

    opened = {
        "hidden_states": {0: "batch", 1: "tokens"},
        "encoder_hidden_states": {0: "batch", 1: "sequence"},
        "timestep": {0: "batch"},
        "img_ids": {0: "tokens"},
        "txt_ids": {0: "sequence"},
    }
    if pooled:
        opened["pooled_projections"] = {0: "batch"}
    made = flow(name, make, opened, in_channels=16, num_layers=1, joint_attention_dim=64, **sizes)
    return Flow(made.make, made.axes, sizes={"tokens": (9, 12, 20)})


def cogview_sizes() -> dict[str, Any]:
    return {
        "original_size": torch.tensor([[128.0, 128.0]] * 2),
        "target_size": torch.tensor([[128.0, 128.0]] * 2),
        "crop_coords": torch.tensor([[0.0, 0.0]] * 2),
    }


SIZES = sizes_of(__file__)
MODELS: dict[str, Flow] = {
    "dit": flow(
        "DiTTransformer2DModel",
        lambda: {**image_of(), "class_labels": torch.tensor([1, 5])},
        {},
        **HEADS,
        sample_size=16,
        norm_num_groups=8,
    ),
    "pixart": flow(
        "PixArtTransformer2DModel",
        lambda: {
            **image_of(),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "added_cond_kwargs": {"resolution": None, "aspect_ratio": None},
        },
        LATENT | {"encoder_hidden_states": {0: "batch", 1: "sequence"}, "timestep": {0: "batch"}},
        **HEADS,
        sample_size=16,
        cross_attention_dim=128,
        caption_channels=64,
    ),
    "sd3": flow(
        "SD3Transformer2DModel",
        lambda: {
            **image_of(16),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "pooled_projections": torch.randn(2, 32),
        },
        LATENT
        | {
            "encoder_hidden_states": {0: "batch", 1: "sequence"},
            "timestep": {0: "batch"},
            "pooled_projections": {0: "batch"},
        },
        **HEADS,
        **SIZES["sd3"],
    ),
    "flux": flux_like("FluxTransformer2DModel", **SIZES["flux"]),
    "flux2": flux_like("Flux2Transformer2DModel", pooled=False, axes=4, **SIZES["flux2"]),
    "chroma": flux_like("ChromaTransformer2DModel", pooled=False, **SIZES["chroma"]),
    "ovis-image": flux_like("OvisImageTransformer2DModel", pooled=False, **SIZES["ovis-image"]),
    "longcat-image": flux_like("LongCatImageTransformer2DModel", pooled=False, **SIZES["longcat-image"]),
    "bria": flux_like("BriaTransformer2DModel", pooled=False, **SIZES["bria"]),
    "auraflow": flow(
        "AuraFlowTransformer2DModel",
        lambda: {**image_of(), "encoder_hidden_states": torch.randn(2, 7, 64)},
        LATENT | {"encoder_hidden_states": {0: "batch", 1: "sequence"}, "timestep": {0: "batch"}},
        **SIZES["auraflow"],
    ),
    "sana": flow(
        "SanaTransformer2DModel",
        lambda: {**image_of(), "encoder_hidden_states": torch.randn(2, 7, 64)},
        LATENT | {"encoder_hidden_states": {0: "batch", 1: "sequence"}, "timestep": {0: "batch"}},
        **HEADS,
        **SIZES["sana"],
    ),
    "lumina2": flow(
        "Lumina2Transformer2DModel",
        lambda: {
            **image_of(),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "encoder_attention_mask": torch.ones(2, 7, dtype=torch.bool),
        },
        **SIZES["lumina2"],
    ),
    "cogview3plus": flow(
        "CogView3PlusTransformer2DModel",
        lambda: {**image_of(), "encoder_hidden_states": torch.randn(2, 7, 64), **cogview_sizes()},
        **SIZES["cogview3plus"],
    ),
    "cogview4": flow(
        "CogView4Transformer2DModel",
        lambda: {**image_of(), "encoder_hidden_states": torch.randn(2, 7, 64), **cogview_sizes()},
        LATENT
        | {
            "encoder_hidden_states": {0: "batch", 1: "sequence"},
            "timestep": {0: "batch"},
            "original_size": {0: "batch"},
            "target_size": {0: "batch"},
            "crop_coords": {0: "batch"},
        },
        **SIZES["cogview4"],
    ),
    "qwen-image": flow(
        "QwenImageTransformer2DModel",
        lambda: {
            "hidden_states": torch.randn(2, 16, 16),
            "timestep": torch.rand(2),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "encoder_hidden_states_mask": torch.ones(2, 7, dtype=torch.int64),
            "img_shapes": [(1, 4, 4)] * 2,
        },
        **SIZES["qwen-image"],
    ),
    "z-image": Flow(
        lambda: (
            model(
                "ZImageTransformer2DModel",
                in_channels=4,
                dim=64,
                n_layers=1,
                n_refiner_layers=1,
                n_heads=2,
                n_kv_heads=2,
                cap_feat_dim=32,
                axes_dims=[8, 12, 12],
                axes_lens=[64, 64, 64],
            ),
            ([torch.randn(4, 1, 8, 8)], torch.tensor([0.3]), [torch.randn(7, 32)]),
            {"return_dict": False},
        )
    ),
    "hunyuan-image": flow(
        "HunyuanImageTransformer2DModel",
        lambda: {
            **image_of(),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "encoder_attention_mask": torch.ones(2, 7),
        },
        **SIZES["hunyuan-image"],
    ),
    "hunyuan-dit": flow(
        "HunyuanDiT2DModel",
        lambda: {
            **image_of(),
            "encoder_hidden_states": torch.randn(2, 7, 32),
            "text_embedding_mask": torch.ones(2, 7, dtype=torch.bool),
            "encoder_hidden_states_t5": torch.randn(2, 9, 48),
            "text_embedding_mask_t5": torch.ones(2, 9, dtype=torch.bool),
            "image_meta_size": torch.rand(2, 6) * 512,
            "style": torch.zeros(2, dtype=torch.int64),
            "image_rotary_emb": (torch.randn(64, 32), torch.randn(64, 32)),
        },
        **HEADS,
        **SIZES["hunyuan-dit"],
    ),
    "prx": flow(
        "PRXTransformer2DModel",
        lambda: {**image_of(), "timestep": torch.rand(2), "encoder_hidden_states": torch.randn(2, 7, 64)},
        axes_dim=[16, 16],
        **SIZES["prx"],
    ),
    "omnigen": flow(
        "OmniGenTransformer2DModel",
        lambda: {
            **image_of(),
            "timestep": torch.rand(2),
            "input_ids": torch.randint(0, 60, (2, 7)),
            "input_img_latents": [],
            "input_image_sizes": {},
            "attention_mask": torch.ones(2, 72, 72),
            "position_ids": torch.arange(72).repeat(2, 1),
        },
        {},
        rope_scaling={"long_factor": [1.0] * 8, "short_factor": [1.0] * 8},
        **SIZES["omnigen"],
    ),
    "prior": flow(
        "PriorTransformer",
        lambda: {
            "hidden_states": torch.randn(2, 32),
            "timestep": times(),
            "proj_embedding": torch.randn(2, 32),
            "encoder_hidden_states": torch.randn(2, 7, 32),
            "attention_mask": torch.ones(2, 7, dtype=torch.bool),
        },
        **HEADS,
        embedding_dim=32,
        num_embeddings=7,
    ),
    "stable-audio": flow(
        "StableAudioDiTModel",
        lambda: {
            "hidden_states": torch.randn(2, 8, 32),
            "timestep": times(),
            "encoder_hidden_states": torch.randn(2, 5, 32),
            "global_hidden_states": torch.randn(2, 1, 48),
            "rotary_embedding": (torch.randn(33, 16), torch.randn(33, 16)),
        },
        **SIZES["stable-audio"],
    ),
    "ace-step": flow(
        "AceStepTransformer1DModel",
        lambda: {
            "hidden_states": torch.randn(2, 16, 16),
            "timestep": torch.rand(2),
            "timestep_r": torch.rand(2),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "context_latents": torch.randn(2, 16, 32),
        },
        **SIZES["ace-step"],
    ),
    # control
    "controlnet-sd3": flow(
        "SD3ControlNetModel",
        lambda: {
            **image_of(16),
            "controlnet_cond": torch.randn(2, 16, 16, 16),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "pooled_projections": torch.randn(2, 32),
        },
        **HEADS,
        **SIZES["controlnet-sd3"],
    ),
    "controlnet-flux": flow(
        "FluxControlNetModel",
        lambda: {
            "hidden_states": torch.randn(2, 16, 16),
            "controlnet_cond": torch.randn(2, 16, 16),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "timestep": torch.tensor([0.5, 0.9]),
            "pooled_projections": torch.randn(2, 32),
            **flux_ids(),
        },
        {},
        axes_dims_rope=[8, 12, 12],
        **SIZES["controlnet-flux"],
    ),
}
