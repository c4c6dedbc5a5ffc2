"""TFLite: fold transposes around matrix products."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tmconvert.ir import CallFunction, InternalGraph
from tmconvert.passes.patterns.matching import VIEW, has_symbolic_sizes, is_float_constant, is_linear, is_view
from tmconvert.passes.patterns.view_groups import keeps_features, result_groups
from tmconvert.passes.rewriting import Emits, PassRecord, PassRule, apply_rules
from tmconvert.symbolics.ops.shapes.view import KEPT


class FoldTransposes(Emits):
    """Fold transposes around matrix products into the products, or move them next to other views.

    Three rules, each exact up to the order of sums:

    - A product with a matrix whose view ends in a transpose takes the matrix as it is (``tm::matmul_nt``).
    - A view that selects features of a linear layer, such as the keys of attention, is of a layer with their
      weights alone. Heads are then moved by a view: a product with a constant of as many matrices moves less,
      but broadcasts its rows over them, which LiteRT 2.3 computes wrong on GPUs, and is not faster on CPUs.
    - A view of the result of a linear layer that moves rows only, is done before the layer, where a view is.
    """

    name = "fold_transposes"
    after = ("fuse_views",)

    def run(self, graph: InternalGraph) -> PassRecord:
        record = PassRecord(self.name)
        for rule in (_TransposeOperand(self), _SelectFeatures(self), _MoveRows(self)):
            apply_rules(record, graph, (rule,))
        return record


class _TransposeOperand(PassRule[CallFunction, "FoldTransposes"]):
    """Uses the second operand of a product before its transpose; the match is the view."""

    def takes(self, function: str) -> bool:
        return function == "aten::matmul"

    def match(self, graph: InternalGraph, call: CallFunction) -> CallFunction | None:
        other: Any = call.args[1]
        if not is_view(other.expr) or other.type.rank < 2:
            return None
        if other.type.dtype.kind != "f":  # of integers there is no such product
            return None
        is_open = has_symbolic_sizes(call)
        return other.expr if is_open or _ends_in_transpose(other.expr) else None

    def check(self, graph: InternalGraph, call: CallFunction, match: CallFunction) -> str | None:
        if has_symbolic_sizes(call):
            return "one of its sizes is symbolic"
        is_shared = graph.use_count(match.output) != 1
        return f"its transposed operand `{match.output.name}` has other users" if is_shared else None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: CallFunction) -> str:
        g, rank = self.owner.emitter(call), match.output.type.rank
        swapped = [*range(rank - 2), rank - 1, rank - 2]
        rows = g.call("tm::view", match.args[0], **_permuted(match.kwargs, swapped))
        graph.substitute(call.output, g.call("tm::matmul_nt", call.args[0], rows))
        return f"takes `{match.output.name}` without its transpose now"


class _SelectFeatures(PassRule[int, "FoldTransposes"]):
    """Gives a view that selects features of a linear layer a layer of these features alone.

    The match is the position in ``split`` where the features begin.
    """

    def takes(self, function: str) -> bool:
        return function == VIEW

    def match(self, graph: InternalGraph, call: CallFunction) -> int | None:
        linear = _linear_before(call)
        if linear is None or has_symbolic_sizes(call):
            return None
        split, start, size = call.kwargs["split"], len(call.kwargs["split"]), 1
        features = linear.output.type.shape[-1]
        while start and size < features:
            start -= 1
            size *= split[start]
        is_apart = size == features and math.prod(call.kwargs["shape"]) > 0
        return start if is_apart and any(at != KEPT for at in call.kwargs["index"][start:]) else None

    def check(self, graph: InternalGraph, call: CallFunction, match: int) -> str | None:
        x: Any = call.args[0]
        others = [user for user in x.users if not is_view(user)]
        return f"`{x.name}` has other users than views" if others else None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: int) -> str:
        linear = _linear_before(call)
        assert linear is not None
        x, weight, bias = linear.args
        split, index = call.kwargs["split"], call.kwargs["index"]
        chosen: Any = tuple(slice(None) if at == KEPT else at for at in index[match:])
        width = x.type.shape[-1]
        g = self.owner.emitter(call)
        rows = g.constant(weight.expr.value.reshape(*split[match:], width)[chosen].reshape(-1, width))
        summands = None
        if bias is not None:
            summands = g.constant(bias.expr.value.reshape(split[match:])[chosen].reshape(-1))
        kept = [size for size, at in zip(split[match:], index[match:], strict=True) if at == KEPT]
        attributes = {
            **call.kwargs,
            "split": [*split[:match], *kept],
            "index": [*index[:match], *[KEPT] * len(kept)],
        }
        selected = g.call("aten::linear", x, rows, summands)
        graph.substitute(call.output, g.call("tm::view", selected, **attributes))
        return f"is of a layer of its own features of `{linear.output.name}` now"


class _MoveRows(PassRule[CallFunction, "FoldTransposes"]):
    """Moves a view of rows to before the linear layer that is the match."""

    def takes(self, function: str) -> bool:
        return function == VIEW

    def match(self, graph: InternalGraph, call: CallFunction) -> CallFunction | None:
        linear = _linear_before(call)
        if linear is None or has_symbolic_sizes(call) or not is_view(linear.args[0].expr):
            return None
        return linear if keeps_features(call.kwargs, linear.output.type.shape[-1]) else None

    def check(self, graph: InternalGraph, call: CallFunction, match: CallFunction) -> str | None:
        name = match.output.name
        return f"`{name}` has other users" if graph.use_count(match.output) != 1 else None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: CallFunction) -> str:
        x, weight, bias = match.args
        g = self.owner.emitter(call)
        width = x.type.shape[-1]
        attributes = {
            **call.kwargs,
            "split": [*call.kwargs["split"][:-1], width],
            "shape": [*call.kwargs["shape"][:-1], width],
        }
        moved = g.call("tm::view", x, **attributes)
        graph.substitute(call.output, g.call("aten::linear", moved, weight, bias))
        return f"was moved before `{match.output.name}`"


def _linear_before(call: CallFunction) -> Any:
    """The linear layer with constant float parameters that ``call``, a view, is of."""
    expr: Any = call.args[0].expr
    if not is_linear(expr) or expr.output.qparams is not None:
        return None
    return expr if all(is_float_constant(node) for node in expr.args[1:] if node is not None) else None


def _permuted(attributes: Mapping[str, Any], axes: Sequence[int]) -> dict[str, Any]:
    """The attributes of a view whose result has its axes permuted."""
    groups = result_groups(attributes)
    kept = [place for place, chosen in enumerate(attributes["index"]) if chosen == KEPT]
    return {
        **attributes,
        "order": [kept.index(place) for axis in axes for place in groups[axis]],
        "shape": [attributes["shape"][axis] for axis in axes],
    }


def _ends_in_transpose(view: CallFunction) -> bool:
    """Whether the operand's innermost axis is the last but one of the result."""
    try:
        groups = result_groups(view.kwargs)
    except ValueError:
        return False
    split, index = view.kwargs["split"], view.kwargs["index"]
    real = [place for place in range(len(split)) if split[place] != 1 and index[place] == KEPT]
    rows = [place for place in groups[-2] if split[place] != 1]
    return bool(real) and bool(rows) and rows[-1] == real[-1]
