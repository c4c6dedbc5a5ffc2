"""Takes one of the two forms that a calibrated model has of what is no integer kernel."""

from __future__ import annotations

from tmconvert.ir import CallFunction, InternalGraph, TensorNode

IN_STEPS = "tm::in_steps"


class SelectDecomposition:
    """Replaces each ``tm::in_steps`` by its second operand, the steps, or by the first, the whole.

    What is chosen has the name of the result, and its grid where it has none of its own.
    """

    name = "choose_steps"

    def __init__(self, *, takes_steps: bool = False) -> None:
        self.takes_steps = takes_steps

    def run(self, graph: InternalGraph) -> bool:
        calls = [
            expr for expr in graph.exprs() if isinstance(expr, CallFunction) and expr.function == IN_STEPS
        ]
        for call in calls:
            chosen, result = call.args[int(self.takes_steps)], call.output
            assert isinstance(chosen, TensorNode) and isinstance(result, TensorNode)
            name, grid = result.name, result.qparams
            graph.replace_uses(result, chosen)
            graph.remove(call)
            graph.rename(chosen, name)
            chosen.qparams = chosen.qparams or grid
        return bool(calls)
