"""Multi-head attention: megengine.functional.nn.multi_head_attention and its module."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions import modes
from tmconvert.frontends.megengine.adapters.functions.math import reduction
from tmconvert.frontends.megengine.adapters.modules.functional_forms import parameter
from tmconvert.frontends.megengine.adapters.values import cast, is_tensor, rank, reshaped
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir.emitter import Emitter

FUNCTIONS = Table("megengine.functional.nn.")
OPERATORS = Table("opdef.")
MODULES = Table("megengine.module.multiheadattn.")

GIVE_A_MASK = "call megengine.functional.nn.multi_head_attention, or pass a float mask"
OF_1_12_3 = "multi-head attention of MegEngine 1.12.3, which runs on GPUs only, is not supported"


@FUNCTIONS.add("multi_head_attention")
def multi_head_attention(
    g, query, key, value, embed_dim, num_heads, attn_drop, out_drop, io_weight_bias, qproj_size=None,
    kproj_size=None, vproj_size=None, oproj_size=None, qbias=False, kbias=False, vbias=False, obias=False,
    bias_k=None, bias_v=None, add_zero_attn=False, key_padding_mask=None, attn_mask=None, need_weights=False,
    average_attn_weights=False, is_causal=False, maybe_cudnn_style_mask=False, reslink=False, training=True,
):  # fmt: skip
    """Multi-head attention: query [N, L, E], key [N, S, K] and value [N, S, V] to the result [N, L, O].

    The second result are the attention weights, [N * heads, L, S], or None.

    ``io_weight_bias`` holds the matrices of query, key, value and output one after the other, then their
    biases; a projection of size 0 is left out. No dropout, as in inference.
    """
    sizes = [embed_dim if size is None else size for size in (qproj_size, kproj_size, vproj_size, oproj_size)]
    if bias_k is not None or bias_v is not None or add_zero_attn or reslink or maybe_cudnn_style_mask:
        raise Refusal(
            "attention with bias_k, bias_v, add_zero_attn, reslink or cuDNN masks is not supported",
            "MegEngine runs it on GPUs only; write it with matmul and softmax",
        )
    _check(g, (query, key, value), sizes)
    widths = [*(g.type(x).shape[2] for x in (query, key, value)), sizes[2]]
    project = _projections(g, io_weight_bias, widths, sizes, [qbias, kbias, vbias, obias])
    query, key, value = (project(x, i) for i, x in enumerate((query, key, value)))
    whole = not sizes[0]  # every head looks at all of query and key
    queries, keys = (_heads(g, x, 1 if whole else num_heads) for x in (query, key))
    scores = _scores(g, queries, keys, (embed_dim if whole else embed_dim // num_heads) ** -0.5)
    mask = _mask(g, scores, num_heads, attn_mask, key_padding_mask, is_causal)
    weights = g.call("aten::softmax", scores if mask is None else g.call("aten::add", scores, mask), -1)
    output = project(_merged(g, weights, _heads(g, value, num_heads)), 3)
    return [output, _shown(g, weights, num_heads, average_attn_weights) if need_weights else None]


def _check(g: Emitter, tensors: tuple[Any, ...], sizes: list[int]) -> None:
    if any(isinstance(size, bool) for size in sizes):
        raise Refusal(OF_1_12_3)
    if any(rank(g, x) != 3 for x in tensors):
        raise Refusal(f"multi-head attention expects inputs of rank 3 [N, L, E], got {g.type(tensors[0])}")
    if not sizes[2] or (not sizes[0]) != (not sizes[1]):
        raise Refusal(f"attention with projections of the sizes {sizes} is not supported")


def _projections(g: Emitter, flat, widths: list[int], sizes: list[int], biases: list[bool]) -> Any:
    """Returns a function of a tensor and the index of a projection, which applies it."""
    flat, ends = reshaped(g, flat, [-1]), [0]
    count = sum(width * size for width, size in zip(widths, sizes, strict=True))
    count += sum(size for size, has_bias in zip(sizes, biases, strict=True) if has_bias)
    if count != g.type(flat).size:
        raise Refusal(
            f"the projections have {count} weights, but the parameter has {g.type(flat).size} elements"
        )

    def part(size: int) -> Any:
        ends.append(ends[-1] + size)
        return g.call("aten::slice", flat, 0, *ends[-2:], 1)

    weights = [
        g.call("aten::permute", reshaped(g, part(width * size), [width, size]), [1, 0]) if size else None
        for width, size in zip(widths, sizes, strict=True)
    ]
    added = [part(size) if size and has_bias else None for size, has_bias in zip(sizes, biases, strict=True)]

    def project(x, i: int) -> Any:
        return x if weights[i] is None else g.call("aten::linear", x, weights[i], added[i])

    return project


def _heads(g: Emitter, x, heads: int) -> Any:
    """[N, T, E] -> [N, heads, T, E / heads]."""
    batch, length, width = g.type(x).shape
    return g.call("aten::permute", reshaped(g, x, [batch, length, heads, width // heads]), [0, 2, 1, 3])


def _scores(g: Emitter, queries, keys, scale: float) -> Any:
    scaled = g.call("aten::mul", queries, g.constant(scale, g.type(queries).dtype))
    return g.call("aten::matmul", scaled, g.call("aten::permute", keys, [0, 1, 3, 2]))


def _merged(g, weights, values):
    """Concatenates the results of the heads: [N, L, V]."""
    mixed = g.call("aten::permute", g.call("aten::matmul", weights, values), [0, 2, 1, 3])
    batch, length, heads, width = g.type(mixed).shape
    return reshaped(g, mixed, [batch, length, heads * width])


def _mask(g: Emitter, scores, heads: int, attn_mask, key_padding_mask, is_causal: bool) -> Any:
    """Returns the mask added to the scores [N, heads or 1, L, S]; a mask argument overrides ``is_causal``."""
    batch, _, queries, keys = g.type(scores).shape
    dtype = g.type(scores).dtype
    parts = []
    if attn_mask is not None:
        part = _added(g, attn_mask, dtype)
        shape = [batch, heads, queries, keys]
        parts.append(part if rank(g, part) == 2 else reshaped(g, part, shape))
    if key_padding_mask is not None:
        parts.append(reshaped(g, _added(g, key_padding_mask, dtype), [batch, 1, 1, keys]))
    if is_causal and not parts:
        parts.append(g.constant(np.triu(np.full((queries, keys), -np.inf), 1), dtype))
    return parts[0] if len(parts) == 1 else modes.applied(g, "ADD", *parts) if parts else None


def _added(g: Emitter, mask, dtype: np.dtype) -> Any:
    """Converts a bool mask to minus infinity where it is true; other masks are unchanged."""
    if not is_tensor(mask):
        raise Refusal(OF_1_12_3)
    if g.type(mask).dtype.kind != "b":
        return cast(g, mask, dtype)
    return g.call("aten::where", mask, g.constant(-np.inf, dtype), g.constant(0, dtype))


def _shown(g: Emitter, weights, heads: int, average: bool) -> Any:
    """Returns the attention weights [N, heads or 1, L, S] as MegEngine returns them."""
    batch, own, queries, keys = g.type(weights).shape
    if average:
        return reduction("mean")(g, weights, 1)
    if own != heads:
        weights = g.call("aten::expand", weights, [batch, heads, queries, keys])
    return reshaped(g, weights, [batch * heads, queries, keys])


SIZES = ("qproj_size", "kproj_size", "vproj_size", "oproj_size", "qbias", "kbias", "vbias", "obias")


@OPERATORS.add("MultiHeadAttn")
def multi_head_attn(
    g, query, key, value, weights,
    *others, embeding_size, num_heads, sm_scaler, attn_mask_type, tensor_combination_type, **state,
):  # fmt: skip
    """Returns the result, the attention weights, and the workspace."""
    kind = str(tensor_combination_type).upper(), str(attn_mask_type).upper()
    if kind not in (("NONE", "NO_MASK"), ("ONLY_MASK", "USER_DEFINED_MASK")):
        raise Refusal(f"MultiHeadAttn with {' and '.join(kind)} is not supported", GIVE_A_MASK)
    width = embeding_size if not state["qproj_size"] else embeding_size // num_heads
    if not math.isclose(sm_scaler, width**-0.5, rel_tol=1e-5):
        raise Refusal(f"MultiHeadAttn with sm_scaler {sm_scaler} is not supported", "scale the query")
    result = multi_head_attention(
        *(g, query, key, value, embeding_size, num_heads, 0.0, 0.0, weights),
        **{name: state[name] for name in SIZES},
        add_zero_attn=bool(state.get("add_zero_attn")),
        reslink=bool(state.get("reslink")),
        attn_mask=others[0] if others else None,
        need_weights=True,
    )
    return [*result, None, None]


@MODULES.add("MultiHeadAttention")
def multi_head_attention_module(
    g, module, query, key, value, key_padding_mask=None, attn_mask=None, need_weights=False,
    average_attn_weights=False, is_causal=False, maybe_cudnn_style_mask=False,
):  # fmt: skip
    attributes = module.attributes
    if "enable_qproj" in attributes:
        raise Refusal(OF_1_12_3)
    bias = bool(attributes["bias"])
    return multi_head_attention(
        *(g, query, key, value, attributes["embed_dim"], attributes["num_heads"], 0.0, 0.0),
        parameter(g, module, "io_weight_bias"),
        **dict.fromkeys(("qbias", "kbias", "vbias", "obias"), bias),
        bias_k=parameter(g, module, "bias_k"),
        bias_v=parameter(g, module, "bias_v"),
        add_zero_attn=bool(attributes["add_zero_attn"]),
        key_padding_mask=key_padding_mask,
        attn_mask=attn_mask,
        need_weights=bool(need_weights),
        average_attn_weights=bool(average_attn_weights),
        is_causal=bool(is_causal),
        maybe_cudnn_style_mask=bool(maybe_cudnn_style_mask),
    )
