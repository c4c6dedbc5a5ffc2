"""ONNX, opset 11: pass negative indices to the operators that take them."""

from __future__ import annotations

from tmconvert.ir import CallFunction, Expr, InternalGraph, Node, TensorNode
from tmconvert.ir.symbolic.dims import Size, same_size
from tmconvert.passes.rewriting import RewritePass
from tmconvert.symbolics.registry import has_trait
from tmconvert.symbolics.traits import IndexesAxis, View


class DropIndexWraps(RewritePass[TensorNode]):
    """Remove ``tm::wrap_index`` before ops that count negative indices from the end of an axis of its extent.

    So do Gather and GatherElements since opset 11. The match are the indices before they are wrapped.
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
        graph.replace_uses(call.output, match)
        graph.remove(call)
        return "was removed: its users take negative indices"


def _gathers(user: Expr, index: Node, extent: Size) -> bool:
    """Whether ``user`` gathers by ``index`` along an axis of this extent."""
    if not isinstance(user, CallFunction) or not has_trait(user, IndexesAxis):
        return False
    x, indices, dim = user.args[0], user.args[1], user.kwargs["dim"]
    return indices is index and x is not index and same_size(x.type.shape[dim % x.type.rank], extent)
