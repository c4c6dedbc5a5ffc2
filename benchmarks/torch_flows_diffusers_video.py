"""Transformers of ``diffusers`` that denoise video: name -> flow."""

from __future__ import annotations

from typing import Any

import torch
from torch_flow import Flow, sizes_of
from torch_flow_diffusers import HEADS, flow, times, video


def allegro_places() -> Any:
    from diffusers.models.embeddings import get_3d_rotary_pos_embed_allegro

    times, rows, columns, *grids = get_3d_rotary_pos_embed_allegro(24, ((0, 0), (4, 4)), (4, 4), 3)
    places = torch.cartesian_prod(*(grid.to(torch.int64) for grid in grids))
    return (times, rows, columns), tuple(places.T.reshape(3, 1, -1))


SIZES = sizes_of(__file__)
MODELS: dict[str, Flow] = {
    "wan": flow(
        "WanTransformer3DModel",
        lambda: {
            "hidden_states": video(2),
            "timestep": times(),
            "encoder_hidden_states": torch.randn(2, 7, 64),
        },
        {
            "hidden_states": {0: "batch", 2: "time", 3: "height", 4: "width"},
            "timestep": {0: "batch"},
            "encoder_hidden_states": {0: "batch", 1: "sequence"},
        },
        **HEADS,
        **SIZES["wan"],
    ),
    "hunyuan-video": flow(
        "HunyuanVideoTransformer3DModel",
        lambda: {
            "hidden_states": video(1, 4),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 64),
            "encoder_attention_mask": torch.ones(1, 7),
            "pooled_projections": torch.randn(1, 32),
            "guidance": torch.tensor([1.0]),
        },
        {},
        **SIZES["hunyuan-video"],
    ),
    "cogvideox": flow(
        "CogVideoXTransformer3DModel",
        lambda: {
            "hidden_states": torch.randn(1, 3, 4, 8, 8),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 64),
        },
        {},
        **HEADS,
        **SIZES["cogvideox"],
    ),
    "ltx": flow(
        "LTXVideoTransformer3DModel",
        lambda: {
            "hidden_states": torch.randn(1, 48, 16),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 32),
            "encoder_attention_mask": torch.ones(1, 7),
            "num_frames": 3,
            "height": 4,
            "width": 4,
        },
        {},
        **HEADS,
        **SIZES["ltx"],
    ),
    "mochi": flow(
        "MochiTransformer3DModel",
        lambda: {
            "hidden_states": video(1, 4),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 64),
            "encoder_attention_mask": torch.ones(1, 7, dtype=torch.bool),
        },
        {},
        **SIZES["mochi"],
    ),
    "allegro": flow(
        "AllegroTransformer3DModel",
        lambda: {
            "hidden_states": video(1, 4),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 64),
            "encoder_attention_mask": torch.ones(1, 7),
            "attention_mask": torch.ones(1, 3, 8, 8),
            "image_rotary_emb": allegro_places(),
        },
        {},
        **SIZES["allegro"],
    ),
    "latte": flow(
        "LatteTransformer3DModel",
        lambda: {
            "hidden_states": video(1, 4),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 64),
        },
        {},
        **HEADS,
        **SIZES["latte"],
    ),
    "cosmos": flow(
        "CosmosTransformer3DModel",
        lambda: {
            "hidden_states": video(1, 4),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 64),
            "padding_mask": torch.zeros(1, 1, 8, 8),
        },
        {},
        **SIZES["cosmos"],
    ),
    "sana-video": flow(
        "SanaVideoTransformer3DModel",
        lambda: {
            "hidden_states": video(1, 4),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 64),
        },
        {},
        **SIZES["sana-video"],
    ),
    "kandinsky5": flow(
        "Kandinsky5Transformer3DModel",
        lambda: {
            "hidden_states": torch.randn(1, 3, 8, 8, 4),
            "encoder_hidden_states": torch.randn(1, 7, 64),
            "timestep": times(1),
            "pooled_projections": torch.randn(1, 32),
            "visual_rope_pos": [torch.arange(3), torch.arange(4), torch.arange(4)],
            "text_rope_pos": torch.arange(7),
        },
        {},
        **SIZES["kandinsky5"],
    ),
}
