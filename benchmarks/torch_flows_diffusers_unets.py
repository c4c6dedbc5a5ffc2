"""What the rows of ``torch_flows/diffusers_unets.models`` use."""

from __future__ import annotations

from typing import Any

import torch


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
