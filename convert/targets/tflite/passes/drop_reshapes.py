"""TFLite: shapes that the next operator does not look at need no RESHAPE."""

from __future__ import annotations

from tmconvert.lowering.target_graph import Operator, TargetGraph
from tmconvert.targets.tflite.passes.fuse_activations import use_counts


def drop_reshapes(graph: TargetGraph) -> int:
    """Takes out, in place, each RESHAPE in front of another, or of a FULLY_CONNECTED that gives a matrix.

    Returns the number of those that disappeared.
    """
    producers = {id(value): operator for operator in graph.operators for value in operator.outputs}
    for operator in graph.operators:
        while (earlier := _shaped_before(operator, producers)) is not None:
            operator.inputs = [earlier.inputs[0], *operator.inputs[1:]]
    uses = use_counts(graph)
    kept = [
        operator
        for operator in graph.operators
        if operator.type != "RESHAPE" or id(operator.outputs[0]) in uses
    ]
    dropped = len(graph.operators) - len(kept)
    graph.operators = kept
    return dropped


def _shaped_before(operator: Operator, producers: dict[int, Operator]) -> Operator | None:
    """The RESHAPE of what ``operator`` takes, where that does not matter."""
    if operator.type == "FULLY_CONNECTED":
        is_blind = not operator.attributes.get("keep_num_dims")
    else:
        is_blind = operator.type == "RESHAPE"
    given = operator.inputs[0] if is_blind else None
    earlier = None if given is None else producers.get(id(given))
    if given is None or earlier is None or earlier.type != "RESHAPE" or earlier.inputs[0] is None:
        return None
    return earlier if earlier.inputs[0].qparams == given.qparams else None
