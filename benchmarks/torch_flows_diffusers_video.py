"""What the rows of ``torch_flows/diffusers_video.models`` use."""

from __future__ import annotations

from typing import Any

import torch


def allegro_places() -> Any:
    from diffusers.models.embeddings import get_3d_rotary_pos_embed_allegro

    times, rows, columns, *grids = get_3d_rotary_pos_embed_allegro(24, ((0, 0), (4, 4)), (4, 4), 3)
    places = torch.cartesian_prod(*(grid.to(torch.int64) for grid in grids))
    return (times, rows, columns), tuple(places.T.reshape(3, 1, -1))
