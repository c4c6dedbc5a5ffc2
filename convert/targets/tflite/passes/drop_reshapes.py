"""TFLite: remove RESHAPEs whose result is only reshaped again."""

from __future__ import annotations

from tmconvert.lowering.rewriting import producers
from tmconvert.lowering.target_graph import Operator, TargetGraph
from tmconvert.passes.rewriting import PassRecord


def drop_reshapes(graph: TargetGraph) -> PassRecord:
    """Remove each RESHAPE before another, in place.

    One before a FULLY_CONNECTED stays, although LiteRT's kernel ignores the shape of what it is given: the
    GPU of LiteRT 2.3 then takes the last axis alone as the row, and computes something else.
    """
    record = PassRecord("drop_reshapes")
    makers = producers(graph)
    passed: dict[int, tuple[Operator, Operator]] = {}  # each with an operator that takes its input instead
    for operator in graph.operators:
        while (earlier := _shaped_before(operator, makers)) is not None:
            x = earlier.inputs[0]
            if x is not None and x.qparams != earlier.outputs[0].qparams:
                record.refuse(earlier, "it has other quantization parameters than its input")
                break
            operator.inputs = [x, *operator.inputs[1:]]
            passed[id(earlier)] = earlier, operator
    uses = graph.use_counts()
    for earlier, operator in passed.values():
        if id(earlier.outputs[0]) in uses:
            record.refuse(earlier, f"others than `{operator.outputs[0].name}` need its shape")
        else:
            record.did(earlier, f"was removed: `{operator.outputs[0].name}` takes any shape")
    graph.operators = [
        operator
        for operator in graph.operators
        if operator.type != "RESHAPE" or id(operator.outputs[0]) in uses
    ]
    return record


def _shaped_before(operator: Operator, makers: dict[int, Operator]) -> Operator | None:
    """Returns the RESHAPE before ``operator``, if that is one, too."""
    given = operator.inputs[0] if operator.type == "RESHAPE" else None
    earlier = None if given is None else makers.get(id(given))
    if given is None or earlier is None or earlier.type != "RESHAPE" or earlier.inputs[0] is None:
        return None
    return earlier
