"""Parts that attention operators of ai.onnx and com.microsoft share: heads, masks, scores, rotary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapters.values import cast, like, rank, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term


@dataclass
class AttentionCall:
    """A call of attention: query [N, H, L, E], key [N, K, S, E], value [N, K, S, V], of which H is a multiple
    of K. ``allowed`` are masks of bools and ``biases`` what is added to the scores; both broadcast to
    [N, H, L, S].
    """

    query: Any
    key: Any
    value: Any
    scale: float
    allowed: list[Any]
    biases: list[Any]
    softcap: float = 0.0
    is_causal: bool = False

    def result(self, g: Emitter) -> Any:
        """Computes the attention: [N, H, L, V]. A query without allowed keys gives zeros."""
        if self.softcap:
            return g.call("aten::matmul", self.weights(g), self._repeated(g, self.value))
        shares = g.type(self.query).shape[1] != g.type(self.key).shape[1]
        is_causal = self.is_causal and not (self.allowed or self.biases)
        mask = None if is_causal else self.mask(g)
        return g.call(
            "aten::scaled_dot_product_attention",
            *(self.query, self.key, self.value, mask, 0.0, is_causal, self.scale, shares),
        )

    def mask(self, g: Emitter) -> Any:
        """Returns the attention mask, bools (True may attend) or floats to add to the scores; or None."""
        allowed = list(self.allowed)
        if self.is_causal:
            allowed.append(causal_mask(g, g.type(self.query).shape[2], g.type(self.key).shape[2]))
        shown = allowed[0] if allowed else None
        for each in allowed[1:]:
            shown = g.call("aten::logical_and", shown, each)
        added = self.biases[0] if self.biases else None
        for each in self.biases[1:]:
            added = g.call("aten::add", added, each)
        if shown is None or added is None:
            return added if shown is None else shown
        return g.call("aten::where", shown, added, like(g, added, -np.inf))

    def scores(self, g: Emitter, *, is_capped: bool = True) -> Any:
        """Computes the products of queries and keys: [N, H, L, S]."""
        query, key = Term(g, self.query), Term(g, self._repeated(g, self.key))
        columns = g.call("aten::permute", (key * math.sqrt(self.scale)).value, [0, 1, 3, 2])
        made = Term(g, g.call("aten::matmul", (query * math.sqrt(self.scale)).value, columns))
        if self.softcap and is_capped:
            made = (made / self.softcap).tanh() * self.softcap
        return made.value

    def masked_scores(self, g: Emitter) -> Any:
        made, mask = self.scores(g), self.mask(g)
        if mask is None:
            return made
        if g.type(mask).dtype == bool:
            return g.call("aten::where", mask, made, like(g, made, -np.inf))
        return g.call("aten::add", made, cast(g, mask, g.type(made).dtype))

    def weights(self, g: Emitter) -> Any:
        """Computes the softmax of the scores, with zeros for queries without allowed keys."""
        scores = self.masked_scores(g)
        made = g.call("aten::softmax", scores, -1)
        if self.mask(g) is None:
            return made
        is_hidden = g.call("aten::eq", scores, like(g, scores, -np.inf))
        return g.call("aten::where", is_hidden, like(g, made, 0), made)

    def _repeated(self, g, x):
        """Repeats each head as often as queries share it."""
        batch, own, length, width = g.type(x).shape
        heads = g.type(self.query).shape[1]
        if heads == own:
            return x
        copies = reshaped(g, x, [batch, own, 1, length, width])
        copies = g.call("aten::expand", copies, [batch, own, heads // own, length, width])
        return reshaped(g, copies, [batch, heads, length, width])


def positions(g, count):
    return g.call("aten::arange", 0, count, 1)


def causal_mask(g, queries, keys, offset=None):
    """Returns a mask of bools [L, S]: query ``l`` may attend to the keys 0 to ``offset + l``. One offset for
    each batch gives [N, 1, L, S].
    """
    query = Term(g, reshaped(g, positions(g, queries), [queries, 1]))
    if offset is not None:
        query = query + (offset if isinstance(offset, Term) else query.like(offset))
    key = Term(g, positions(g, keys))
    return (key <= query).value


def split_heads(g: Emitter, x, heads: int) -> Any:
    """[N, L, H E] -> [N, H, L, E]."""
    batch, length, width = g.type(x).shape
    if not heads or width % heads:
        raise Refusal(f"{g.type(x)} cannot be split into {heads} heads")
    apart = reshaped(g, x, [batch, length, heads, width // heads])
    return g.call("aten::permute", apart, [0, 2, 1, 3])


def merge_heads(g, x):
    """[N, H, L, E] -> [N, L, H E]."""
    batch, heads, length, width = g.type(x).shape
    return reshaped(g, g.call("aten::permute", x, [0, 2, 1, 3]), [batch, length, heads * width])


def append_to_past(g, past, new):
    """Appends the keys or values of this step to those of the past."""
    return new if past is None else g.call("aten::cat", [past, new], 2)


def rows_of(g, table, indices):
    """Rows of a matrix at indices of any shape."""
    shape = list(g.type(indices).shape)
    flat = cast(g, reshaped(g, indices, [-1]), np.int64)
    return reshaped(g, g.call("aten::index_select", table, 0, flat), [*shape, g.type(table).shape[1]])


def rotary(g: Emitter, x, cos, sin, width: int, interleaved: bool) -> Any:
    """Rotates pairs of the first ``width`` features of the last axis; cosines broadcast to half of them."""
    axis = rank(g, x) - 1
    extent = g.type(x).shape[axis]
    moved = g.call("aten::slice", x, axis, 0, width, 1) if width != extent else x
    if interleaved:
        pair = [Term(g, g.call("aten::slice", moved, axis, first, width, 2)) for first in (0, 1)]
    else:
        half = width // 2
        pair = [Term(g, g.call("aten::slice", moved, axis, at, at + half, 1)) for at in (0, half)]
    c, s = Term(g, cos), Term(g, sin)
    rotated = [(c * pair[0] - s * pair[1]).value, (s * pair[0] + c * pair[1]).value]
    if interleaved:
        shape = g.type(rotated[0]).shape
        columns = [reshaped(g, each, [*shape, 1]) for each in rotated]
        rotated = [reshaped(g, g.call("aten::cat", columns, axis + 1), [*shape[:-1], width])]
    if width != extent:
        rotated.append(g.call("aten::slice", x, axis, width, extent, 1))
    return rotated[0] if len(rotated) == 1 else g.call("aten::cat", rotated, axis)
