"""TFLite: channels that are shuffled on their way to a convolution go there without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, Constant, Expr, InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.tree import leaves
from tmconvert.passes.matching import is_elementwise, is_view
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.ops.view import KEPT, groups_of
from tmconvert.symbolics.registry import has_trait, trait_of
from tmconvert.symbolics.traits import Concatenates, Pool, Slices, Weights


class Route(NamedTuple):
    """Where each channel of a tensor [N, C, H, W] comes from: of which tensor, and which one there."""

    roots: tuple[TensorNode, ...]
    root: np.ndarray  # a position in ``roots`` for each channel
    channel: np.ndarray

    @staticmethod
    def of(node: TensorNode, order: np.ndarray | None = None) -> Route:
        channels = np.arange(node.type.shape[1]) if order is None else order
        return Route((node,), np.zeros_like(channels), channels)

    @staticmethod
    def joined(parts: Sequence[Route]) -> Route:
        roots = tuple(dict.fromkeys(root for part in parts for root in part.roots))
        places = [np.array([roots.index(root) for root in part.roots])[part.root] for part in parts]
        return Route(roots, np.concatenate(places), np.concatenate([part.channel for part in parts]))

    def chosen(self, order: Any) -> Route:
        return Route(self.roots, self.root[order], self.channel[order])

    def runs(self) -> tuple[np.ndarray, list[tuple[TensorNode, int, int]]]:
        """An order of the channels in which few runs (root, start, stop) make them up, and those runs."""
        order = np.lexsort((self.channel, self.root))
        root, channel = self.root[order], self.channel[order]
        breaks = np.flatnonzero((np.diff(root) != 0) | (np.diff(channel) != 1)) + 1
        bounds = [0, *breaks.tolist(), len(order)]
        return order, [
            (self.roots[root[first]], int(channel[first]), int(channel[last - 1]) + 1)
            for first, last in pairwise(bounds)
        ]


class FoldChannelShuffles:
    """Takes shuffles of channels out, between what makes channels and convolutions over all of them.

    A convolution takes its channels in any order if its weights have that order, too. Hence those of a tensor
    that was shuffled, cut and joined are fetched from where they were made, each once, instead of being moved
    at every step. What works on each channel by itself does so in whatever order they arrive. Where something
    else needs a tensor behind a shuffle, the convolution before it may make its channels in that order;
    otherwise the shuffle stays. A pixel shuffle is a shuffle of channels and of blocks of them.
    """

    name = "route_channels"
    after = ("fuse_views",)

    def __init__(self, catalogue: Mapping[str, Op]) -> None:
        self.catalogue = catalogue

    def run(self, graph: InternalGraph) -> bool:
        calls = [expr for expr in graph.exprs() if isinstance(expr, CallFunction)]
        changed = False
        for expr in calls:
            changed |= self._to_pixels(graph, expr) or self._to_blocks(graph, expr)
        calls = [expr for expr in graph.exprs() if isinstance(expr, CallFunction)]
        shuffles = [expr for expr in calls if _shuffle(expr) is not None]
        free = [expr for expr in shuffles if self._is_free(graph, expr, set())]
        if free:
            _Router(graph, self.catalogue, self).route(free)
        for expr in shuffles:
            changed |= expr not in free and self._made_in_order(graph, expr, _shuffle(expr))
        return changed or bool(free)

    def _to_pixels(self, graph: InternalGraph, expr: CallFunction) -> bool:
        """A pixel shuffle of [C, b, b] channels of a convolution is one of [b, b, C]: those are blocks."""
        size = _pixel_shuffled(expr)
        if size is None:
            return False
        batch, channels, height, width = expr.output.type.shape
        numbers = np.arange(channels * size * size).reshape(channels, -1).T.reshape(-1)
        if not self._reordered(graph, expr.args[0], numbers):
            return False
        split = [batch, size, size, channels, height // size, width // size]
        graph.set_arguments(expr, expr.args, {**expr.kwargs, "split": split, "order": [0, 3, 4, 1, 5, 2]})
        return True

    def _to_blocks(self, graph: InternalGraph, expr: CallFunction) -> bool:
        """The other way round, in front of convolutions: blocks, and a shuffle of channels."""
        size = _pixel_unshuffled(expr)
        if size is None or not self._is_free(graph, expr, set()):
            return False
        batch, channels, height, width = expr.output.type.shape
        g = self.emitter(graph, expr)
        attributes = {**expr.kwargs, "order": [0, 3, 5, 1, 2, 4]}
        blocks = g.call("tm::view", expr.args[0], **attributes)
        split = [batch, size * size, channels // size**2, height, width]
        order, shape = [0, 2, 1, 3, 4], [batch, channels, height, width]
        shuffled = g.call("tm::view", blocks, split=split, index=[KEPT] * 5, order=order, shape=shape)
        graph.substitute(expr.output, shuffled)
        return True

    def _made_in_order(self, graph: InternalGraph, expr: CallFunction, order: Any) -> bool:
        """Leaves a view that moves nothing."""
        if not self._reordered(graph, expr.args[0], order):
            return False
        kept = {**expr.kwargs, "order": list(range(len(expr.kwargs["order"])))}
        kept["split"] = [expr.kwargs["split"][place] for place in expr.kwargs["order"]]
        graph.set_arguments(expr, expr.args, kept)
        return True

    def _reordered(self, graph: InternalGraph, node: TensorNode, order: Any) -> bool:
        """Lets the convolution that makes ``node``, for one user, give its channels in another order."""
        conv = node.expr
        while graph.use_count(node) == 1 and node.qparams is None and isinstance(conv, CallFunction):
            if _is_convolution(conv):
                break
            if not self.carries(conv):
                return False
            node, conv = conv.args[0], conv.args[0].expr
        is_free = (
            graph.use_count(node) == 1 and isinstance(conv, CallFunction) and _absorbs(conv, conv.args[0])
        )
        if not is_free or not isinstance(conv, CallFunction):
            return False
        g = self.emitter(graph, conv)
        x, *parameters = conv.args
        moved = [
            each and g.parameter(np.ascontiguousarray(each.expr.value[order]), each.expr.name or each.name)
            for each in parameters
        ]
        graph.set_arguments(conv, (x, *moved), conv.kwargs)
        return True

    def emitter(self, graph: InternalGraph, expr: CallFunction) -> GraphEmitter:
        return GraphEmitter(
            graph,
            self.catalogue,
            source=expr.source,
            made_by=self.name,
            name=expr.output.name,
            before=expr,
        )

    def _is_free(self, graph: InternalGraph, expr: CallFunction, seen: set[Expr]) -> bool:
        """Whether all that is behind ``expr`` takes channels in any order."""
        if expr in seen:
            return True
        seen.add(expr)
        node = expr.output
        if graph.is_output(node) or node.qparams is not None:
            return False
        for user in node.users:
            if _absorbs(user, node):
                continue
            if not isinstance(user, CallFunction) or not (self.moves(user) or self.carries(user)):
                return False
            if not self._is_free(graph, user, seen):
                return False
        return True

    def moves(self, expr: CallFunction) -> bool:
        """Whether it only moves channels of tensors."""
        if not _is_of_images(expr):
            return False
        if has_trait(expr, Concatenates, Slices):
            return expr.kwargs["dim"] % 4 == 1
        return _shuffle(expr) is not None

    def carries(self, expr: CallFunction) -> bool:
        """Whether each channel of its result is made of the same channel of its operand."""
        if not _is_of_images(expr):
            return False
        x, result = expr.args[0], expr.output
        if x.type.shape[1] != result.type.shape[1]:
            return False
        if _is_convolution(expr):
            return expr.kwargs["groups"] == x.type.shape[1] and _has_constants(expr)
        if len(leaves(expr.args)) != 1:
            return False
        return has_trait(expr, Pool) or is_elementwise(expr, self.catalogue)


class _Router:
    """One run over a graph: the route of each tensor, and the tensors that were made for them."""

    def __init__(self, graph: InternalGraph, catalogue: Mapping[str, Op], rules: FoldChannelShuffles) -> None:
        self.graph = graph
        self.catalogue = catalogue
        self.rules = rules
        self.routes: dict[TensorNode, Route] = {}
        self.made: dict[Any, TensorNode] = {}

    def route(self, shuffles: Sequence[CallFunction]) -> None:
        behind = _behind(shuffles)
        for expr in list(self.graph.exprs()):
            if not isinstance(expr, CallFunction):
                continue
            if self.rules.moves(expr):
                self.routes[expr.output] = self._moved(expr)
            elif expr in behind and self.rules.carries(expr):
                self._carry(expr)
            elif expr in behind:
                self._absorb(expr)

    def _of(self, node: TensorNode) -> Route:
        return self.routes.get(node) or Route.of(node)

    def _moved(self, expr: CallFunction) -> Route:
        if has_trait(expr, Concatenates):
            return Route.joined([self._of(node) for node in expr.args[0]])
        if has_trait(expr, Slices):
            chosen = slice(expr.kwargs["start"], expr.kwargs["end"], expr.kwargs["step"])
            return self._of(expr.args[0]).chosen(chosen)
        return self._of(expr.args[0]).chosen(_shuffle(expr))

    def _carry(self, expr: CallFunction) -> None:
        x, order = self._fetched(expr)
        g = self.rules.emitter(self.graph, expr)
        if _is_convolution(expr):
            x = self._convolved(g, expr, x, lambda weight: weight[order], order)
        else:
            x = g.call(expr.function, x, **expr.kwargs)
        self.routes[expr.output] = Route.of(x, np.argsort(order))

    def _absorb(self, expr: CallFunction) -> None:
        x, order = self._fetched(expr)
        made = self._convolved(
            self.rules.emitter(self.graph, expr), expr, x, lambda weight: weight[:, order], None
        )
        self.graph.substitute(expr.output, made)

    def _convolved(
        self, g: GraphEmitter, expr: CallFunction, x: TensorNode, of_weight: Any, order: np.ndarray | None
    ) -> TensorNode:
        _, weight, bias = expr.args
        kernel = np.ascontiguousarray(of_weight(weight.expr.value))
        if bias is not None and order is not None:
            bias = g.parameter(bias.expr.value[order], bias.expr.name or bias.name)
        kernel_node = g.parameter(kernel, weight.expr.name or weight.name)
        return g.call(expr.function, x, kernel_node, bias, **expr.kwargs)

    def _fetched(self, expr: CallFunction) -> tuple[TensorNode, np.ndarray]:
        """The channels of the first operand in an order that is cheap to make, and that order."""
        order, runs = self._of(expr.args[0]).runs()
        g = self.rules.emitter(self.graph, expr)
        parts = [self._part(g, *run) for run in runs]
        key = tuple(parts)
        if key not in self.made:
            self.made[key] = parts[0] if len(parts) == 1 else g.call("aten::cat", parts, 1)
        return self.made[key], order

    def _part(self, g: GraphEmitter, root: TensorNode, start: int, stop: int) -> TensorNode:
        if stop - start == root.type.shape[1]:
            return root
        key = (root, start, stop)
        if key not in self.made:
            self.made[key] = g.call("aten::slice", root, 1, start, stop)
        return self.made[key]


def _behind(exprs: Sequence[CallFunction]) -> set[Expr]:
    """All that takes a result of ``exprs``, moved or carried or as it is."""
    found: set[Expr] = set()
    ahead: list[Expr] = [user for expr in exprs for user in expr.output.users]
    while ahead:
        expr = ahead.pop()
        if expr in found:
            continue
        found.add(expr)
        if not any(_absorbs(expr, node) for node in expr.inputs if isinstance(node, TensorNode)):
            ahead += [user for node in expr.outputs for user in node.users]
    return found


def _is_convolution(expr: CallFunction) -> bool:
    """Of images, and with an axis of the weight for the channels of the result."""
    weights = trait_of(expr, Weights)
    return weights is not None and weights.spatial == 2 and not weights.is_transposed


def _absorbs(expr: Expr, x: TensorNode) -> bool:
    """Whether it is a convolution over all channels of ``x``, with constant weights."""
    return (
        isinstance(expr, CallFunction)
        and _is_convolution(expr)
        and expr.args[0] is x
        and expr.kwargs["groups"] == 1
        and _has_constants(expr)
    )


def _has_constants(expr: CallFunction) -> bool:
    given = [node for node in expr.args[1:] if node is not None]
    return expr.output.qparams is None and all(
        isinstance(node.expr, Constant) and node.qparams is None for node in given
    )


def _is_of_images(expr: CallFunction) -> bool:
    """Whether operands and result are of four axes, and have sizes that are known."""
    if len(expr.outputs) != 1 or not expr.args:
        return False
    nodes = [*leaves(expr.args[0]), expr.output]
    shapes = [node.type.shape for node in nodes if isinstance(node, TensorNode)]
    return all(len(shape) == 4 for shape in shapes) and not is_symbolic((expr.kwargs, shapes))


def _shuffle(expr: CallFunction) -> np.ndarray | None:
    """The channel of the operand that each one of the result is, if a view reorders channels only."""
    if not is_view(expr) or not _is_of_images(expr):
        return None
    split, index, order = (expr.kwargs[name] for name in ("split", "index", "order"))
    shape = expr.args[0].type.shape
    if expr.output.type.shape != shape or any(chosen != KEPT for chosen in index):
        return None
    batch, channels, *spatial = groups_of(split, shape)
    moved = [place for place in order if place in channels]
    kept = [*batch, *moved, *(place for axis in spatial for place in axis)]
    if moved == sorted(moved) or _real(split, kept) != _real(split, order):
        return None
    factors = [split[place] for place in channels]
    numbers = np.arange(shape[1]).reshape(factors)
    return numbers.transpose([channels.index(place) for place in moved]).reshape(-1)


def _real(split: Sequence[int], places: Sequence[int]) -> list[int]:
    return [place for place in places if split[place] != 1]


def _pixel_shuffled(expr: CallFunction) -> int | None:
    """The size of the blocks of a pixel shuffle of more than one channel."""
    if not is_view(expr) or not _is_of_images(expr) or expr.kwargs["order"] != [0, 1, 4, 2, 5, 3]:
        return None
    split = expr.kwargs["split"]
    batch, channels, first, second, height, width = split
    shape = (batch, channels, height * first, width * second)
    is_one = first == second > 1 and channels > 1 and shape == expr.output.type.shape
    return first if is_one and all(chosen == KEPT for chosen in expr.kwargs["index"]) else None


def _pixel_unshuffled(expr: CallFunction) -> int | None:
    if not is_view(expr) or not _is_of_images(expr) or expr.kwargs["order"] != [0, 1, 3, 5, 2, 4]:
        return None
    split = expr.kwargs["split"]
    batch, channels, height, first, width, second = split
    shape = (batch, channels * first * second, height, width)
    is_one = first == second > 1 and channels > 1 and shape == expr.output.type.shape
    return first if is_one and all(chosen == KEPT for chosen in expr.kwargs["index"]) else None
