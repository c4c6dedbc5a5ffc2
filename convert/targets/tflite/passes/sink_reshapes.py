"""TFLite: sink reshapes and transposes past elementwise ops, where they meet others."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from tmconvert.ir import CallFunction, Constant, InternalGraph, Node, TensorNode
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.passes.patterns.matching import VIEW, has_symbolic_sizes, is_elementwise, is_view
from tmconvert.passes.patterns.view_groups import result_groups
from tmconvert.passes.rewriting import Emits, M, PassRecord, PassRule, apply_rules
from tmconvert.symbolics.op import ANY_DTYPE
from tmconvert.symbolics.ops.shapes.view import KEPT, groups_of
from tmconvert.symbolics.registry import has_trait, op_has
from tmconvert.symbolics.traits import AlongAxis, Average, MatrixProduct, Pool, Reduction

PRODUCT_RANK = 3  # the least that leaves products their batch


class SinkReshapes(Emits):
    """Move reshapes that only add or remove axes of extent 1, and transposes, to after other ops.

    For example, the ops between two one-dimensional convolutions work on [N, C, 1, L] like these. All
    operands of an op that are not constant must be such views, of tensors of one shape, or, for elementwise
    ops, of shapes that broadcast to that of the result. A reduction absorbs the axes that a view before or
    after it removes.
    """

    name = "sink_reshapes"
    after = ("fuse_views",)

    def run(self, graph: InternalGraph) -> PassRecord:
        record = PassRecord(self.name)
        kinds = (_Symbolic, _Reduce, _ReduceMoved, _Multiply, _PoolPlanes, _DropReduced, _Sink, _SinkMoved)
        apply_rules(record, graph, [kind(self) for kind in kinds])
        return record


class _SinkRule(PassRule[M, "SinkReshapes"]):
    """A rule for calls with static sizes, next to a view."""

    def match(self, graph: InternalGraph, call: CallFunction) -> M | None:
        if len(call.outputs) != 1 or not any(map(_is_view, (*call.inputs, *call.outputs))):
            return None
        return None if has_symbolic_sizes(call) else self.find(graph, call)

    @abstractmethod
    def find(self, graph: InternalGraph, call: CallFunction) -> M | None: ...


class _Symbolic(PassRule[bool, "SinkReshapes"]):
    """Rejects calls with symbolic sizes next to a view."""

    def takes(self, function: str) -> bool:
        return function != VIEW

    def match(self, graph: InternalGraph, call: CallFunction) -> bool | None:
        return True if any(map(_is_view, call.inputs)) and has_symbolic_sizes(call) else None

    def check(self, graph: InternalGraph, call: CallFunction, match: bool) -> str | None:
        return "one of its sizes is symbolic"

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: bool) -> str:
        raise AssertionError("it is always refused")


class _Viewed(NamedTuple):
    """Non-constant operands of a call, and the sources of their reshapes, or None."""

    given: list[TensorNode]
    sources: list[TensorNode | None]


class _Sink(_SinkRule[_Viewed]):
    """Rewrites ``op(reshape(x), ...)`` to ``reshape(op(x, ...))``."""

    def takes(self, function: str) -> bool:
        return not _has_other_rules(function)

    def find(self, graph: InternalGraph, call: CallFunction) -> _Viewed | None:
        if not has_trait(call, AlongAxis) and not is_elementwise(call, self.owner.catalogue):
            return None
        if not _can_be_viewed(call):
            return None
        given = [node for node in _tensors(call) if not isinstance(node.expr, Constant)]
        sources = [_source(node) for node in given]
        return _Viewed(given, sources) if any(source is not None for source in sources) else None

    def check(self, graph: InternalGraph, call: CallFunction, match: _Viewed) -> str | None:
        given, sources = match
        for node, source in zip(given, sources, strict=True):
            if source is None:
                return f"its operand `{node.name}` is not reshaped by axes of extent 1"
        known = [source for source in sources if source is not None]
        outer, inner = given[0].type.shape, known[0].type.shape
        if has_trait(call, AlongAxis):
            places, axis = _places(outer, inner), call.kwargs["dim"] % len(outer)
            pairs = zip(given, known, strict=True)
            if axis not in places or not all(
                source.type.rank == len(inner) and _fits(node, source, axis, places) for node, source in pairs
            ):
                return "its operands have lost or got other axes, or the one that it works along"
            return None
        if any(node.type.shape != outer for node in (*given, call.output)):
            return "its operands are broadcast"
        if any(source.type.shape != inner for source in known):
            return "its operands were of different shapes before their reshapes"
        return None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: _Viewed) -> str:
        known: dict[Any, Any] = dict(zip(*match, strict=True))
        outer, inner = match.given[0].type.shape, known[match.given[0]].type.shape
        places, kwargs, along = _places(outer, inner), dict(call.kwargs), has_trait(call, AlongAxis)
        if along:
            kwargs["dim"] = places[kwargs["dim"] % len(outer)]
        g = self.owner.emitter(call)

        def moved(leaf: object) -> Any:
            if not isinstance(leaf, TensorNode):
                return leaf
            if leaf in known:
                return known[leaf]
            if not leaf.type.shape or (leaf.type.size == 1 and leaf.type.rank <= len(inner) and not along):
                return leaf
            return g.call("aten::reshape", leaf, _restored(leaf.type.shape, len(outer), places, len(inner)))

        result = g.call(call.function, *map_leaves(moved, call.args), **kwargs)
        result.qparams = call.output.qparams
        plain = _plain(result.type.shape, call.output.type.shape)
        graph.substitute(call.output, g.call("tm::view", result, **plain))
        return f"is before the reshape of {_listed(match.given)} now"


class _SinkMoved(_SinkRule[_Viewed]):
    """Moves a common transpose of all operands of an elementwise op to its result."""

    def takes(self, function: str) -> bool:
        return not op_has(function, AlongAxis) and not _has_other_rules(function)

    def find(self, graph: InternalGraph, call: CallFunction) -> _Viewed | None:
        if not is_elementwise(call, self.owner.catalogue) or not _can_be_viewed(call):
            return None
        operands = _tensors(call)
        given = [node for node in operands if node.type.size != 1 or not isinstance(node.expr, Constant)]
        sources = [_moved_from(node) for node in given]
        return _Viewed(given, sources) if any(source is not None for source in sources) else None

    def check(self, graph: InternalGraph, call: CallFunction, match: _Viewed) -> str | None:
        given, sources = match
        for node, source in zip(given, sources, strict=True):
            if source is None:
                return f"its operand `{node.name}` is not transposed"
        views: list[Any] = [node.expr for node in given]
        first = views[0]
        if any(
            (view.kwargs, view.args[0].type.shape) != (first.kwargs, first.args[0].type.shape)
            for view in views
        ):
            return "its operands are transposed in different ways"
        if call.output.type.shape != given[0].type.shape:
            return "its operands are broadcast"
        for node in given:
            if graph.is_output(node):
                return f"the transpose `{node.name}` is an output of the model"
            if not all(user is call or self._meets_views(user) for user in node.users):
                return f"the transpose `{node.name}` is needed by other ops, too"
        return None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: _Viewed) -> str:
        view = match.given[0].expr
        assert isinstance(view, CallFunction)
        known: dict[Any, Any] = dict(zip(*match, strict=True))
        rank = known[match.given[0]].type.rank
        g = self.owner.emitter(call)

        def moved(leaf: object) -> Any:
            if not isinstance(leaf, TensorNode) or leaf in known:
                return known.get(leaf, leaf)
            # A constant of one element; with more axes than the operands, it would give them to the result.
            return leaf if leaf.type.rank <= rank else g.call("aten::reshape", leaf, [1] * rank)

        result = g.call(call.function, *map_leaves(moved, call.args), **call.kwargs)
        result.qparams = call.output.qparams
        graph.substitute(call.output, g.call("tm::view", result, **view.kwargs))
        return f"is before the transpose of {_listed(match.given)} now"

    def _meets_views(self, user: object) -> bool:
        """Whether a view before it may meet another."""
        return isinstance(user, CallFunction) and (
            is_view(user) or is_elementwise(user, self.owner.catalogue)
        )


class _Multiply(_SinkRule[list[Any]]):
    """Removes a batch axis of extent 1, added by views, from a matrix product.

    The match are the operands with what they are views of, and their shapes without the batch.
    """

    def takes(self, function: str) -> bool:
        return op_has(function, MatrixProduct)

    def find(self, graph: InternalGraph, call: CallFunction) -> list[Any] | None:
        if call.kwargs:
            return None
        shape = call.output.type.shape
        lost = len(shape) - PRODUCT_RANK
        if lost < 1 or any(extent != 1 for extent in shape[:lost]):
            return None
        operands = []
        for node in call.args:
            assert isinstance(node, TensorNode)
            slim = [1] * (len(shape) - node.type.rank) + list(node.type.shape)
            operands.append((node, _source(node), tuple(slim[lost:])))
        return operands

    def check(self, graph: InternalGraph, call: CallFunction, match: list[Any]) -> str | None:
        if any(node.qparams is not None for node in (*_tensors(call), call.output)):
            return "it has quantization parameters"
        for node, source, slim in match:
            if isinstance(node.expr, Constant):
                continue
            if source is None or source.type.shape != slim:
                return f"its operand `{node.name}` has a batch of one that no reshape has added"
        return None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: list[Any]) -> str:
        g = self.owner.emitter(call)
        matrices = [
            g.constant(node.expr.value.reshape(slim)) if isinstance(node.expr, Constant) else source
            for node, source, slim in match
        ]
        product = g.call(call.function, *matrices)
        plain = _plain(product.type.shape, call.output.type.shape)
        graph.substitute(call.output, g.call("tm::view", product, **plain))
        return "is a product without its batch of one now"


class _Reduce(_SinkRule[list[int]]):
    """Reduces the operand of a reshape instead of its result; the match are the axes there."""

    def takes(self, function: str) -> bool:
        return op_has(function, Reduction)

    def find(self, graph: InternalGraph, call: CallFunction) -> list[int] | None:
        x: Any = call.args[0]
        source = _source(x)
        if source is None or call.kwargs["keepdim"] or not call.kwargs["dim"]:
            return None
        places = _places(x.type.shape, source.type.shape)
        axes = {axis % x.type.rank for axis in call.kwargs["dim"]}
        if any(axis not in places and x.type.shape[axis] != 1 for axis in axes):
            return None
        reduced = {places[axis] for axis in axes if axis in places}
        return _lost(source.type.shape, reduced, call.output.type.shape) or None  # else only added axes

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: list[int]) -> str:
        x: Any = call.args[0]
        g = self.owner.emitter(call)
        graph.substitute(call.output, g.call(call.function, _source(x), match, False))
        return f"reduces without the reshape `{x.name}` now"


class _ReduceMoved(_SinkRule[list[int]]):
    """Reduces whole axes before a transpose that keeps the others in order; the match are these axes."""

    def takes(self, function: str) -> bool:
        return op_has(function, Reduction)

    def find(self, graph: InternalGraph, call: CallFunction) -> list[int] | None:
        x: Any = call.args[0]
        view = x.expr
        if not _moves(view) or not call.kwargs["dim"]:
            return None
        split, shape = view.kwargs["split"], view.args[0].type.shape
        try:
            of_result, of_x = result_groups(view.kwargs), groups_of(split, shape)
        except ValueError:
            return None
        axes = {axis % x.type.rank for axis in call.kwargs["dim"]}
        reduced = {place for axis in axes for place in of_result[axis] if split[place] != 1}
        left = [place for axis, group in enumerate(of_result) if axis not in axes for place in group]
        left = [place for place in left if split[place] != 1]
        dim = [axis for axis, group in enumerate(of_x) if reduced & {*group}]
        is_whole = {place for axis in dim for place in of_x[axis] if split[place] != 1} == reduced
        return dim if is_whole and dim and left == sorted(left) else None

    def check(self, graph: InternalGraph, call: CallFunction, match: list[int]) -> str | None:
        name = call.inputs[0].name
        return f"the transpose `{name}` has other users" if graph.use_count(call.inputs[0]) != 1 else None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: list[int]) -> str:
        x: Any = call.args[0]
        g = self.owner.emitter(call)
        result = g.call(call.function, x.expr.args[0], match, False)
        graph.substitute(call.output, g.call("aten::reshape", result, list(call.output.type.shape)))
        return f"reduces without the transpose `{x.name}` now"


class _PoolPlanes(_SinkRule[CallFunction]):
    """Pools planes [M, D, H, W] before a view to [N, C, H, W]; the match is the view."""

    def takes(self, function: str) -> bool:
        return op_has(function, Pool)

    def find(self, graph: InternalGraph, call: CallFunction) -> CallFunction | None:
        x: Any = call.args[0]
        view, plane = x.expr, list(x.type.shape[2:])
        if not _moves(view):
            return None
        split, order, shape = view.kwargs["split"], view.kwargs["order"], view.args[0].type.shape
        last = len(split) - 1
        is_of_planes = len(shape) == 4 and list(shape[2:]) == plane
        keeps_planes = split[-2:] == plane and order[-2:] == [last - 1, last]
        return view if is_of_planes and keeps_planes else None

    def check(self, graph: InternalGraph, call: CallFunction, match: CallFunction) -> str | None:
        if graph.use_count(match.output) != 1:
            return f"the transpose `{match.output.name}` has other users"
        return None if call.output.qparams is None else "it has quantization parameters"

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: CallFunction) -> str:
        g, attributes = self.owner.emitter(call), match.kwargs
        pooled = g.call(call.function, match.args[0], **call.kwargs)
        plane = list(pooled.type.shape[2:])
        shape = list(match.output.type.shape[:2]) + plane
        attributes = {**attributes, "split": attributes["split"][:-2] + plane, "shape": shape}
        graph.substitute(call.output, g.call("tm::view", pooled, **attributes))
        return f"is before the transpose `{match.output.name}` now"


class _DropReduced(_SinkRule[tuple[str, TensorNode, set[int]]]):
    """Reduces without keeping axes that a following view removes; the match is the reduction."""

    def takes(self, function: str) -> bool:
        return function == VIEW

    def find(self, graph: InternalGraph, call: CallFunction) -> tuple[str, TensorNode, set[int]] | None:
        reduction = _kept_reduction(call.args[0].expr)
        if reduction is None or not _is_plain(call):
            return None
        _, x, axes = reduction
        left = [extent for axis, extent in enumerate(x.type.shape) if axis not in axes]
        return reduction if left == list(call.output.type.shape) else None

    def check(self, graph: InternalGraph, call: CallFunction, match: object) -> str | None:
        name = call.inputs[0].name
        return f"the reduction `{name}` has other users" if graph.use_count(call.inputs[0]) != 1 else None

    def rewrite(
        self, graph: InternalGraph, call: CallFunction, match: tuple[str, TensorNode, set[int]]
    ) -> str:
        function, x, axes = match
        g, was = self.owner.emitter(call), call.inputs[0].name
        graph.substitute(call.output, g.call(function, x, sorted(axes), False))
        return f"is the reduction `{was}` without its axes of extent 1 now"


def _listed(nodes: Sequence[TensorNode]) -> str:
    return ", ".join(f"`{node.name}`" for node in dict.fromkeys(nodes))


def _tensors(call: CallFunction) -> list[TensorNode]:
    return [node for node in leaves(call.args) if isinstance(node, TensorNode)]


def _has_other_rules(function: str) -> bool:
    """Whether rules for products, reductions, pooling or views are meant for a call."""
    return function == VIEW or op_has(function, Reduction, Pool, MatrixProduct)


def _kept_reduction(expr: object) -> tuple[str, TensorNode, set[int]] | None:
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


def _moves(expr: object) -> bool:
    """Whether it is a view of all elements, in another order."""
    return (
        is_view(expr)
        and expr.output.qparams is None
        and not _is_plain(expr)
        and all(chosen == KEPT for chosen in expr.kwargs["index"])
    )


def _moved_from(node: TensorNode) -> TensorNode | None:
    """Returns the source of a view with all elements in another order."""
    expr: Any = node.expr
    return expr.args[0] if _moves(expr) else None


def _source(node: TensorNode) -> TensorNode | None:
    """Returns the source of a view that differs in axes of extent 1 only."""
    expr = node.expr
    if not is_view(expr) or node.qparams is not None:
        return None
    x = expr.args[0]
    if not isinstance(x, TensorNode) or not _is_plain(expr) or x.type.rank == node.type.rank:
        return None
    return x if _real(x.type.shape) == _real(node.type.shape) else None


def _lost(shape: Sequence[int], reduced: Container[int], result: Sequence[int]) -> list[int] | None:
    """Returns the axes to reduce, ``reduced`` and some of extent 1, so that ``result`` is left."""
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
    """Maps each axis of ``outer`` longer than 1 to the axis of ``inner``."""
    axes = [[axis for axis, extent in enumerate(shape) if extent != 1] for shape in (outer, inner)]
    return dict(zip(*axes, strict=True))


def _fits(node: TensorNode, source: TensorNode | None, axis: int, places: Mapping[int, int]) -> bool:
    """Whether another operand along ``axis`` has the same axes removed or added."""
    assert source is not None
    return _places(node.type.shape, source.type.shape) == places and axis in places


def _restored(shape: Sequence[int], rank: int, places: Mapping[int, int], inner_rank: int) -> list[int]:
    """Returns the shape of a constant that was broadcast to ``rank`` axes."""
    full = [1] * (rank - len(shape)) + list(shape)
    result = [1] * inner_rank
    for axis, place in places.items():
        result[place] = full[axis]
    assert math.prod(result) == math.prod(shape)
    return result


def _can_be_viewed(call: CallFunction) -> bool:
    """Whether ``tm::view`` has the result's element type: unsigned integers of 16 bits and more are not."""
    return all(isinstance(node, TensorNode) and node.type.dtype.name in ANY_DTYPE for node in call.outputs)


def _plain(source: Sequence[int], shape: Sequence[int]) -> dict[str, list[int]]:
    """Returns the attributes of a view that is a reshape."""
    return {
        "split": list(source),
        "index": [KEPT] * len(source),
        "order": list(range(len(source))),
        "shape": list(shape),
    }
