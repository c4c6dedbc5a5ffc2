"""Align the ranks of the operands of elementwise ops, so that one layout serves them all."""

from __future__ import annotations

from tmconvert.ir import CallFunction, Constant, InternalGraph, TensorNode
from tmconvert.ir.tree import replaced
from tmconvert.passes.patterns.matching import is_elementwise
from tmconvert.passes.rewriting import Emits, RewritePass


class AlignRanks(Emits, RewritePass[list[TensorNode]]):
    """Reshape operands of elementwise ops to the rank of the result, by leading axes of extent 1.

    Constants of one element stay. The match are the operands of lower rank.
    """

    name = "align_ranks"

    def match(self, graph: InternalGraph, call: CallFunction) -> list[TensorNode] | None:
        if not is_elementwise(call, self.catalogue):
            return None
        operands = [node for node in dict.fromkeys(call.inputs) if isinstance(node, TensorNode)]
        rank = max((len(node.type.shape) for node in operands), default=0)
        return [node for node in operands if len(node.type.shape) < rank and not _is_scalar(node)] or None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: list[TensorNode]) -> str:
        rank = max(len(node.type.shape) for node in call.inputs if isinstance(node, TensorNode))
        emitter = self.emitter(call)
        for node in match:
            shape = [1] * (rank - len(node.type.shape)) + list(node.type.shape)
            aligned = emitter.call("aten::reshape", node, shape)
            graph.set_arguments(call, replaced(call.args, node, aligned), call.kwargs)
        names = ", ".join(f"`{node.name}`" for node in match)
        return f"takes {names} with rank {rank} now"


def _is_scalar(node: TensorNode) -> bool:
    return isinstance(node.expr, Constant) and node.type.size == 1
