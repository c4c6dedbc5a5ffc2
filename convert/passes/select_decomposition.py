"""Select the fused op or the decomposition of calls that a calibrated model has in both forms."""

from __future__ import annotations

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.passes.rewriting import RewritePass

IN_STEPS = "tm::in_steps"


class SelectDecomposition(RewritePass[TensorNode]):
    """Replace each ``tm::in_steps`` by its decomposition, or by the fused op.

    The match is the selected operand. It gets the name of the result, and its quantization parameters where
    it has none of its own.
    """

    name = "select_decomposition"

    def __init__(self, *, takes_steps: bool = False) -> None:
        self.takes_steps = takes_steps

    def takes(self, function: str) -> bool:
        return function == IN_STEPS

    def match(self, graph: InternalGraph, call: CallFunction) -> TensorNode | None:
        taken = call.args[int(self.takes_steps)]
        assert isinstance(taken, TensorNode)
        return taken

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: TensorNode) -> str:
        name, qparams, was = call.output.name, call.output.qparams, match.name
        graph.replace_uses(call.output, match)
        graph.remove(call)
        graph.rename(match, name)
        match.qparams = match.qparams or qparams
        return f"is the {'decomposition' if self.takes_steps else 'fused op'} `{was}` now"
