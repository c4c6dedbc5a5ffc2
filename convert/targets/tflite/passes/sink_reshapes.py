"""TFLite: views that only add or remove axes of extent 1 go behind elementwise ops, to meet others."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

from tmconvert.ir import CallFunction, Constant, InternalGraph, Node, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.passes.matching import is_elementwise, is_view
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.ops.view import KEPT, groups_of
from tmconvert.symbolics.registry import has_trait
from tmconvert.symbolics.traits import AlongAxis, Average, MatrixProduct, Pool, Reduction
from tmconvert.targets.tflite.passes.fold_transposes import result_groups

PRODUCT_RANK = 3  # the least that leaves products their batch


class SinkReshapes:
    """The ops between two one-dimensional convolutions, say, work on [N, C, 1, L] as these do, those between
    three-dimensional ones on the planes of these.

    Of an op all operands that are not constant must be such views, of tensors of one shape, or for
    elementwise ops of one with that of the result. A reduction takes in the axes that its operand has lost,
    and those that a view behind it removes.
    """

    name = "sink_views"
    after = ("fuse_views",)

    def __init__(self, catalogue: Mapping[str, Op]) -> None:
        self.catalogue = catalogue

    def run(self, graph: InternalGraph) -> bool:
        changed = False
        for expr in graph.exprs():
            if not isinstance(expr, CallFunction) or len(expr.outputs) != 1:
                continue
            nodes = [*expr.inputs, *expr.outputs]
            if not any(map(_is_view, nodes)):
                continue
            if is_symbolic((expr.kwargs, [node.shape for node in nodes if isinstance(node, TensorNode)])):
                continue
            if has_trait(expr, Reduction):
                changed |= self._reduce(graph, expr) or self._reduce_moved(graph, expr)
            elif has_trait(expr, MatrixProduct) and not expr.kwargs:
                changed |= self._multiply(graph, expr)
            elif has_trait(expr, Pool):
                changed |= self._pool_planes(graph, expr)
            elif is_view(expr):
                changed |= self._drop_reduced(graph, expr)
            elif has_trait(expr, AlongAxis) or is_elementwise(expr, self.catalogue):
                changed |= self._sink(graph, expr) or self._sink_moved(graph, expr)
        return changed

    def _sink(self, graph: InternalGraph, expr: CallFunction) -> bool:
        """``op(view(x), ...)`` becomes ``view(op(x, ...))``."""
        operands = [node for node in leaves(expr.args) if isinstance(node, TensorNode)]
        given = [node for node in operands if not isinstance(node.expr, Constant)]
        sources = [_source(node) for node in given]
        if not given or any(source is None for source in sources):
            return False
        outer, inner = given[0].type.shape, sources[0].type.shape  # type: ignore[union-attr]
        along = has_trait(expr, AlongAxis)
        if any(node.type.shape != outer for node in given) and not along:
            return False
        if not along and expr.output.type.shape != outer:
            return False
        if not along and any(source.type.shape != inner for source in sources):  # type: ignore[union-attr]
            return False  # they would be broadcast
        places = _places(outer, inner)
        kwargs = dict(expr.kwargs)
        if along:
            axis = kwargs["dim"] % len(outer)
            if axis not in places or any(
                not _fits(node, source, axis, places) for node, source in zip(given, sources, strict=True)
            ):
                return False
            kwargs["dim"] = places[axis]
        g = self._emitter(graph, expr)
        known = dict(zip(given, sources, strict=True))

        def moved(leaf: Any) -> Any:
            if not isinstance(leaf, TensorNode):
                return leaf
            if leaf in known:
                return known[leaf]
            if not leaf.type.shape or (leaf.type.size == 1 and not along):
                return leaf
            return g.call("aten::reshape", leaf, _restored(leaf.type.shape, len(outer), places, len(inner)))

        result = g.call(expr.function, *map_leaves(moved, expr.args), **kwargs)
        result.qparams = expr.output.qparams
        graph.substitute(
            expr.output, g.call("tm::view", result, **_plain(result.type.shape, expr.output.type.shape))
        )
        return True

    def _multiply(self, graph: InternalGraph, expr: CallFunction) -> bool:
        """A product of matrices in a batch of one, which views have put in front, is one without."""
        shape = expr.output.type.shape
        lost = len(shape) - PRODUCT_RANK
        if lost < 1 or any(extent != 1 for extent in shape[:lost]):
            return False
        if any(node.qparams is not None for node in (*expr.inputs, expr.output)):  # type: ignore[attr-defined]
            return False
        operands: list[Any] = []
        for node in expr.args:
            assert isinstance(node, TensorNode)
            slim = [1] * (len(shape) - node.type.rank) + list(node.type.shape)
            operands.append((node, _source(node), tuple(slim[lost:])))
        given = [(source, slim) for node, source, slim in operands if not isinstance(node.expr, Constant)]
        if any(source is None or source.type.shape != slim for source, slim in given):
            return False
        g = self._emitter(graph, expr)
        matrices = [
            g.constant(node.expr.value.reshape(slim)) if isinstance(node.expr, Constant) else source
            for node, source, slim in operands
        ]
        product = g.call(expr.function, *matrices)
        graph.substitute(expr.output, g.call("tm::view", product, **_plain(product.type.shape, shape)))
        return True

    def _sink_moved(self, graph: InternalGraph, expr: CallFunction) -> bool:
        """Of an elementwise op whose operands are moved by one and the same view, the result is."""
        operands = [node for node in leaves(expr.args) if isinstance(node, TensorNode)]
        given = [node for node in operands if node.type.size != 1 or not isinstance(node.expr, Constant)]
        views: list[Any] = [node.expr for node in given]
        if has_trait(expr, AlongAxis) or not given or not all(map(_moves, views)):
            return False
        first = views[0]
        is_one = all(
            (view.kwargs, view.args[0].type.shape) == (first.kwargs, first.args[0].type.shape)
            for view in views
        )
        if not is_one or expr.output.type.shape != given[0].type.shape:
            return False
        others = [user for node in given for user in node.users if user is not expr]
        if any(map(graph.is_output, given)) or not all(map(self._meets_views, others)):
            return False
        g = self._emitter(graph, expr)
        known = {node: view.args[0] for node, view in zip(given, views, strict=True)}
        args = map_leaves(
            lambda leaf: known.get(leaf, leaf) if isinstance(leaf, TensorNode) else leaf, expr.args
        )
        result = g.call(expr.function, *args, **expr.kwargs)
        result.qparams = expr.output.qparams
        graph.substitute(expr.output, g.call("tm::view", result, **first.kwargs))
        return True

    def _meets_views(self, user: Any) -> bool:
        """Whether a view in front of it may meet another."""
        return is_view(user) or (isinstance(user, CallFunction) and is_elementwise(user, self.catalogue))

    def _reduce(self, graph: InternalGraph, expr: CallFunction) -> bool:
        """A reduction of a view is one of what is seen, if nothing else uses the view."""
        x = expr.args[0]
        source = _source(x)
        if source is None or expr.kwargs["keepdim"] or not expr.kwargs["dim"]:
            return False
        places = _places(x.type.shape, source.type.shape)
        axes = {axis % x.type.rank for axis in expr.kwargs["dim"]}
        if any(axis not in places and x.type.shape[axis] != 1 for axis in axes):
            return False
        reduced = {places[axis] for axis in axes if axis in places}
        dim = _lost(source.type.shape, reduced, expr.output.type.shape)
        if not dim:  # nothing but axes that the view has added
            return False
        g = self._emitter(graph, expr)
        graph.substitute(expr.output, g.call(expr.function, source, dim, False))
        return True

    def _reduce_moved(self, graph: InternalGraph, expr: CallFunction) -> bool:
        """A reduction of whole axes of what is viewed is done there, where that leaves the rest in order."""
        x, view = expr.args[0], expr.args[0].expr
        if not _moves(view) or not expr.kwargs["dim"] or graph.use_count(x) != 1:
            return False
        split, shape = view.kwargs["split"], view.args[0].type.shape
        try:
            of_result, of_x = result_groups(view.kwargs), groups_of(split, shape)
        except ValueError:
            return False
        axes = {axis % x.type.rank for axis in expr.kwargs["dim"]}
        reduced = {place for axis in axes for place in of_result[axis] if split[place] != 1}
        left = [place for axis, group in enumerate(of_result) if axis not in axes for place in group]
        left = [place for place in left if split[place] != 1]
        dim = [axis for axis, group in enumerate(of_x) if reduced & {*group}]
        is_whole = {place for axis in dim for place in of_x[axis] if split[place] != 1} == reduced
        if not is_whole or not dim or left != sorted(left):
            return False
        g = self._emitter(graph, expr)
        result = g.call(expr.function, view.args[0], dim, False)
        graph.substitute(expr.output, g.call("aten::reshape", result, list(expr.output.type.shape)))
        return True

    def _pool_planes(self, graph: InternalGraph, expr: CallFunction) -> bool:
        """Pooling of planes [N, C, H, W] is one of [M, D, H, W], if these are the same planes."""
        x, view = expr.args[0], expr.args[0].expr
        if not _moves(view) or graph.use_count(x) != 1 or expr.output.qparams is not None:
            return False
        attributes, plane = view.kwargs, list(x.type.shape[2:])
        split, order, shape = attributes["split"], attributes["order"], view.args[0].type.shape
        last = len(split) - 1
        if (
            len(shape) != 4
            or list(shape[2:]) != plane
            or split[-2:] != plane
            or order[-2:] != [last - 1, last]
        ):
            return False
        g = self._emitter(graph, expr)
        pooled = g.call(expr.function, view.args[0], **expr.kwargs)
        plane = list(pooled.type.shape[2:])
        attributes = {**attributes, "split": split[:-2] + plane, "shape": list(x.type.shape[:2]) + plane}
        graph.substitute(expr.output, g.call("tm::view", pooled, **attributes))
        return True

    def _drop_reduced(self, graph: InternalGraph, view: CallFunction) -> bool:
        """A reduction that keeps its axes, which a view then removes, does not keep them."""
        reduced = view.args[0]
        reduction = _kept_reduction(reduced.expr)
        if reduction is None or graph.use_count(reduced) != 1 or not _is_plain(view):
            return False
        function, x, axes = reduction
        if [extent for axis, extent in enumerate(x.type.shape) if axis not in axes] != list(
            view.output.type.shape
        ):
            return False
        g = self._emitter(graph, view)
        graph.substitute(view.output, g.call(function, x, sorted(axes), False))
        return True

    def _emitter(self, graph: InternalGraph, expr: CallFunction) -> GraphEmitter:
        return GraphEmitter(
            graph,
            self.catalogue,
            source=expr.source,
            made_by=self.name,
            name=expr.output.name,
            before=expr,
        )


def _kept_reduction(expr: Any) -> tuple[str, TensorNode, set[int]] | None:
    """Function, operand and axes of a reduction that keeps its axes; a mean over all of an image is one."""
    if not isinstance(expr, CallFunction) or not has_trait(expr, Reduction, Pool):
        return None
    x = expr.args[0]
    if not isinstance(x, TensorNode) or expr.output.qparams is not None:
        return None
    if has_trait(expr, Pool):
        if not has_trait(expr, Average) or x.type.rank != 4:
            return None
        plain = not any(expr.kwargs["padding"]) and expr.kwargs["divisor_override"] is None
        is_all = plain and list(x.type.shape[2:]) == expr.kwargs["kernel_size"]
        return ("aten::mean", x, {2, 3}) if is_all else None
    if not expr.kwargs["keepdim"]:
        return None
    return expr.function, x, {axis % x.type.rank for axis in expr.kwargs["dim"] or range(x.type.rank)}


def _is_view(node: Node) -> bool:
    return is_view(node.expr)


def _is_plain(expr: CallFunction) -> bool:
    """Whether a view keeps all elements, in their order."""
    factors = list(zip(expr.kwargs["split"], expr.kwargs["index"], strict=True))
    kept = [extent for extent, chosen in factors if chosen == KEPT]
    places = [place for place in expr.kwargs["order"] if kept[place] != 1]
    return all(chosen == KEPT or extent == 1 for extent, chosen in factors) and places == sorted(places)


def _moves(expr: Any) -> bool:
    """Whether it is a view of all elements, in another order."""
    return (
        is_view(expr)
        and expr.output.qparams is None
        and not _is_plain(expr)
        and all(chosen == KEPT for chosen in expr.kwargs["index"])
    )


def _source(node: TensorNode) -> TensorNode | None:
    """What a node is a view of that differs in axes of extent 1 only."""
    expr = node.expr
    if not is_view(expr) or node.qparams is not None:
        return None
    x = expr.args[0]
    if not isinstance(x, TensorNode) or not _is_plain(expr) or x.type.rank == node.type.rank:
        return None
    return x if _real(x.type.shape) == _real(node.type.shape) else None


def _lost(shape: Sequence[int], reduced: Container[int], result: Sequence[int]) -> list[int] | None:
    """The axes to reduce, ``reduced`` and some of extent 1, for what is left to be ``result``."""
    left, lost = list(result), []
    for axis, extent in enumerate(shape):
        if axis not in reduced and left and left[0] == extent:
            left.pop(0)
        elif axis in reduced or extent == 1:
            lost.append(axis)
        else:
            return None
    return None if left else lost


def _real(shape: Sequence[int]) -> list[int]:
    return [extent for extent in shape if extent != 1]


def _places(outer: Sequence[int], inner: Sequence[int]) -> dict[int, int]:
    """Which axis of ``inner`` each axis of ``outer`` is that is longer than 1."""
    axes = [[axis for axis, extent in enumerate(shape) if extent != 1] for shape in (outer, inner)]
    return dict(zip(*axes, strict=True))


def _fits(node: TensorNode, source: TensorNode | None, axis: int, places: Mapping[int, int]) -> bool:
    """Whether another operand along ``axis`` lost and got the same axes."""
    assert source is not None
    return _places(node.type.shape, source.type.shape) == places and axis in places


def _restored(shape: Sequence[int], rank: int, places: Mapping[int, int], inner_rank: int) -> list[int]:
    """The shape of a constant that was broadcast to ``rank`` axes."""
    full = [1] * (rank - len(shape)) + list(shape)
    result = [1] * inner_rank
    for axis, place in places.items():
        result[place] = full[axis]
    assert math.prod(result) == math.prod(shape)
    return result


def _plain(source: Sequence[int], shape: Sequence[int]) -> dict[str, list[int]]:
    """The attributes of a view that is a reshape."""
    return {
        "split": list(source),
        "index": [KEPT] * len(source),
        "order": list(range(len(source))),
        "shape": list(shape),
    }
