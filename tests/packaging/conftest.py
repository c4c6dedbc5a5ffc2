"""A decoder that several tests make packages of."""

from __future__ import annotations

from pathlib import Path

import pytest

TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": 61,
    "bos_token_id": 1,
    "eos_token_id": None,
    "pad_token_id": 0,
}


def names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.fixture
def decoder(tmp_path: Path) -> Path:
    """A decoder whose second layer attends to 8 positions, with weights that are not small."""
    transformers = pytest.importorskip("transformers")
    import torch

    torch.manual_seed(0)
    kinds = ["full_attention", "sliding_attention"]
    config = transformers.Qwen3Config(
        **TINY,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=64,
        layer_types=kinds,
        sliding_window=8,
        use_sliding_window=True,
    )
    model = transformers.Qwen3ForCausalLM(config).eval()
    for each in model.parameters():
        each.data.mul_(3)
    model.save_pretrained(tmp_path / "decoder")
    return tmp_path / "decoder"
