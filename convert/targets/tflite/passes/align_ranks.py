"""Gives the operands of elementwise ops one rank, so that one memory order serves them all."""

from __future__ import annotations

from collections.abc import Mapping

from tmconvert.ir import CallFunction, Constant, InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.tree import replaced
from tmconvert.passes.matching import rule_of
from tmconvert.symbolics.op import Op


class AlignRanks:
    """Puts axes of extent 1 in front of operands of lower rank; rank 0 and rank 1 of one element stay."""

    name = "align_ranks"

    def __init__(self, catalogue: Mapping[str, Op]) -> None:
        self.catalogue = catalogue

    def run(self, graph: InternalGraph) -> bool:
        changed = False
        for expr in graph.exprs():
            if isinstance(expr, CallFunction) and self._is_elementwise(expr):
                changed |= self._align(graph, expr)
        return changed

    def _is_elementwise(self, expr: CallFunction) -> bool:
        rule = rule_of(expr, self.catalogue)
        return rule.kind == "any" and not rule.axes

    def _align(self, graph: InternalGraph, expr: CallFunction) -> bool:
        rank = max((len(node.type.shape) for node in expr.inputs if isinstance(node, TensorNode)), default=0)
        emitter = GraphEmitter(
            graph, self.catalogue, source=expr.source, made_by=self.name, name=expr.output.name, before=expr
        )
        changed = False
        for node in dict.fromkeys(expr.inputs):
            assert isinstance(node, TensorNode)
            shape = node.type.shape
            if len(shape) == rank or (node.type.size == 1 and isinstance(node.expr, Constant)):
                continue
            aligned = emitter.call("aten::reshape", node, [1] * (rank - len(shape)) + list(shape))
            graph.set_arguments(expr, replaced(expr.args, node, aligned), expr.kwargs)
            changed = True
        return changed
