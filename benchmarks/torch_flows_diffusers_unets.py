"""U-Nets of ``diffusers``, their control networks and adapters: name -> flow."""

from __future__ import annotations

from typing import Any

import torch
from torch_flow import Flow, sizes_of
from torch_flow_diffusers import IMAGE_SIZES, flow, model


def unet_inputs(**more: Any) -> dict[str, Any]:
    return {
        "sample": torch.randn(2, 4, 16, 16),
        "timestep": torch.tensor(37),
        "encoder_hidden_states": torch.randn(2, 7, 32),
        **more,
    }


UNET_AXES = {
    "sample": {0: "batch", 2: "height", 3: "width"},
    "encoder_hidden_states": {0: "batch", 1: "sequence"},
}
UNET = {
    "block_out_channels": (32, 64),
    "layers_per_block": 1,
    "cross_attention_dim": 32,
    "attention_head_dim": 8,
    "norm_num_groups": 8,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
}
UPS = {"up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D")}
SDXL = {
    "addition_embed_type": "text_time",
    "addition_time_embed_dim": 8,
    "projection_class_embeddings_input_dim": 32 + 6 * 8,
    "use_linear_projection": True,
    "transformer_layers_per_block": (1, 2),
}


def sdxl_conditions() -> dict[str, Any]:
    return {"added_cond_kwargs": {"text_embeds": torch.randn(2, 32), "time_ids": torch.rand(2, 6) * 512}}


SIZES = sizes_of(__file__)
MODELS: dict[str, Flow] = {
    "unet-2d": flow(
        "UNet2DModel",
        lambda: {"sample": torch.randn(2, 3, 32, 32), "timestep": torch.tensor(11)},
        {"sample": {0: "batch", 2: "height", 3: "width"}},
        **SIZES["unet-2d"],
    ),
    "unet-sd15": flow("UNet2DConditionModel", unet_inputs, UNET_AXES, **UNET, **UPS),
    "unet-sdxl": flow(
        "UNet2DConditionModel",
        lambda: unet_inputs(**sdxl_conditions()),
        UNET_AXES
        | {"added_cond_kwargs.text_embeds": {0: "batch"}, "added_cond_kwargs.time_ids": {0: "batch"}},
        **UNET,
        **UPS,
        **SDXL,
    ),
    "unet-lcm": flow(
        "UNet2DConditionModel",
        lambda: unet_inputs(timestep_cond=torch.randn(2, 16)),
        UNET_AXES | {"timestep_cond": {0: "batch"}},
        **UNET,
        **UPS,
        time_cond_proj_dim=16,
    ),
    "unet-class": flow(
        "UNet2DConditionModel",
        lambda: unet_inputs(class_labels=torch.tensor([1, 2])),
        UNET_AXES | {"class_labels": {0: "batch"}},
        **UNET,
        **UPS,
        num_class_embeds=8,
    ),
    "unet-kandinsky3": flow(
        "Kandinsky3UNet",
        lambda: unet_inputs(
            encoder_hidden_states=torch.randn(2, 7, 64), encoder_attention_mask=torch.ones(2, 7)
        ),
        {},
        **SIZES["unet-kandinsky3"],
    ),
    "unet-stable-cascade": flow(
        "StableCascadeUNet",
        lambda: {
            "sample": torch.randn(2, 16, 8, 8),
            "timestep_ratio": torch.rand(2),
            "clip_text_pooled": torch.randn(2, 1, 32),
        },
        **SIZES["unet-stable-cascade"],
    ),
    "unet-video": flow(
        "UNet3DConditionModel",
        lambda: {
            "sample": torch.randn(1, 4, 3, 16, 16),
            "timestep": torch.tensor([5]),
            "encoder_hidden_states": torch.randn(1, 7, 32),
        },
        {},
        **SIZES["unet-video"],
    ),
    "unet-svd": flow(
        "UNetSpatioTemporalConditionModel",
        lambda: {
            "sample": torch.randn(1, 3, 8, 16, 16),
            "timestep": torch.tensor([5.0]),
            "encoder_hidden_states": torch.randn(1, 1, 32),
            "added_time_ids": torch.rand(1, 3),
        },
        {},
        **SIZES["unet-svd"],
    ),
    "unet-motion": flow(
        "UNetMotionModel",
        lambda: {
            "sample": torch.randn(1, 4, 3, 16, 16),
            "timestep": torch.tensor([5]),
            "encoder_hidden_states": torch.randn(3, 7, 32),  # of each frame
        },
        {},
        block_out_channels=(32, 64),
        layers_per_block=1,
        cross_attention_dim=32,
        num_attention_heads=2,
        norm_num_groups=8,
        motion_num_attention_heads=2,
        down_block_types=("CrossAttnDownBlockMotion", "DownBlockMotion"),
        up_block_types=("UpBlockMotion", "CrossAttnUpBlockMotion"),
    ),
    "uvit-amused": flow(
        "UVit2DModel",
        lambda: {
            "input_ids": torch.randint(0, 60, (2, 8, 8)),
            "encoder_hidden_states": torch.randn(2, 7, 32),
            "pooled_text_emb": torch.randn(2, 32),
            "micro_conds": torch.rand(2, 5) * 512,
        },
        **SIZES["uvit-amused"],
    ),
    # control
    "controlnet": flow(
        "ControlNetModel",
        lambda: unet_inputs(controlnet_cond=torch.randn(2, 3, 128, 128)),
        UNET_AXES | {"controlnet_cond": {0: "batch", 2: "8*height", 3: "8*width"}},
        **UNET,
        conditioning_embedding_out_channels=(16, 16, 16, 16),
    ),
    "controlnet-union": flow(
        "ControlNetUnionModel",
        lambda: unet_inputs(
            controlnet_cond=[torch.randn(2, 3, 128, 128)],
            control_type=torch.tensor([[0.0, 1, 0, 0, 0, 0]] * 2),
            control_type_idx=[1],
            conditioning_scale=[1.0],
            **sdxl_conditions(),
        ),
        {},
        **UNET,
        **SDXL,
        **SIZES["controlnet-union"],
    ),
    "controlnet-xs": flow(
        "UNetControlNetXSModel",
        lambda: unet_inputs(controlnet_cond=torch.randn(2, 3, 128, 128)),
        {},
        **SIZES["controlnet-xs"],
    ),
    "t2i-adapter": Flow(
        lambda: (
            model("T2IAdapter", channels=[32, 64], num_res_blocks=1, downscale_factor=4),
            (torch.randn(2, 3, 64, 64),),
            {},
        ),
        {"x": {0: "batch", 2: "height", 3: "width"}},
        IMAGE_SIZES,
    ),
    "t2i-adapter-light": Flow(
        lambda: (
            model(
                "T2IAdapter",
                channels=[32, 64],
                num_res_blocks=1,
                downscale_factor=4,
                adapter_type="light_adapter",
            ),
            (torch.randn(2, 3, 64, 64),),
            {},
        ),
        {"x": {0: "batch", 2: "height", 3: "width"}},
        IMAGE_SIZES,
    ),
}
