"""What the rows of ``torch_flows/diffusers_transformers.models`` use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch_flow import Flow
from torch_flow_diffusers import flow

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
