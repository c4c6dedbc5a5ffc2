"""Attention and transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tmconvert.errors import UnsupportedError

from .harness import check

QUERY, KEY, VALUE = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 7, 8), torch.randn(2, 4, 7, 6)
attend = F.scaled_dot_product_attention
WAYS: dict[str, Any] = {
    "plain": attend,
    "causal": lambda q, k, v: attend(q, k, v, is_causal=True),
    "scale": lambda q, k, v: attend(q, k, v, scale=0.3),
    "three axes": lambda q, k, v: attend(q[0], k[0], v[0]),
    "grouped": lambda q, k, v: attend(q, k[:, :2], v[:, :2], enable_gqa=True),
    "grouped, causal": lambda q, k, v: attend(q, k[:, :2], v[:, :2], is_causal=True, enable_gqa=True),
    "math": lambda q, k, v: torch.ops.aten._scaled_dot_product_attention_math.default(q, k, v)[0],
    "flash": lambda q, k, v: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(q, k, k)[0],
}


@pytest.mark.parametrize("way", WAYS)
def test_attention(way: str) -> None:
    check(WAYS[way], QUERY, KEY, VALUE)


MASKS = {
    "bools": torch.rand(5, 7) > 0.3,
    "padding": torch.rand(2, 1, 1, 7) > 0.5,
    "numbers": torch.randn(2, 1, 5, 7),
}


@pytest.mark.parametrize("mask", MASKS)
def test_masks(mask: str) -> None:
    check(lambda q, k, v, m: attend(q, k, v, attn_mask=m), QUERY, KEY, VALUE, MASKS[mask])


def test_dropout_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="applies dropout"):
        check(lambda q: attend(q, q, q, dropout_p=0.1), QUERY)


HEADS: list[dict[str, Any]] = [
    {},
    {"batch_first": True},
    {"bias": False},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
]


@pytest.mark.parametrize("options", HEADS, ids=str)
def test_heads(options: dict[str, Any]) -> None:
    module = nn.MultiheadAttention(8, 2, **options).eval()
    x, y = torch.randn(2, 5, 8), torch.randn(2, 7, 8)
    if not options.get("batch_first"):
        x, y = x.transpose(0, 1), y.transpose(0, 1)
    padding = torch.zeros(2, 7, dtype=torch.bool)
    padding[0, 4:] = True
    check(lambda a, b: module(a, b, b), x, y)
    check(
        lambda a, b: (module(a, a, a, need_weights=False), module(a, b, b, average_attn_weights=False)), x, y
    )
    check(lambda a, b, p: module(a, b, b, key_padding_mask=p), x, y, padding, second=[x, y, padding.flip(0)])
    check(lambda a, b, p: module(a, b, b, attn_mask=p), x, y, torch.randn(5, 7))
    check(lambda a, b, p: module(a, b, b, attn_mask=p), x, y, torch.randn(4, 5, 7))


def test_heads_of_other_widths_and_unbatched() -> None:
    module = nn.MultiheadAttention(8, 2, kdim=6, vdim=4).eval()
    check(module, torch.randn(5, 2, 8), torch.randn(7, 2, 6), torch.randn(7, 2, 4))
    plain = nn.MultiheadAttention(8, 2).eval()
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    check(
        lambda a: plain(a, a, a, attn_mask=causal, is_causal=True, need_weights=False)[0], torch.randn(5, 8)
    )


LAYERS: list[dict[str, Any]] = [
    {},
    {"batch_first": True, "activation": F.gelu},
    {"norm_first": True, "activation": "gelu"},
    {"bias": False},
]
SEQUENCES = torch.randn(2, 5, 8)
PADDING = torch.tensor([[False, False, False, True, True], [False] * 5])
OTHERS = [PADDING.flip(0), PADDING.flip(1)]  # at the end, and in front


@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_layers(options: dict[str, Any]) -> None:
    x = SEQUENCES if options.get("batch_first") else SEQUENCES.transpose(0, 1)
    encoder = nn.TransformerEncoderLayer(8, 2, 16, **options).eval()
    decoder = nn.TransformerDecoderLayer(8, 2, 16, **options).eval()
    check(encoder, x)
    check(lambda a, p: encoder(a, src_key_padding_mask=p), x, PADDING, second=[x, OTHERS[0]])
    check(lambda a, b: decoder(a, b), x, x.flip(1))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("norm", [None, nn.LayerNorm(8, bias=True)])
def test_encoders_give_zeros_at_padding_at_the_end(norm: nn.Module | None) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, norm=norm).eval()
    if norm is not None:
        norm.bias.data.normal_()

    def padded(x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        return encoder(x, src_key_padding_mask=padding)

    for other in OTHERS:
        check(padded, SEQUENCES, PADDING, second=[SEQUENCES.flip(0), other])
    assert encoder.norm is norm
    check(encoder, SEQUENCES)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_transformers() -> None:
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    check(lambda a: encoder(a, mask=causal, is_causal=True), SEQUENCES)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2, norm=nn.LayerNorm(8)).eval()
    check(lambda a, b: decoder(a, b, tgt_mask=causal), torch.randn(5, 2, 8), torch.randn(7, 2, 8))
    both = nn.Transformer(8, 2, 1, 1, 16).eval()
    check(
        lambda a, b: both(a, b, tgt_mask=nn.Transformer.generate_square_subsequent_mask(b.size(0))),
        torch.randn(7, 2, 8),
        torch.randn(5, 2, 8),
    )
