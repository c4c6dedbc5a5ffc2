"""ONNX, opset 11: pass negative indices to the operators that take them."""

from __future__ import annotations

import math

from tmconvert.ir import CallFunction, Expr, InternalGraph, Node, TensorNode
from tmconvert.ir.symbolic.dims import Size, same_size
from tmconvert.passes.rewriting import Emits, RewritePass
from tmconvert.symbolics.registry import has_trait
from tmconvert.symbolics.traits import IndexedRows, IndexesAxis, View


class DropIndexWraps(Emits, RewritePass[TensorNode]):
    """Remove ``tm::wrap_index`` before ops that count negative indices from the end of an axis of its extent.

    So do Gather and GatherElements since opset 11. An embedding, which has no negative indices, becomes the
    selection of rows that is the same operator. The match are the indices before they are wrapped.
    """

    name = "drop_index_wraps"

    def takes(self, function: str) -> bool:
        return function == "tm::wrap_index"

    def match(self, graph: InternalGraph, call: CallFunction) -> TensorNode | None:
        x = call.args[0]
        return x if isinstance(x, TensorNode) and x.type == call.output.type else None

    def check(self, graph: InternalGraph, call: CallFunction, match: TensorNode) -> str | None:
        waiting: list[Node] = [call.output]
        while waiting:
            node = waiting.pop()
            if graph.is_output(node):
                return f"`{node.name}` is an output of the model"
            for user in node.users:
                if has_trait(user, View):
                    waiting += user.outputs
                elif not _gathers(user, node, call.kwargs["extent"]):
                    return f"`{node.name}` has users other than gathers along an axis of this extent"
        return None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: TensorNode) -> str:
        waiting: list[Node] = [call.output]
        while waiting:
            for user in list(waiting.pop().users):
                if has_trait(user, View):
                    waiting += user.outputs
                elif has_trait(user, IndexedRows):
                    assert isinstance(user, CallFunction)
                    self._select_rows(graph, user)
        graph.replace_uses(call.output, match)
        graph.remove(call)
        return "was removed: its users take negative indices"

    def _select_rows(self, graph: InternalGraph, embedding: CallFunction) -> None:
        """Replaces an embedding by an ``index_select``; ``fold_index_reshapes`` drops the reshapes."""
        emitter, (table, indices) = self.emitter(embedding), embedding.args[:2]
        picks = emitter.call("aten::reshape", indices, [math.prod(indices.type.shape)])
        rows = emitter.call("aten::index_select", table, 0, picks)
        shape = list(embedding.output.type.shape)
        graph.substitute(embedding.output, emitter.call("aten::reshape", rows, shape))


def _gathers(user: Expr, index: Node, extent: Size) -> bool:
    """Whether ``user`` gathers by ``index`` along an axis of this extent."""
    is_of_rows = has_trait(user, IndexedRows)
    if not isinstance(user, CallFunction) or not (is_of_rows or has_trait(user, IndexesAxis)):
        return False
    x, indices = user.args[:2]
    axis = 0 if is_of_rows else user.kwargs["dim"] % x.type.rank
    return indices is index and x is not index and same_size(x.type.shape[axis], extent)
