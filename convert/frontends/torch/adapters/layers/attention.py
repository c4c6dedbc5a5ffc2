"""Scaled dot-product attention, and the ATen kernels that implement it."""

from __future__ import annotations

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.values import SizeFloat, promoted
from tmconvert.ir.symbolic.dims import Dim

ATEN = Table()


@ATEN.add("scaled_dot_product_attention")
def attention(
    g, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False
):
    if dropout_p > 0:
        raise Refusal(
            "scaled_dot_product_attention applies dropout, also in evaluation mode",
            "pass dropout_p=0.0 unless self.training is true",
        )
    if isinstance(scale, (Dim, SizeFloat)):  # a factor of the query
        query, scale = g.call("aten::mul", *promoted(g, query, scale)), 1.0
    return g.call(
        "aten::scaled_dot_product_attention",
        *(query, key, value, attn_mask),
        is_causal=is_causal,
        scale=scale,
        enable_gqa=enable_gqa,
    )


@ATEN.add("_scaled_dot_product_attention_math")
def attention_math(
    g, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, dropout_mask=None,
    *, scale=None, enable_gqa=False,
):  # fmt: skip
    """Attention; its second result, the weights, is used by gradients only."""
    return attention(
        g, query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    ), None


@ATEN.add("_scaled_dot_product_flash_attention_for_cpu")
def attention_flash(g, query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    return attention(g, query, key, value, attn_mask, dropout_p, is_causal, scale=scale), None
