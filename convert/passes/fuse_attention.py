"""Fuse the steps of scaled dot-product attention into one op."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, Constant, InternalGraph, TensorNode
from tmconvert.passes.patterns.matching import array_of, is_call, is_product, is_quotient, is_sum, kept_step
from tmconvert.passes.rewriting import Emits, RewritePass

MATMUL = "aten::matmul"
WHERE = "aten::where"


class Steps(NamedTuple):
    """softmax(query columns scale + mask) value, and the tensors between the operands and the result."""

    query: TensorNode
    columns: TensorNode
    value: TensorNode
    mask: TensorNode | None
    scale: float
    between: list[TensorNode]


class FuseAttention(Emits, RewritePass[Steps]):
    """Replace softmax(q k^T s + mask) v by ``aten::scaled_dot_product_attention``.

    Factors may be at the queries, the keys or their product. With a mask, NaN in the weights has to be
    replaced by 0, as exporters write it: the op returns zeros where a mask hides everything.
    """

    name = "fuse_attention"
    takes_plain_masks = False  # constant masks that hide no row, without a replacement of NaN

    def takes(self, function: str) -> bool:
        return function == MATMUL

    def match(self, graph: InternalGraph, call: CallFunction) -> Steps | None:
        if not is_call(call, MATMUL):
            return None
        weights, value = call.args
        softmax = _guarded(weights) or weights
        if not is_call(softmax.expr, "aten::softmax") or softmax.type.rank < 2:
            return None
        if softmax.expr.kwargs["dim"] not in (-1, softmax.type.rank - 1):
            return None
        between = list(dict.fromkeys([weights, softmax]))
        if softmax is not weights:
            between.append(weights.expr.args[0])
        scores: Any = softmax.expr.args[0]
        mask = None
        if is_sum(scores.expr):
            product, mask = _masked(scores)
            is_plain = softmax is weights and not (self.takes_plain_masks and _shows_each_row(mask))
            if product is None or is_plain:
                return None
            between.append(scores)
            scores = product
        matmul, scale = _unscaled(scores)
        if not is_call(matmul.expr, MATMUL):
            return None
        between += [scores, matmul]
        (query, first), (columns, second) = map(_unscaled, matmul.expr.args)
        return Steps(query, columns, value, mask, scale * first * second, between)

    def check(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str | None:
        operands = [match.query, match.columns, match.value]
        if any(node.type.rank != call.output.type.rank or node.type.dtype.kind != "f" for node in operands):
            return "its operands are not float tensors of one rank"
        return kept_step(graph, call, match.between)

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str:
        emitter, rank = self.emitter(call), call.output.type.rank
        order = [*range(rank - 2), rank - 1, rank - 2]
        key = emitter.call("aten::permute", match.columns, order)
        made = emitter.call(
            "aten::scaled_dot_product_attention",
            *(match.query, key, match.value, match.mask),
            dropout_p=0.0,
            is_causal=False,
            scale=match.scale,
            enable_gqa=False,
        )
        graph.substitute(call.output, made)
        return f"is an attention of `{match.query.name}`"


def _shows_each_row(mask: TensorNode | None) -> bool:
    """Whether a mask is a constant in which each row has an element that is not hidden."""
    if mask is None or not isinstance(mask.expr, Constant):
        return False
    known = np.asarray(mask.expr.value)
    return bool((known if known.dtype == bool else known > -np.inf).any(-1).all())


def _guarded(weights: TensorNode) -> TensorNode | None:
    """Returns x of where(isnan(x), 0, x)."""
    if not is_call(weights.expr, WHERE):
        return None
    condition, zero, other = weights.expr.args
    is_guard = is_call(condition.expr, "aten::isnan") and condition.expr.args[0] is other
    return other if is_guard and _is_number(zero, 0.0) else None


def _masked(scores: TensorNode) -> tuple[TensorNode | None, TensorNode | None]:
    """Returns the two terms of a sum: the product of queries and keys, and the mask.

    A mask of 0 and -inf is the condition that chooses between them.
    """
    assert isinstance(scores.expr, CallFunction)
    for product, mask in (scores.expr.args, scores.expr.args[::-1]):
        is_product_of_both = is_call(_unscaled(product)[0].expr, MATMUL)
        if not is_product_of_both or product.type != scores.type or mask.type.dtype != scores.type.dtype:
            continue
        if is_call(mask.expr, WHERE):
            condition, shown, hidden = mask.expr.args
            if _is_number(shown, 0.0) and _is_number(hidden, -np.inf) and condition.type.rank > 1:
                return product, condition
        return (product, mask) if mask.type.rank > 1 else (None, None)
    return None, None


def _is_number(node: Any, number: float) -> bool:
    constant = array_of(node)
    return constant is not None and constant.size == 1 and float(constant.item()) == number


def _unscaled(node: Any) -> tuple[TensorNode, float]:
    """Returns what is multiplied by one constant number, and the number; 1 for another tensor."""
    expr = node.expr
    if not (is_product(expr) or (is_quotient(expr) and not any(expr.kwargs.values()))):
        return node, 1.0
    pairs = [expr.args] if is_quotient(expr) else [expr.args, expr.args[::-1]]
    for x, factor in pairs:
        constant = array_of(factor)
        if constant is not None and constant.size == 1 and x.type == node.type and constant.item():
            number = float(constant.item())
            return x, 1 / number if is_quotient(expr) else number
    return node, 1.0
