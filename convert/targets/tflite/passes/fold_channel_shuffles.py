"""TFLite: fold channel shuffles into convolution weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, Constant, Expr, InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.tree import leaves
from tmconvert.passes.patterns.matching import VIEW, is_elementwise, is_view
from tmconvert.passes.rewriting import Emits, PassRecord, PassRule, apply_rules
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.ops.shapes.view import KEPT, groups_of
from tmconvert.symbolics.registry import has_trait, trait_of
from tmconvert.symbolics.traits import Concatenates, Pool, Slices, Weights


class Route(NamedTuple):
    """The origin of each channel of a tensor [N, C, H, W]: a tensor, and the index of the channel there."""

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
        """Returns a channel order that consists of few runs (root, start, stop), and those runs."""
        order = np.lexsort((self.channel, self.root))
        root, channel = self.root[order], self.channel[order]
        breaks = np.flatnonzero((np.diff(root) != 0) | (np.diff(channel) != 1)) + 1
        bounds = [0, *breaks.tolist(), len(order)]
        return order, [
            (self.roots[root[first]], int(channel[first]), int(channel[last - 1]) + 1)
            for first, last in pairwise(bounds)
        ]


class FoldChannelShuffles(Emits):
    """Fold channel shuffles into the weights of the convolutions around them.

    A convolution takes its channels in any order if its weights have that order, too. Hence a tensor that was
    shuffled, split and concatenated is replaced by the tensors that its channels come from, without moving
    them at every step. Ops that compute each channel by itself work in any channel order. If another op needs
    a tensor after a shuffle, the convolution before it may produce its channels in that order; otherwise the
    shuffle stays. A pixel shuffle is a shuffle of channels and of blocks of them.
    """

    name = "fold_channel_shuffles"
    after = ("fuse_views",)

    def run(self, graph: InternalGraph) -> PassRecord:
        record = PassRecord(self.name)
        apply_rules(record, graph, (_PixelShuffle(self), _PixelUnshuffle(self)))
        calls = [expr for expr in graph if isinstance(expr, CallFunction)]
        shuffles = [expr for expr in calls if _shuffle(expr) is not None]
        reasons = {expr: self.reason_after(graph, expr, set()) for expr in shuffles}
        free = [expr for expr in shuffles if reasons[expr] is None]
        if free:
            _Router(graph, self.catalogue, self).route(free)
        for expr in shuffles:
            reason = reasons[expr]
            if reason is None:
                record.did(expr, "was folded into the weights of the convolutions after it")
            else:
                self._fold_before(record, graph, expr, reason)
        return record

    def _fold_before(
        self, record: PassRecord, graph: InternalGraph, shuffle: CallFunction, reason: str
    ) -> None:
        """Removes a view that is an identity, after a convolution whose channels are in order."""
        conv = self.conv_before(graph, shuffle.args[0])
        if isinstance(conv, str):
            record.refuse(shuffle, f"{reason}, and {conv}")
            return
        self.reorder(conv, _shuffle(shuffle))
        kept = {**shuffle.kwargs, "order": list(range(len(shuffle.kwargs["order"])))}
        kept["split"] = [shuffle.kwargs["split"][place] for place in shuffle.kwargs["order"]]
        graph.set_arguments(shuffle, shuffle.args, kept)
        record.did(shuffle, f"was folded into the weights of `{conv.output.name}`")

    def conv_before(self, graph: InternalGraph, node: TensorNode) -> CallFunction | str:
        """Returns the convolution that computes the channels of ``node``; or why it cannot be reordered."""
        while True:
            call = node.expr
            if graph.use_count(node) != 1:
                return f"`{node.name}` before it has other users"
            if not isinstance(call, CallFunction) or node.qparams is not None:
                what = (
                    "quantized by itself" if node.qparams is not None else "not the result of a convolution"
                )
                return f"`{node.name}` before it is {what}"
            if _is_convolution(call) and _absorbs(call, call.args[0]):
                return call
            if _is_convolution(call) or not self.carries(call):
                return f"`{node.name}` before it is not a convolution over all channels with constant weights"
            node = call.args[0]

    def reorder(self, conv: CallFunction, order: object) -> None:
        """Reorders the output channels of a convolution."""
        g = self.emitter(conv)
        x, *parameters = conv.args
        moved = [
            each and g.parameter(np.ascontiguousarray(each.expr.value[order]), each.expr.name or each.name)
            for each in parameters
        ]
        assert conv.graph is not None
        conv.graph.set_arguments(conv, (x, *moved), conv.kwargs)

    def reason_after(self, graph: InternalGraph, expr: CallFunction, seen: set[Expr]) -> str | None:
        """Returns which user depends on the channel order of ``expr``, as a reason; None without any."""
        if expr in seen:
            return None
        seen.add(expr)
        node = expr.output
        if graph.is_output(node) or node.qparams is not None:
            what = "an output of the model" if graph.is_output(node) else "quantized by itself"
            subject = "it" if len(seen) == 1 else f"`{node.name}`"
            return f"{subject} is {what}"
        for user in node.users:
            if _absorbs(user, node):
                continue
            if not isinstance(user, CallFunction) or not (self.moves(user) or self.carries(user)):
                return f"`{user.outputs[0].name}` needs the channels in order"
            reason = self.reason_after(graph, user, seen)
            if reason is not None:
                return reason
        return None

    def moves(self, expr: CallFunction) -> bool:
        """Whether it only moves channels of tensors."""
        if not _is_of_images(expr):
            return False
        if has_trait(expr, Concatenates, Slices):
            return expr.kwargs["dim"] % 4 == 1
        return _shuffle(expr) is not None

    def carries(self, expr: CallFunction) -> bool:
        """Whether each channel of its result depends on the same channel of its operand only."""
        if not _is_of_images(expr):
            return False
        x, result = expr.args[0], expr.output
        if not isinstance(x, TensorNode) or x.type.shape[1] != result.type.shape[1]:
            return False
        if _is_convolution(expr):
            return expr.kwargs["groups"] == x.type.shape[1] and _has_constants(expr)
        if len(leaves(expr.args)) != 1:
            return False
        return has_trait(expr, Pool) or is_elementwise(expr, self.catalogue)


class _PixelShuffle(PassRule[int, "FoldChannelShuffles"]):
    """Converts a shuffle of [C, b, b] channels of a convolution to one of [b, b, C], which are blocks.

    The match is the size b of a block.
    """

    def takes(self, function: str) -> bool:
        return function == VIEW

    def match(self, graph: InternalGraph, call: CallFunction) -> int | None:
        return _pixel_shuffled(call)

    def check(self, graph: InternalGraph, call: CallFunction, match: int) -> str | None:
        conv = self.owner.conv_before(graph, call.args[0])
        return conv if isinstance(conv, str) else None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: int) -> str:
        conv = self.owner.conv_before(graph, call.args[0])
        assert isinstance(conv, CallFunction)
        batch, channels, height, width = call.output.type.shape
        self.owner.reorder(conv, np.arange(channels * match * match).reshape(channels, -1).T.reshape(-1))
        split = [batch, match, match, channels, height // match, width // match]
        graph.set_arguments(call, call.args, {**call.kwargs, "split": split, "order": [0, 3, 4, 1, 5, 2]})
        return f"shuffles blocks now: the channels of `{conv.output.name}` are reordered"


class _PixelUnshuffle(PassRule[int, "FoldChannelShuffles"]):
    """Converts a pixel unshuffle before convolutions to space-to-depth and a shuffle, by block size."""

    def takes(self, function: str) -> bool:
        return function == VIEW

    def match(self, graph: InternalGraph, call: CallFunction) -> int | None:
        return _pixel_unshuffled(call)

    def check(self, graph: InternalGraph, call: CallFunction, match: int) -> str | None:
        return self.owner.reason_after(graph, call, set())

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: int) -> str:
        batch, channels, height, width = call.output.type.shape
        g = self.owner.emitter(call)
        attributes = {**call.kwargs, "order": [0, 3, 5, 1, 2, 4]}
        blocks = g.call("tm::view", call.args[0], **attributes)
        split = [batch, match * match, channels // match**2, height, width]
        order, shape = [0, 2, 1, 3, 4], [batch, channels, height, width]
        shuffled = g.call("tm::view", blocks, split=split, index=[KEPT] * 5, order=order, shape=shape)
        graph.substitute(call.output, shuffled)
        return "is a shuffle of blocks and one of channels now"


class _Router:
    """One run over a graph: the routes of tensors, and the tensors created for them."""

    def __init__(self, graph: InternalGraph, catalogue: Mapping[str, Op], rules: FoldChannelShuffles) -> None:
        self.graph = graph
        self.catalogue = catalogue
        self.rules = rules
        self.routes: dict[TensorNode, Route] = {}
        self.made: dict[Any, TensorNode] = {}

    def route(self, shuffles: Sequence[CallFunction]) -> None:
        after = _after(shuffles)
        for expr in list(self.graph):
            if not isinstance(expr, CallFunction):
                continue
            if self.rules.moves(expr):
                self.routes[expr.output] = self._moved(expr)
            elif expr in after and self.rules.carries(expr):
                self._carry(expr)
            elif expr in after:
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
        g = self.rules.emitter(expr)
        if _is_convolution(expr):
            x = self._convolved(g, expr, x, lambda weight: weight[order], order)
        else:
            x = g.call(expr.function, x, **expr.kwargs)
        self.routes[expr.output] = Route.of(x, np.argsort(order))

    def _absorb(self, expr: CallFunction) -> None:
        x, order = self._fetched(expr)
        made = self._convolved(self.rules.emitter(expr), expr, x, lambda weight: weight[:, order], None)
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
        """Returns the channels of the first operand in an order that is cheap to compute, and that order."""
        order, runs = self._of(expr.args[0]).runs()
        g = self.rules.emitter(expr)
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


def _after(exprs: Sequence[CallFunction]) -> set[Expr]:
    """Returns all expressions that depend on a result of ``exprs``."""
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
    """Whether it is a 2-d convolution, whose weight has an output-channel axis."""
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
    """Returns the operand channel of each result channel, for a view that only permutes channels."""
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
    """Returns the block size of a view that is a pixel shuffle of more than one channel."""
    if not _is_of_images(expr) or expr.kwargs["order"] != [0, 1, 4, 2, 5, 3]:
        return None
    split = expr.kwargs["split"]
    batch, channels, first, second, height, width = split
    shape = (batch, channels, height * first, width * second)
    is_one = first == second > 1 and channels > 1 and shape == expr.output.type.shape
    return first if is_one and all(chosen == KEPT for chosen in expr.kwargs["index"]) else None


def _pixel_unshuffled(expr: CallFunction) -> int | None:
    if not _is_of_images(expr) or expr.kwargs["order"] != [0, 1, 3, 5, 2, 4]:
        return None
    split = expr.kwargs["split"]
    batch, channels, height, first, width, second = split
    shape = (batch, channels * first * second, height, width)
    is_one = first == second > 1 and channels > 1 and shape == expr.output.type.shape
    return first if is_one and all(chosen == KEPT for chosen in expr.kwargs["index"]) else None
