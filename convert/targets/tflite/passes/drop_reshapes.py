"""TFLite: remove RESHAPEs whose result is only flattened or reshaped again."""

from __future__ import annotations

from tmconvert.lowering.rewriting import producers
from tmconvert.lowering.target_graph import Operator, TargetGraph
from tmconvert.passes.rewriting import PassRecord


def drop_reshapes(graph: TargetGraph) -> PassRecord:
    """Remove each RESHAPE before another, or before a FULLY_CONNECTED with a matrix as its result, in
    place.
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
    """Returns the RESHAPE before ``operator``, if the operator ignores shape."""
    if operator.type == "FULLY_CONNECTED":
        is_blind = not operator.attributes.get("keep_num_dims")
    else:
        is_blind = operator.type == "RESHAPE"
    given = operator.inputs[0] if is_blind else None
    earlier = None if given is None else makers.get(id(given))
    if given is None or earlier is None or earlier.type != "RESHAPE" or earlier.inputs[0] is None:
        return None
    return earlier
