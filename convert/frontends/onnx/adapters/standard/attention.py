"""Attention and rotary embeddings of ai.onnx."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.shared_attention import (
    AttentionCall,
    append_to_past,
    causal_mask,
    merge_heads,
    positions,
    rotary,
    rows_of,
    split_heads,
)
from tmconvert.frontends.onnx.adapters.values import cast, rank, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

OPERATORS = OperatorTable()


@OPERATORS.add("Attention")
def attention(
    g, Q, K, V, attn_mask=None, past_key=None, past_value=None, nonpad_kv_seqlen=None,
    *, is_causal=0, kv_num_heads=0, left_window_size=-1, q_num_heads=0, qk_matmul_output_mode=0,
    right_window_size=-1, scale=None, softcap=0.0, softmax_precision=1,
):  # fmt: skip
    is_flat = rank(g, Q) == 3
    if is_flat:
        Q = split_heads(g, Q, q_num_heads)
        K, V = (split_heads(g, each, kv_num_heads) for each in (K, V))
    key, value = append_to_past(g, past_key, K), append_to_past(g, past_value, V)
    width = g.type(Q).shape[-1]
    call = AttentionCall(Q, key, value, 1 / math.sqrt(width) if scale is None else scale, [], [], softcap)
    offset = _offset(g, call, past_key, nonpad_kv_seqlen)
    if is_causal:
        call.is_causal = offset is None
        call.allowed += [] if offset is None else [_causal(g, call, offset)]
    call.allowed += _window(g, call, offset, left_window_size, right_window_size)
    if nonpad_kv_seqlen is not None:
        ends = reshaped(g, cast(g, nonpad_kv_seqlen, np.int64), [-1, 1, 1, 1])
        call.allowed.append(g.call("aten::lt", positions(g, g.type(key).shape[2]), ends))
    if attn_mask is not None:
        mask = _lengthened(g, attn_mask, g.type(key).shape[2])
        (call.allowed if g.type(mask).dtype == bool else call.biases).append(mask)
    made = call.result(g)
    scores = (
        lambda: call.scores(g, is_capped=False),
        lambda: call.scores(g),
        lambda: call.masked_scores(g),
        lambda: call.weights(g),
    )
    if qk_matmul_output_mode not in range(4):
        raise Refusal(f"qk_matmul_output_mode {qk_matmul_output_mode} is unknown")
    return merge_heads(g, made) if is_flat else made, key, value, scores[qk_matmul_output_mode]


def _offset(g: Emitter, call: AttentionCall, past, lengths) -> Any:
    """Returns how many keys are before the first query: None for none, a number, or [N, 1, 1, 1]."""
    if past is not None:
        return g.type(past).shape[2]
    if lengths is None:
        return None
    ends = Term(g, reshaped(g, cast(g, lengths, np.int64), [-1, 1, 1, 1]))
    return ends - ends.like(g.type(call.query).shape[2])


def _causal(g: Emitter, call: AttentionCall, offset) -> Any:
    return causal_mask(g, g.type(call.query).shape[2], g.type(call.key).shape[2], offset)


def _window(g: Emitter, call: AttentionCall, offset, left: int, right: int) -> list[Any]:
    """Returns masks of keys that are at most so far to the left or the right of a query."""
    made = []
    queries, keys = g.type(call.query).shape[2], g.type(call.key).shape[2]
    query = Term(g, reshaped(g, positions(g, queries), [queries, 1]))
    if offset is not None:
        query = query + (offset if isinstance(offset, Term) else query.like(offset))
    distance = query - Term(g, positions(g, keys))
    if left >= 0:
        made.append((distance <= left).value)
    if right >= 0:
        made.append((distance >= -right).value)
    return made


def _lengthened(g, mask, keys):
    """A mask that has fewer keys hides the others."""
    axis = rank(g, mask) - 1
    missing = keys - g.type(mask).shape[axis]
    if not missing:
        return mask
    shape = [*g.type(mask).shape[:axis], missing]
    dtype = g.type(mask).dtype
    hidden = g.call("aten::expand", g.constant(-np.inf if dtype.kind == "f" else False, dtype), shape)
    return g.call("aten::cat", [mask, hidden], axis)


@OPERATORS.add("RotaryEmbedding")
def rotary_embedding(
    g, X, cos_cache, sin_cache, position_ids=None, *, interleaved=0, num_heads=0, rotary_embedding_dim=0
):
    """Rotates the features of [N, H, L, E] or [N, L, H E] by the angles of their positions."""
    tables = [cos_cache, sin_cache]
    if position_ids is not None:
        tables = [rows_of(g, table, position_ids) for table in tables]
    if rank(g, X) == 4:
        cos, sin = (_with_axis(g, table, 1) for table in tables)
        width = rotary_embedding_dim or g.type(X).shape[3]
        return rotary(g, X, cos, sin, width, bool(interleaved))
    batch, length, features = g.type(X).shape
    if not num_heads or features % num_heads:
        raise Refusal(f"{g.type(X)} cannot be split into {num_heads} heads")
    apart = reshaped(g, X, [batch, length, num_heads, features // num_heads])
    cos, sin = (_with_axis(g, table, 2) for table in tables)
    width = rotary_embedding_dim or features // num_heads
    return reshaped(g, rotary(g, apart, cos, sin, width, bool(interleaved)), [batch, length, features])


def _with_axis(g: Emitter, table, axis: int) -> Any:
    shape = list(g.type(table).shape)
    return reshaped(g, table, [*shape[:axis], 1, *shape[axis:]])
