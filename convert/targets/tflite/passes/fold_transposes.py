"""TFLite: views around matrix products become part of the products, or meet other views."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, Constant, InternalGraph, Node, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.passes.matching import is_linear, is_view
from tmconvert.passes.view_groups import keeps_features, result_groups
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.ops.view import KEPT

# of BATCH_MATMUL in XNNPACK
PRODUCT_RANK = 5


class FoldTransposes:
    """Three rules, each exact up to the order of sums:

    - A product with a matrix whose view ends in a transpose takes the matrix as it is (``tm::matmul_nt``).
    - A view of a linear layer that brings some of its features in front of the rows, such as heads of
      attention, is a product with a constant of as many matrices: only the rows of ``x`` are left to move.
    - A view behind a linear layer that moves rows only, is done before the layer, where a view is.
    """

    name = "move_views"
    after = ("fuse_views",)

    def __init__(self, catalogue: Mapping[str, Op]) -> None:
        self.catalogue = catalogue

    def run(self, graph: InternalGraph) -> bool:
        changed = False
        for rule, is_meant in (
            (self._transpose_operand, _is_matmul),
            (self._split_features, is_view),
            (self._move_rows, is_view),
        ):
            made: dict[Any, TensorNode] = {}
            for expr in graph.exprs():
                if isinstance(expr, CallFunction) and is_meant(expr) and not _is_open(expr):
                    changed |= rule(graph, expr, made)
        return changed

    def _emitter(self, graph: InternalGraph, expr: CallFunction) -> GraphEmitter:
        return GraphEmitter(
            graph,
            self.catalogue,
            source=expr.source,
            made_by=self.name,
            name=expr.output.name,
            before=expr,
        )

    def _transpose_operand(self, graph: InternalGraph, expr: CallFunction, made: dict[Any, Any]) -> bool:
        other = expr.args[1]
        if not isinstance(other, TensorNode) or not is_view(other.expr) or other.type.rank < 2:
            return False
        view = other.expr
        assert isinstance(view, CallFunction)
        is_float = other.type.dtype.kind == "f"  # of integers there is no such product
        if not is_float or graph.use_count(other) != 1 or not _ends_in_transpose(view):
            return False
        g = self._emitter(graph, expr)
        swapped = [*range(other.type.rank - 2), other.type.rank - 1, other.type.rank - 2]
        rows = g.call("tm::view", view.args[0], **_permuted(view.kwargs, swapped))
        graph.substitute(expr.output, g.call("tm::matmul_nt", expr.args[0], rows))
        return True

    def _split_features(self, graph: InternalGraph, expr: CallFunction, made: dict[Any, Any]) -> bool:
        if not _is_linear(expr.args[0].expr):
            return False
        linear = expr.args[0].expr
        split = _Split.of(expr.kwargs, linear.output.type.shape)
        if split is None or not all(is_view(user) for user in linear.output.users):
            return False
        x, weight, bias = linear.args
        g = self._emitter(graph, expr)
        attributes = split.rows(x.type.shape[-1])
        key = (x, repr(attributes))
        if key not in made:
            made[key] = g.call("tm::view", x, **attributes)
        matrices = split.features(weight.expr.value)
        product = g.call("aten::matmul", made[key], g.constant(matrices.swapaxes(-1, -2)))
        if bias is not None:
            row = split.features(bias.expr.value[:, None]).swapaxes(-1, -2)
            product = g.call("aten::add", product, g.constant(row))
        graph.substitute(expr.output, product)
        return True

    def _move_rows(self, graph: InternalGraph, expr: CallFunction, made: dict[Any, Any]) -> bool:
        if not _is_linear(expr.args[0].expr):
            return False
        linear = expr.args[0].expr
        x, weight, bias = linear.args
        if (
            graph.use_count(linear.output) != 1
            or not is_view(x.expr)
            or not keeps_features(expr.kwargs, linear.output.type.shape[-1])
        ):
            return False
        g = self._emitter(graph, expr)
        width = x.type.shape[-1]
        attributes = {
            **expr.kwargs,
            "split": [*expr.kwargs["split"][:-1], width],
            "shape": [*expr.kwargs["shape"][:-1], width],
        }
        moved = g.call("tm::view", x, **attributes)
        graph.substitute(expr.output, g.call("aten::linear", moved, weight, bias))
        return True


def _is_matmul(expr: CallFunction) -> bool:
    return expr.function == "aten::matmul"


def _is_open(expr: CallFunction) -> bool:
    """Whether sizes are not known yet."""
    nodes = [*expr.inputs, *expr.outputs]
    return is_symbolic((expr.kwargs, [node.shape for node in nodes if isinstance(node, TensorNode)]))


def _is_linear(expr: Any) -> bool:
    """Whether it is a linear layer with constant parameters that are not quantized."""
    if not is_linear(expr):
        return False
    return expr.output.qparams is None and all(_is_plain(node) for node in expr.args[1:] if node is not None)


def _is_plain(node: Node) -> bool:
    return isinstance(node, TensorNode) and isinstance(node.expr, Constant) and node.qparams is None


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
    """Whether what is innermost in the operand is so in the last axis but one of the result."""
    try:
        groups = result_groups(view.kwargs)
    except ValueError:
        return False
    split, index = view.kwargs["split"], view.kwargs["index"]
    real = [place for place in range(len(split)) if split[place] != 1 and index[place] == KEPT]
    rows = [place for place in groups[-2] if split[place] != 1]
    return bool(real) and bool(rows) and rows[-1] == real[-1]


class _Split(NamedTuple):
    """A view of rows by features, with groups of features in front of the rows and a group behind."""

    attributes: Mapping[str, Any]
    features_from: int  # the place in ``split`` where the features begin
    groups: list[list[int]]

    @staticmethod
    def of(attributes: Mapping[str, Any], shape: Sequence[int]) -> _Split | None:
        """None where the view is none such: the last axis must be features, the one before it rows."""
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
        in_front = any(True in kind for kind in kinds[:-2])
        is_clean = all(len(kind) < 2 for kind in kinds) and kinds[-1] == {True} and kinds[-2] <= {False}
        return made if is_clean and (in_front or _selects(index)) else None

    def rows(self, width: int) -> dict[str, Any]:
        """The attributes of the view of ``x`` [..., width] with its rows in their places."""
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
