"""Propagate QParams, and fold requantize into producers."""

from __future__ import annotations

from dataclasses import replace

from tmconvert.ir import CallFunction, InternalGraph, QParams, TensorNode
from tmconvert.passes.rewriting import PassRecord, Rule, apply_rules
from tmconvert.symbolics.registry import has_trait, op_has, trait_of
from tmconvert.symbolics.traits import KeepsQparams, Reshaped, SelectsElements, View

REQUANTIZE = "tm::requantize"


class PropagateQparams:
    """Fold ``tm::requantize`` into producers; propagate QParams through ops that keep them.

    Per-channel parameters are propagated only through a reshape that keeps the channel axis. With
    ``dissolves`` every requantize is removed: a float model does not need it, except with a file of
    parameters, in which all QParams belong to tensors.
    """

    name = "propagate_qparams"

    def __init__(self, *, dissolves: bool = False) -> None:
        self.dissolves = dissolves

    def run(self, graph: InternalGraph) -> PassRecord:
        record = PassRecord(self.name)
        apply_rules(record, graph, (_FoldRequantize(dissolves=self.dissolves),))
        apply_rules(record, graph, (_KeepQparams(),))
        apply_rules(record, graph, (_RoundBefore(),), backwards=True)
        return record


class _FoldRequantize(Rule[TensorNode]):
    """Removes a requantize if its operand can have its parameters; the match is that operand."""

    def __init__(self, *, dissolves: bool) -> None:
        self.dissolves = dissolves

    def takes(self, function: str) -> bool:
        return function == REQUANTIZE

    def match(self, graph: InternalGraph, call: CallFunction) -> TensorNode | None:
        operand = call.args[0]
        return operand if isinstance(operand, TensorNode) else None

    def check(self, graph: InternalGraph, call: CallFunction, match: TensorNode) -> str | None:
        wanted = call.output.qparams
        if self.dissolves or wanted in (None, match.qparams):
            return None
        assert wanted is not None
        if match.qparams is not None:
            return f"`{match.name}` has other quantization parameters"
        if not _is_alone(graph, match, wanted):
            return f"`{match.name}` is used with other quantization parameters, or with none"
        viewed = _unrounded_source(graph, match)
        if viewed is not None:
            return f"`{match.name}` has the elements of `{viewed.name}`, which is used without parameters"
        return None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: TensorNode) -> str:
        result, name, was = call.output, call.output.name, match.name
        wanted = result.qparams
        if match.qparams is None and wanted is not None and _is_alone(graph, match, wanted):
            match.qparams = wanted
        is_named = graph.is_output(result) and match not in graph.inputs
        graph.replace_uses(result, match)
        graph.remove(call)
        if is_named:
            graph.rename(match, name)
        return f"was folded into `{was}`"


def _is_alone(graph: InternalGraph, operand: TensorNode, qparams: QParams) -> bool:
    """Whether all users of a tensor read it with these parameters."""
    if graph.is_output(operand) or _has_another(operand, qparams):
        return False
    return all(
        isinstance(user, CallFunction)
        and user.function == REQUANTIZE
        and isinstance(user.output, TensorNode)
        and user.output.qparams == qparams
        for user in operand.users
    )


def _has_another(node: TensorNode, qparams: QParams) -> bool:
    """Whether a tensor has the elements of one with other parameters, which that one keeps."""
    while isinstance(node.expr, CallFunction) and has_trait(node.expr, KeepsQparams):
        node = node.expr.args[0]
        if node.qparams is not None:
            return node.qparams != qparams
    return False


def _unrounded_source(graph: InternalGraph, node: TensorNode) -> TensorNode | None:
    """Returns the tensor of which ``node`` is a view, where others use it without quantization parameters.

    A view that a layout makes an identity is the tensor itself, which cannot have parameters for one of them.
    """
    while isinstance(node.expr, CallFunction) and has_trait(node.expr, View):
        node = node.expr.args[0]
        if node.qparams is not None:
            return None
        if len(node.users) > 1 or graph.is_output(node):
            return node
    return None


class _KeepQparams(Rule[QParams]):
    """Gives the results of an op that keeps QParams those of its first operand, which are the match."""

    def takes(self, function: str) -> bool:
        return op_has(function, KeepsQparams)

    def match(self, graph: InternalGraph, call: CallFunction) -> QParams | None:
        operand = call.args[0]
        has_all = all(isinstance(node, TensorNode) and node.qparams is not None for node in call.outputs)
        return operand.qparams if isinstance(operand, TensorNode) and not has_all else None

    def check(self, graph: InternalGraph, call: CallFunction, match: QParams) -> str | None:
        if any(_kept(call, match, node) is not None for node in _without_qparams(call)):
            return None
        return "the per-channel quantization parameters of its operand do not fit its result"

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: QParams) -> str:
        for node in _without_qparams(call):
            kept = _kept(call, match, node)
            node.qparams = None if kept is None else replace(kept, inferred=True)
        return f"has the quantization parameters of `{call.args[0].name}`"


class _RoundBefore(Rule[TensorNode]):
    """Gives the operand of an op that selects elements, its only user, the QParams of the result.

    The match is the operand. A view that a layout makes an identity has no result of its own.
    """

    def takes(self, function: str) -> bool:
        return op_has(function, SelectsElements)

    def match(self, graph: InternalGraph, call: CallFunction) -> TensorNode | None:
        operand, wanted = call.args[0], call.output.qparams
        if wanted is None or wanted.channel_axis is not None or not isinstance(operand, TensorNode):
            return None
        is_alone = operand.users == (call,) and not graph.is_output(operand)
        is_open = operand.qparams is None and isinstance(operand.expr, CallFunction)
        return operand if is_alone and is_open else None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: TensorNode) -> str:
        match.qparams = call.output.qparams
        return f"has its quantization parameters from `{match.name}` on"


def _without_qparams(call: CallFunction) -> list[TensorNode]:
    return [node for node in call.outputs if isinstance(node, TensorNode) and node.qparams is None]


def _kept(call: CallFunction, qparams: QParams, node: TensorNode) -> QParams | None:
    """Returns the operand's parameters for the result ``node``; None where they do not fit."""
    if qparams.channel_axis is None:
        return qparams
    operand, view = call.args[0], trait_of(call, View)
    if view is None or not isinstance(operand, TensorNode):
        return None
    if not all(isinstance(step, Reshaped) for step in view.of(call)):
        return None
    return qparams.reshaped(operand.type.shape, node.type.shape)
