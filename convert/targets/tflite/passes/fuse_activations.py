"""TFLite: an activation becomes part of the operator in front of it."""

from __future__ import annotations

from tmconvert.ir.types import name_of
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value

FUSABLE = {"RELU": "RELU", "RELU6": "RELU6", "RELU_N1_TO_1": "RELU_N1_TO_1"}
PRODUCERS = frozenset(
    {
        "ADD",
        "AVERAGE_POOL_2D",
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "DIV",
        "FULLY_CONNECTED",
        "MAX_POOL_2D",
        "MUL",
        "SUB",
    }
)
# integer kernels of these know no activation
FLOAT_ONLY = frozenset({"float32"})


def fuse_activations(graph: TargetGraph, *, keeps_grids: bool = False) -> int:
    """Fuses in place; the number of activations that disappeared.

    An activation stays when the value in front of it has another user, is an output of the model,
    or is made by an operator without a fused activation; with ``keeps_grids`` also when that value has
    quantization parameters of its own.
    """
    producers = {id(value): operator for operator in graph.operators for value in operator.outputs}
    uses = use_counts(graph)
    kept: list[Operator] = []
    for operator in graph.operators:
        producer = _fusable_producer(operator, producers, uses)
        if producer is None or (keeps_grids and producer.outputs[0].qparams is not None):
            kept.append(operator)
            continue
        producer.attributes["fused_activation_function"] = FUSABLE[operator.type]
        producer.outputs = operator.outputs
        producers[id(operator.outputs[0])] = producer
    fused = len(graph.operators) - len(kept)
    graph.operators = kept
    return fused


def _fusable_producer(
    operator: Operator, producers: dict[int, Operator], uses: dict[int, int]
) -> Operator | None:
    if operator.type not in FUSABLE or operator.inputs[0] is None:
        return None
    value = operator.inputs[0]
    producer = producers.get(id(value))
    if producer is None or producer.type not in PRODUCERS or uses[id(value)] != 1:
        return None
    if producer.attributes.get("fused_activation_function", "NONE") != "NONE":
        return None
    return producer if name_of(value.dtype) in FLOAT_ONLY else None


def use_counts(graph: TargetGraph) -> dict[int, int]:
    counts: dict[int, int] = {}
    users: list[Value | None] = [value for operator in graph.operators for value in operator.inputs]
    for value in [*users, *graph.outputs]:
        if value is not None:
            counts[id(value)] = counts.get(id(value), 0) + 1
    return counts
