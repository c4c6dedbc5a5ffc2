"""Attention operators of com.microsoft."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.qparams import dequantized
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
from tmconvert.frontends.onnx.adapters.values import cast, known_numbers, rank, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

OPERATORS = OperatorTable("com.microsoft")
LARGEST = 1 << 24  # elements of indices that are stored
_UNUSED = (0, -1, "", "NONE")  # values of attributes that ask for nothing
HIDDEN = -10000.0  # what is added to scores of keys that a mask hides


@OPERATORS.add("Attention")
def attention(
    g, input, weights, bias=None, mask_index=None, past=None, attention_bias=None, past_sequence_length=None,
    *, do_rotary=0, mask_filter_value=HIDDEN, num_heads, past_present_share_buffer=0, qkv_hidden_sizes=None,
    rotary_embedding_dim=0, scale=0.0, unidirectional=0,
):  # fmt: skip
    """Self-attention of [N, L, I] with one matrix for queries, keys and values."""
    if do_rotary or past_present_share_buffer:
        raise Refusal("Attention with rotary embeddings or a shared buffer is not supported")
    made = g.call("aten::matmul", input, weights)
    made = made if bias is None else g.call("aten::add", made, bias)
    width = g.type(made).shape[2]
    sizes = list(qkv_hidden_sizes or [width // 3] * 3)
    parts = [split_heads(g, part, num_heads) for part in g.call("aten::split_with_sizes", made, sizes, 2)]
    query, key, value = parts
    if past is not None:
        key, value = (
            append_to_past(g, g.call("aten::select", past, 0, place), new)
            for place, new in enumerate((key, value))
        )
    call = AttentionCall(query, key, value, scale or 1 / math.sqrt(g.type(query).shape[3]), [], [])
    call.biases += _masked(g, call, mask_index, mask_filter_value)
    call.biases += [] if attention_bias is None else [attention_bias]
    if unidirectional:
        _look_back(g, call, None if past is None else g.type(past).shape[3])

    def present() -> Any:
        both = [reshaped(g, each, [1, *g.type(each).shape]) for each in (key, value)]
        return g.call("aten::cat", both, 0)

    return merge_heads(g, call.result(g)), present


@OPERATORS.add("QAttention")
def qattention(
    g, input, weight, bias, input_scale, weight_scale, mask_index=None, input_zero_point=None,
    weight_zero_point=None, past=None,
    *, num_heads, **attributes,
):  # fmt: skip
    """Attention of integers, of which the products with the weight are quantized."""
    given = dequantized(g, input, input_scale, input_zero_point)
    matrix = dequantized(g, weight, weight_scale, weight_zero_point, 1)
    return attention(g, given, matrix, bias, mask_index, past, num_heads=num_heads, **attributes)


def _look_back(g: Emitter, call: AttentionCall, past) -> None:
    """Hides the keys after a query, before whose first one there are ``past`` keys."""
    if past is None:
        call.is_causal = True
    else:
        queries, keys = g.type(call.query).shape[2], g.type(call.key).shape[2]
        call.allowed.append(causal_mask(g, queries, keys, past))


def _masked(g: Emitter, call: AttentionCall, mask, value: float) -> list[Any]:
    """Returns what a mask adds to the scores. It has lengths [N], or 1 for keys that are seen: [N, S],
    [N, L, S] or [N, 1, L, S].
    """
    if mask is None:
        return []
    batch, keys = g.type(call.query).shape[0], g.type(call.key).shape[2]
    shape = list(g.type(mask).shape)
    if len(shape) == 1:
        if shape[0] != batch:
            raise Refusal("a mask that gives the start and end of each sequence is not supported")
        ends = reshaped(g, cast(g, mask, np.int64), [batch, 1])
        seen = g.call("aten::lt", positions(g, keys), ends)
        shape = [batch, keys]
    else:
        seen = g.call("aten::gt", cast(g, mask, np.int32), g.constant(0, np.int32))
    if len(shape) == 2:
        seen = reshaped(g, seen, [shape[0], 1, 1, shape[1]])
    elif len(shape) == 3:
        seen = reshaped(g, seen, [shape[0], 1, *shape[1:]])
    if g.type(seen).shape[-1] != keys:
        raise Refusal(f"the mask {g.type(mask)} does not fit {keys} keys")
    dtype = g.type(call.query).dtype
    return [g.call("aten::where", seen, g.constant(0, dtype), g.constant(value, dtype))]


@OPERATORS.add("MultiHeadAttention")
def multi_head_attention(
    g, query, key=None, value=None, bias=None, key_padding_mask=None, attention_bias=None, past_key=None,
    past_value=None, past_sequence_length=None, cache_indirection=None,
    *, mask_filter_value=HIDDEN, num_heads, scale=0.0, unidirectional=0,
):  # fmt: skip
    if past_sequence_length is not None or cache_indirection is not None:
        raise Refusal("MultiHeadAttention with a shared buffer is not supported")
    q, k, v = _heads(g, query, key, value, bias, num_heads)
    k, v = append_to_past(g, past_key, k), append_to_past(g, past_value, v)
    call = AttentionCall(q, k, v, scale or 1 / math.sqrt(g.type(q).shape[3]), [], [])
    call.biases += _masked(g, call, key_padding_mask, mask_filter_value)
    call.biases += [] if attention_bias is None else [attention_bias]
    if unidirectional:
        _look_back(g, call, None if past_key is None else g.type(past_key).shape[2])
    return merge_heads(g, call.result(g)), k, v, lambda: call.scores(g)


def _heads(g: Emitter, query, key, value, bias, heads: int) -> list[Any]:
    """Returns query, key and value as [N, H, L, E], of tensors that may be packed."""
    if rank(g, query) == 5:  # [N, L, H, 3, E]
        parts = [g.call("aten::select", query, 3, place) for place in range(3)]
    elif key is not None and rank(g, key) == 5:  # [N, S, H, 2, E]
        parts = [query, *(g.call("aten::select", key, 3, place) for place in range(2))]
    elif key is None or value is None:
        raise Refusal("MultiHeadAttention has no key or no value")
    else:
        parts = [query, key, value]
    rows, start = [], 0
    for part in parts:
        if rank(g, part) == 4 and part not in (key, value):  # [N, L, H, E]
            batch, length, count, width = g.type(part).shape
            part = reshaped(g, part, [batch, length, count * width])
        if bias is not None and rank(g, part) == 3:
            size = g.type(part).shape[2]
            part = g.call("aten::add", part, g.call("aten::slice", bias, 0, start, start + size, 1))
            start += size
        rows.append(part if rank(g, part) == 4 else split_heads(g, part, heads))
    return rows


@OPERATORS.add("GroupQueryAttention")
def group_query_attention(
    g, query, key=None, value=None, past_key=None, past_value=None, seqlens_k=None,
    total_sequence_length=None, cos_cache=None, sin_cache=None, position_ids=None, attention_bias=None,
    head_sink=None,
    *, causal=1, do_rotary=0, kv_num_heads, local_window_size=-1, num_heads, rotary_interleaved=0, scale=0.0,
    smooth_softmax=0, softcap=0.0, **others,
):  # fmt: skip
    """Attention with a cache that grows by the keys of each step; all sequences have the same length."""
    if head_sink is not None or smooth_softmax > 0 or any(each not in _UNUSED for each in others.values()):
        what = "head_sink, smooth_softmax or a quantized cache"
        raise Refusal(f"GroupQueryAttention with {what} is not supported")
    if key is None or value is None:
        query, key, value = _unpacked(g, query, num_heads, kv_num_heads)
    q, k, v = (
        split_heads(g, each, heads)
        for each, heads in ((query, num_heads), (key, kv_num_heads), (value, kv_num_heads))
    )
    past = 0 if past_key is None else g.type(past_key).shape[2]
    if do_rotary:
        places = position_ids
        if places is None:
            row = Term(g, positions(g, g.type(q).shape[2]))
            places = reshaped(g, (row + past if past else row).value, [1, -1])
        q, k = (_rotated(g, each, places, cos_cache, sin_cache, bool(rotary_interleaved)) for each in (q, k))
    if past:
        k, v = append_to_past(g, past_key, k), append_to_past(g, past_value, v)
    call = AttentionCall(q, k, v, scale or 1 / math.sqrt(g.type(q).shape[3]), [], [], softcap)
    queries, keys = g.type(q).shape[2], g.type(k).shape[2]
    if causal:
        call.allowed.append(causal_mask(g, queries, keys, past or None))
    if local_window_size > 0:
        call.allowed.append(_window(g, queries, keys, past, local_window_size))
    if seqlens_k is not None:
        ends = reshaped(g, cast(g, seqlens_k, np.int64), [-1, 1, 1, 1])
        call.allowed.append(g.call("aten::le", positions(g, keys), ends))
    call.biases += [] if attention_bias is None else [attention_bias]
    return merge_heads(g, call.result(g)), k, v


def _window(g: Emitter, queries: Any, keys: Any, past: Any, size: int) -> Any:
    """Returns the mask [queries, keys] of the ``size`` keys up to each query, after ``past`` keys."""
    row = Term(g, reshaped(g, positions(g, queries), [queries, 1]))
    distance = (row + past if past else row) - Term(g, positions(g, keys))
    return (distance < size).value


def _unpacked(g: Emitter, packed, heads: int, key_heads: int) -> list[Any]:
    width = g.type(packed).shape[2] // (heads + 2 * key_heads)
    sizes = [heads * width, key_heads * width, key_heads * width]
    return list(g.call("aten::split_with_sizes", packed, sizes, 2))


def _rotated(g: Emitter, x, places, cos, sin, interleaved: bool) -> Any:
    """Rotates [N, H, L, E] by the angles of positions [N or 1, L]."""
    tables = [rows_of(g, table, places) for table in (cos, sin)]
    batch, length, half = g.type(tables[0]).shape
    c, s = (reshaped(g, table, [batch, 1, length, half]) for table in tables)
    return rotary(g, x, c, s, 2 * half, interleaved)


@OPERATORS.add("RotaryEmbedding")
def rotary_embedding(
    g, input, position_ids, cos_cache, sin_cache,
    *, interleaved=0, is_packed_batching=0, num_heads=0, rotary_embedding_dim=0, scale=1.0,
):  # fmt: skip
    """Rotates [N, L, H E] or [N, H, L, E]; ``position_ids`` is the first position, or has all [N, L]."""
    if is_packed_batching:
        raise Refusal("RotaryEmbedding of packed batches is not supported")
    is_flat = rank(g, input) == 3
    heads = num_heads
    if is_flat and not heads:
        width = rotary_embedding_dim or 2 * g.type(cos_cache).shape[1]
        heads = g.type(input).shape[2] // width
    x = split_heads(g, input, heads) if is_flat else input
    places = position_ids
    if rank(g, places) < 2:
        row = Term(g, positions(g, g.type(x).shape[2]))
        first = Term(g, reshaped(g, cast(g, places, np.int64), [1]))
        places = reshaped(g, (row + first).value, [1, -1])
    made = _rotated(g, x, places, cos_cache, sin_cache, bool(interleaved))
    return merge_heads(g, made) if is_flat else made


@OPERATORS.add("RelativePositionBias")
def relative_position_bias(g, bias_table, query_length, key_length, *, is_bidirectional=0, max_distance):
    """[1, H, L, S]: the biases of T5, by buckets of the distance of a key from a query."""
    queries, keys = (
        int(known_numbers(g, each, "the length of RelativePositionBias").reshape(-1)[0])
        for each in (query_length, key_length)
    )
    if not 0 < queries * keys <= LARGEST:
        raise Refusal(f"RelativePositionBias of {queries} queries and {keys} keys")
    count = g.type(bias_table).shape[0]
    distance = np.arange(queries)[:, None] - np.arange(keys)[None, :]
    base = np.zeros_like(distance)
    if is_bidirectional:
        count //= 2
        base = np.where(distance < 0, count, 0)
        distance = np.abs(distance)
    else:
        distance = np.maximum(distance, 0)
    exact = count // 2
    with np.errstate(divide="ignore"):
        far = exact + np.log(distance / exact) / math.log(max_distance / exact) * (count - exact)
    bucket = base + np.where(distance < exact, distance, np.minimum(far, count - 1)).astype(np.int64)
    rows = g.call("aten::index_select", bias_table, 0, g.constant(bucket.reshape(-1)))
    made = reshaped(g, rows, [1, queries, keys, g.type(bias_table).shape[1]])
    return g.call("aten::permute", made, [0, 3, 1, 2])
