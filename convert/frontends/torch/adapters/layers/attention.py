"""Scaled dot-product attention, and the ATen kernels that implement it."""

from __future__ import annotations

from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import AdapterValue, Table
from tmconvert.frontends.torch.adapters.shapes.sizes import SizeFloat
from tmconvert.frontends.torch.adapters.values import promoted
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import Dim

ATEN = Table()


@ATEN.add("scaled_dot_product_attention")
def attention(
    g: Emitter,
    query: AdapterValue,
    key: AdapterValue,
    value: AdapterValue,
    attn_mask: AdapterValue = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: AdapterValue = None,
    enable_gqa: bool = False,
) -> Any:
    if dropout_p > 0:
        raise Refusal(
            "scaled_dot_product_attention applies dropout, also in evaluation mode",
            "pass dropout_p=0.0 unless the module is training, and run module.eval()",
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
    g: Emitter,
    query: AdapterValue,
    key: AdapterValue,
    value: AdapterValue,
    attn_mask: AdapterValue = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: AdapterValue = None,
    *,
    scale: AdapterValue = None,
    enable_gqa: bool = False,
) -> Any:
    """Attention; its second result, the weights, is used by gradients only."""
    return attention(
        g, query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    ), None


@ATEN.add("_scaled_dot_product_flash_attention_for_cpu")
def attention_flash(
    g: Emitter,
    query: AdapterValue,
    key: AdapterValue,
    value: AdapterValue,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: AdapterValue = None,
    scale: AdapterValue = None,
) -> Any:
    return attention(g, query, key, value, attn_mask, dropout_p, is_causal, scale=scale), None
