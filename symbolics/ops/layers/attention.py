"""aten::scaled_dot_product_attention: softmax(query key^T scale + mask) value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.expr import Constant
from tmconvert.ir.node import TensorNode
from tmconvert.ir.symbolic.clamps import may_be_empty
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.indices import numbers
from tmconvert.symbolics.op import FLOATS, Op, Tensor, boolean, number
from tmconvert.symbolics.traits import MultiplyAccumulates

Array = np.ndarray
LOWEST = np.finfo(np.float32).min / 2  # below it is what stands for -inf in masks


def _result(
    query: TensorType, key: TensorType, value: TensorType, attn_mask: TensorType | None, **options: Any
) -> TensorType:
    if min(query.rank, key.rank, value.rank) < 2 or len({query.dtype, key.dtype, value.dtype}) > 1:
        raise ValueError(f"query {query}, key {key} and value {value} are not matrices of one type")
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ValueError(f"query {query}, key {key} and value {value} do not fit each other")
    if attn_mask is not None and (
        options["is_causal"] or attn_mask.dtype not in (np.dtype(bool), query.dtype)
    ):
        raise ValueError(
            f"the mask {attn_mask} must be bool or {query.dtype}, and not combined with is_causal"
        )
    batches = [type_.shape[:-2] for type_ in (query, key, value)]
    if options["enable_gqa"]:
        batches = batches[:1]
    return TensorType(query.dtype, (*broadcast_shapes(*batches), query.shape[-2], value.shape[-1]))


def _multiply_accumulates(operands: Sequence[Sequence[int]], result: Sequence[int]) -> int:
    query, key, value = operands[:3]
    return math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


attention = Op(
    "aten::scaled_dot_product_attention",
    args=[
        Tensor("query", FLOATS), Tensor("key", FLOATS), Tensor("value", FLOATS),
        Tensor("attn_mask", (*FLOATS, "bool"), optional=True), number("dropout_p", 0.0),
        boolean("is_causal", False), number("scale", None), boolean("enable_gqa", False),
    ],
    result=_result,
    traits=[MultiplyAccumulates(_multiply_accumulates)],
)  # fmt: skip


def _causal(queries: int, keys: int) -> Array:
    """Causal mask: a query attends to keys up to its own position."""
    return np.tril(np.ones((queries, keys), bool))


def _causal_mask(g: Any, queries: int, keys: int) -> Any:
    """The causal mask as a value of ``g``, computed at runtime if a size is symbolic."""
    if not is_symbolic([queries, keys]):
        return g.constant(_causal(queries, keys))
    query = g.call("aten::reshape", numbers(g, 0, queries), [queries, 1])
    return g.call("aten::ge", query, numbers(g, 0, keys))


def _scale(width: int, scale: float | None) -> float:
    return 1 / math.sqrt(width) if scale is None else scale


@attention.reference
def scaled_dot_product_attention_ref(
    query: Array, key: Array, value: Array, attn_mask: Array | None, dropout_p: float, is_causal: bool,
    scale: float | None, enable_gqa: bool,
) -> Array:  # fmt: skip
    """Shapes: query [..., L, E], key [..., S, E], value [..., S, V] -> [..., L, V].

    There is no dropout, as in inference. A query without an allowed key returns zeros. Source:
    torch.nn.functional.scaled_dot_product_attention. With ``enable_gqa`` each head of key and value is used
    by several heads of query.
    """
    dtype, wide = query.dtype, np.promote_types(query.dtype, np.float32)
    query, key, value = (array.astype(wide) for array in (query, key, value))
    if enable_gqa:
        key, value = (np.repeat(array, query.shape[-3] // array.shape[-3], -3) for array in (key, value))
    scores = query @ key.swapaxes(-1, -2) * np.array(_scale(query.shape[-1], scale), wide)
    mask = _causal(*scores.shape[-2:]) if is_causal else attn_mask
    if mask is not None:
        scores = np.where(mask, scores, -np.inf).astype(wide) if mask.dtype == bool else scores + mask
    highest = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - highest)
    weights = np.where(highest == -np.inf, 0, weights / weights.sum(-1, keepdims=True)).astype(wide)
    return (weights @ value).astype(dtype)


# ---- one operator, from opset 23 on


@attention.native_where("onnx")
def is_expressed_by_attention(
    query: TensorNode, key: TensorNode, value: TensorNode, attn_mask: TensorNode | None, **options: Any
) -> bool:
    """Whether ONNX Runtime computes a call by Attention as PyTorch does.

    Its kernels take four axes without broadcasting between query, key and value, and no empty ones; in
    float16 they sum in float16. A query whose mask has only the lowest number returns zeros there, but the
    mean of the values in PyTorch, so that masks of floats are decomposed unless they are known.
    """
    shapes = [node.type.shape for node in (query, key, value)]
    if any(len(shape) != 4 for shape in shapes) or query.type.dtype == np.float16:
        return False
    if any(extent == 0 or may_be_empty(extent) for shape in shapes for extent in shape):
        return False
    (batch, heads, *_), (key_batch, key_heads, *_), (value_batch, value_heads, *_) = shapes
    if not batch == key_batch == value_batch or key_heads != value_heads:
        return False
    if heads != key_heads and not options["enable_gqa"]:
        return False
    if options["scale"] is not None and options["scale"] <= 0:  # of which Attention takes the root
        return False
    if attn_mask is None or attn_mask.type.rank < 2:
        return attn_mask is None
    known = attn_mask.expr.value if isinstance(attn_mask.expr, Constant) else None
    return attn_mask.type.dtype == bool or (known is not None and bool(np.any(known > LOWEST, -1).all()))


@attention.onnx(since=23)
def scaled_dot_product_attention_onnx23(
    g, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
):
    """Below opset 25 ONNX Runtime does not broadcast the queries and keys of a mask."""
    if attn_mask is not None and g.graph.version < 25:
        shape = (*attn_mask.shape[:-2], query.shape[-2], key.shape[-2])
        if attn_mask.shape != shape:
            attn_mask = g.op("Expand", attn_mask, g.ints(shape), shape=shape)
    options = {"scale": None if scale is None else float(scale), "is_causal": int(is_causal) or None}
    return g.op("Attention", query, key, value, attn_mask, **options)


@attention.decompose
def scaled_dot_product_attention_softmax(
    g, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
):
    width, dtype = g.type(query).shape[-1], g.type(query).dtype
    if enable_gqa:
        key, value = (_repeated(g, x, g.type(query).shape[-3]) for x in (key, value))
    order = list(range(g.type(key).rank))
    columns = g.call("aten::permute", key, [*order[:-2], order[-1], order[-2]])
    factor = g.constant(_scale(width, scale), dtype)
    scores = g.call("aten::matmul", g.call("aten::mul", query, factor), columns)
    if is_causal:
        attn_mask = _causal_mask(g, *g.type(scores).shape[-2:])
    if attn_mask is None:
        return g.call("aten::matmul", g.call("aten::softmax", scores, -1), value)
    mask = _opened(g, attn_mask)
    if g.type(mask).dtype == bool:
        scores = g.call("aten::where", mask, scores, g.constant(-np.inf, dtype))
    else:
        scores = g.call("aten::add", scores, mask)
    weights = g.call("aten::softmax", scores, -1)
    if is_causal:  # each query sees the first key
        return g.call("aten::matmul", weights, value)
    return g.call("aten::matmul", _without_blind_rows(g, weights, attn_mask), value)


def _seen(known: Array) -> Array:
    """Whether a mask row has anything but -inf or False: [..., L, 1]."""
    return np.any(known if known.dtype == bool else known > -np.inf, axis=-1, keepdims=True)


def _opened(g: Any, mask: Any) -> Any:
    """Replaces fully masked rows of a constant mask by rows that attend to everything, to avoid NaN."""
    known = g.known(mask)
    if known is None or _seen(known).all():
        return mask
    return g.constant(np.where(_seen(known), known, known.dtype.type(known.dtype == bool)))


def _without_blind_rows(g: Any, weights: Any, mask: Any) -> Any:
    """Sets ``weights`` to zero where the mask has only -inf or False: softmax returns NaN there."""
    zero = g.constant(0, g.type(weights).dtype)
    if (known := g.known(mask)) is not None:
        seen = _seen(known)
        return weights if seen.all() else g.call("aten::where", g.constant(seen), weights, zero)
    if g.type(mask).dtype == bool:
        return g.call("aten::where", mask, weights, zero)
    is_hidden = g.call("aten::eq", mask, g.constant(-np.inf, g.type(mask).dtype))
    return g.call("aten::where", is_hidden, zero, weights)


def _repeated(g: Any, x: Any, heads: int) -> Any:
    """Repeats each head (the third axis from the end) of ``x``."""
    *batch, own, length, width = g.type(x).shape
    copies = heads // own
    spread = g.call("aten::reshape", x, [*batch, own, 1, length, width])
    joined = g.call("aten::cat", [spread] * copies, len(batch) + 1)
    return g.call("aten::reshape", joined, [*batch, heads, length, width])
