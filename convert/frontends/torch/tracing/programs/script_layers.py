"""Fused layers of attention in scripts, computed by their parts.

PyTorch computes ``nn.TransformerEncoderLayer`` and ``nn.MultiheadAttention`` by one op each where no
gradients are needed; ``torch.jit.trace`` records it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

_OF_PADDING = 1  # the mask_type of a mask (batch, length) of keys


def _heads(x: Tensor, count: int) -> Tensor:
    """(batch, length, width) -> (batch, count, length, width / count)."""
    return x.view(x.size(0), x.size(1), count, x.size(2) // count).transpose(1, 2)


def _projected(query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    if query is key and key is value:
        return F.linear(query, weight, bias).chunk(3, -1)
    parts = zip((query, key, value), weight.chunk(3), bias.chunk(3), strict=True)
    return tuple(F.linear(*part) for part in parts)


def attention(
    query: Tensor, key: Tensor, value: Tensor, width: int, heads: int, weight: Tensor, bias: Tensor,
    last_weight: Tensor, last_bias: Tensor, mask: Tensor | None = None, need_weights: bool = True,
    average_attn_weights: bool = True, mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Computes ``aten::_native_multi_head_attention``: (batch, length, width) of the same type.

    Returns the values, and the weights (batch, length, length) or (batch, heads, length, length).
    """
    q, k, v = (_heads(x, heads) for x in _projected(query, key, value, weight, bias))
    if mask is not None:
        mask = mask.to(torch.bool)
        mask = mask[:, None, None] if mask_type == _OF_PADDING else mask
    if need_weights:
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // heads)
        weights = (scores if mask is None else scores.masked_fill(mask, -math.inf)).softmax(-1)
        mixed = weights @ v
        returned = weights.mean(1) if average_attn_weights else weights
    else:
        mixed = F.scaled_dot_product_attention(q, k, v, None if mask is None else mask.logical_not())
        returned = None
    return F.linear(mixed.transpose(1, 2).flatten(2), last_weight, last_bias), returned


def encoder_layer(
    x: Tensor, width: int, heads: int, weight: Tensor, bias: Tensor, last_weight: Tensor, last_bias: Tensor,
    use_gelu: bool, norm_first: bool, eps: float,
    *of_layers: Tensor, mask: Tensor | None = None, mask_type: int | None = None,
) -> Tensor:  # fmt: skip
    """Computes ``aten::_transformer_encoder_layer_fwd`` of x (batch, length, width).

    ``of_layers`` are the weights and biases of two layer norms, then of two linear layers.
    """
    norms, linears = of_layers[:4], of_layers[4:]

    def attended(x: Tensor) -> Tensor:
        own = (weight, bias, last_weight, last_bias)
        return attention(x, x, x, width, heads, *own, mask, False, mask_type=mask_type)[0]

    def widened(x: Tensor) -> Tensor:
        inner = F.linear(x, *linears[:2])
        return F.linear(F.gelu(inner) if use_gelu else F.relu(inner), *linears[2:])

    for compute, (scale, shift) in ((attended, norms[:2]), (widened, norms[2:])):
        if norm_first:
            x = x + compute(F.layer_norm(x, (width,), scale, shift, eps))
        else:
            x = F.layer_norm(x + compute(x), (width,), scale, shift, eps)
    return x


FUSED: dict[str, Callable[..., Any]] = {
    "aten::_native_multi_head_attention": attention,
    "aten::_transformer_encoder_layer_fwd": encoder_layer,
}
