"""flex_attention with mask and score functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

import tmconvert

from .harness import assert_close, check, run_onnx

Q, K, V = (torch.randn(2, 4, 6, 8, generator=torch.Generator().manual_seed(seed)) for seed in range(3))
BIAS = torch.linspace(-1, 1, 4 * 6 * 6).reshape(4, 6, 6)
SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])


@cache
def window() -> BlockMask:
    """A mask; not at the import of this module, since PyTorch then imports its compiler."""
    return create_block_mask(lambda b, h, i, j: (i >= j) & (i - j < 3), None, None, 6, 6, device="cpu")


@cache
def nothing_first() -> BlockMask:
    return create_block_mask(lambda b, h, i, j: i > j, None, None, 6, 6, device="cpu")


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    length = q.shape[2]
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length, device="cpu")
    return flex_attention(q, k, v, block_mask=mask)


CASES: dict[str, Callable[..., Any]] = {
    "plain": flex_attention,
    "scale": lambda q, k, v: flex_attention(q, k, v, scale=0.2),
    "grouped heads": lambda q, k, v: flex_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
    "positions": lambda q, k, v: flex_attention(
        q, k, v, score_mod=lambda s, b, h, i, j: s + (i - j) * SLOPES[h]
    ),
    "table": lambda q, k, v: flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + BIAS[h, i, j]),
    "rows of a table": lambda q, k, v: flex_attention(
        q, k, v, score_mod=lambda s, b, h, i, j: s + BIAS[h].sum(0)[i]
    ),
    "soft cap": lambda q, k, v: flex_attention(
        q, k, v, score_mod=lambda s, b, h, i, j: 5 * torch.tanh(s / 5), block_mask=window()
    ),
    "mask": lambda q, k, v: flex_attention(q, k, v, block_mask=window()),
    "row without keys": lambda q, k, v: flex_attention(q, k, v, block_mask=nothing_first()),
    "causal": causal,
    "logsumexp": lambda q, k, v: flex_attention(q, k, v, block_mask=window(), return_lse=True),
}


@pytest.mark.parametrize("name", CASES)
def test_flex_attention(name: str) -> None:
    check(CASES[name], Q, K, V, tflite=name == "positions")


@pytest.mark.slow
def test_masks_of_the_data():
    def documents(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        mask = create_block_mask(lambda b, h, i, j: ids[b, i] == ids[b, j], 2, None, 6, 6, device="cpu")
        return flex_attention(q, k, v, block_mask=mask)

    check(documents, Q, K, V, torch.tensor([[0, 0, 1, 1, 1, 2], [0, 1, 1, 1, 2, 2]]))


@pytest.mark.slow
def test_dynamic_sizes_stay_dynamic(tmp_path: Path) -> None:
    def model(q: torch.Tensor) -> Any:
        return flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s - (i - j).abs() * SLOPES[h])

    traced = tmconvert.trace(model, Q, dynamic_shapes={"q": {0: "batch", 2: "length"}})
    assert traced.notes == []
    tmconvert.to_onnx(traced, tmp_path / "model.onnx")
    for shape in ((2, 4, 6, 8), (1, 4, 3, 8), (3, 4, 9, 8)):
        x = torch.randn(shape)
        assert_close(
            "ONNX Runtime", run_onnx(tmp_path / "model.onnx", [x.numpy()]), [model(x).numpy()], [], None
        )
