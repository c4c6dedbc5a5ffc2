"""TFLite: fold transposes around matrix products."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.passes.patterns.matching import VIEW, has_symbolic_sizes, is_float_constant, is_linear, is_view
from tmconvert.passes.patterns.view_groups import keeps_features, result_groups
from tmconvert.passes.rewriting import PassRecord, Rule, apply_rules, emitter_before
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.ops.shapes.view import KEPT

# of BATCH_MATMUL in XNNPACK
PRODUCT_RANK = 5


class FoldTransposes:
    """Fold transposes around matrix products into the products, or move them next to other views.

    Three rules, each exact up to the order of sums:

    - A product with a matrix whose view ends in a transpose takes the matrix as it is (``tm::matmul_nt``).
    - A view of a linear layer that brings some of its features in front of the rows, such as heads of
      attention, is a product with a constant of as many matrices: only the rows of ``x`` are left to move.
    - A view of the result of a linear layer that moves rows only, is done before the layer, where a view is.
    """

    name = "fold_transposes"
    after = ("fuse_views",)

    def __init__(self, catalogue: Mapping[str, Op]) -> None:
        self.catalogue = catalogue

    def run(self, graph: InternalGraph) -> PassRecord:
        record = PassRecord(self.name)
        for rule in (_TransposeOperand(self), _SplitFeatures(self), _MoveRows(self)):
            apply_rules(record, graph, (rule,))
        return record

    def emitter(self, call: CallFunction) -> GraphEmitter:
        return emitter_before(call, self.catalogue, self.name)


class _TransposeOperand(Rule[CallFunction]):
    """Uses the second operand of a product before its transpose; the match is the view."""

    def __init__(self, owner: FoldTransposes) -> None:
        self.owner = owner

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


class _SplitFeatures(Rule["_Split"]):
    """Converts a view that splits the features of a linear layer to a product with several matrices."""

    def __init__(self, owner: FoldTransposes) -> None:
        self.owner = owner
        self.made: dict[Any, TensorNode] = {}  # views of what layers take, by tensor and attributes

    def takes(self, function: str) -> bool:
        return function == VIEW

    def match(self, graph: InternalGraph, call: CallFunction) -> _Split | None:
        linear = _linear_before(call)
        if linear is None or has_symbolic_sizes(call):
            return None
        return _Split.of(call.kwargs, linear.output.type.shape)

    def check(self, graph: InternalGraph, call: CallFunction, match: _Split) -> str | None:
        x: Any = call.args[0]
        others = [user for user in x.users if not is_view(user)]
        return f"`{x.name}` has other users than views" if others else None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: _Split) -> str:
        linear = _linear_before(call)
        assert linear is not None
        x, weight, bias = linear.args
        g = self.owner.emitter(call)
        attributes = match.rows(x.type.shape[-1])
        key = (x, repr(attributes))
        if key not in self.made:
            self.made[key] = g.call("tm::view", x, **attributes)
        matrices = match.features(weight.expr.value)
        product = g.call("aten::matmul", self.made[key], g.constant(matrices.swapaxes(-1, -2)))
        if bias is not None:
            row = match.features(bias.expr.value[:, None]).swapaxes(-1, -2)
            product = g.call("aten::add", product, g.constant(row))
        graph.substitute(call.output, product)
        return f"is a product with several matrices of `{linear.output.name}` now"


class _MoveRows(Rule[CallFunction]):
    """Moves a view of rows to before the linear layer that is the match."""

    def __init__(self, owner: FoldTransposes) -> None:
        self.owner = owner

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


class _Split(NamedTuple):
    """A view that splits rows by features into groups before and after the rows."""

    attributes: Mapping[str, Any]
    features_from: int  # the place in ``split`` where the features begin
    groups: list[list[int]]

    @staticmethod
    def of(attributes: Mapping[str, Any], shape: Sequence[int]) -> _Split | None:
        """Returns the split; None for other views: the last axis must be features, the one before it rows."""
        split, index = attributes["split"], attributes["index"]
        start, size = len(split), 1
        while start and size < shape[-1]:
            start -= 1
            size *= split[start]
        try:
            groups = result_groups(attributes)
        except ValueError:
            return None
        if size != shape[-1] or not 3 <= len(groups) <= PRODUCT_RANK or math.prod(attributes["shape"]) == 0:
            return None
        if any(chosen != KEPT and extent > 1 for chosen, extent in zip(index[:start], split, strict=False)):
            return None
        made = _Split(attributes, start, groups)
        kinds = [{place >= start for place in group if split[place] != 1} for group in groups]
        before = any(True in kind for kind in kinds[:-2])
        is_clean = all(len(kind) < 2 for kind in kinds) and kinds[-1] == {True} and kinds[-2] <= {False}
        return made if is_clean and (before or _selects(index)) else None

    def rows(self, width: int) -> dict[str, Any]:
        """Returns the attributes of the view of ``x`` [..., width] with rows in their positions."""
        split = [*self.attributes["split"][: self.features_from], width]
        last = len(split) - 1
        groups = [[place for place in group if place < last] for group in self.groups[:-1]]
        order = [place for group in groups for place in group]
        shape = [math.prod(split[place] for place in group) for group in groups]
        missing = [place for place in range(last) if place not in order]  # of extent 1
        return {
            "split": split,
            "index": [KEPT] * len(split),
            "order": [*missing, *order, last],
            "shape": [*shape, width],
        }

    def features(self, weight: np.ndarray) -> np.ndarray:
        """[features, width] -> [..., features of a matrix, width], to be broadcast over the rows."""
        start = self.features_from
        split, index = self.attributes["split"][start:], self.attributes["index"][start:]
        chosen: Any = tuple(slice(None) if place == KEPT else place for place in index)
        parts = weight.reshape(*split, -1)[chosen]
        kept = [place for place, at in enumerate(index, start) if at == KEPT]
        order = [kept.index(place) for group in self.groups for place in group if place >= start]
        parts = parts.transpose(*order, len(kept))
        shape = [
            math.prod(self.attributes["split"][place] for place in group if place >= start)
            for group in (*self.groups[:-2], self.groups[-1])
        ]
        return parts.reshape(*shape, -1)


def _selects(index: Sequence[int]) -> bool:
    return any(chosen != KEPT for chosen in index)
