"""TFLite: fuse activations into the operators before them."""

from __future__ import annotations

from tmconvert.ir.types import name_of
from tmconvert.lowering.rewriting import producers
from tmconvert.lowering.target_graph import Operator, TargetGraph
from tmconvert.passes.rewriting import PassRecord
from tmconvert.targets.tflite.operators import spec

# integer kernels of these know no activation
FLOAT_ONLY = frozenset({"float32"})


def fuse_activations(graph: TargetGraph, *, keeps_qparams: bool = False) -> PassRecord:
    """Fuse activations into the operators before them, in place.

    An activation stays when the value before it has another user, is an output of the model,
    or is made by an operator without a fused activation; with ``keeps_qparams`` also when that value has
    other quantization parameters than the result.
    """
    record = PassRecord("fuse_activations")
    makers = producers(graph)
    uses = graph.use_counts()
    kept: list[Operator] = []
    for operator in graph.operators:
        value = operator.inputs[0] if spec(operator.type).activation is not None else None
        producer = None if value is None else makers.get(id(value))
        if value is None or producer is None:
            kept.append(operator)
            continue
        reason = _refusal(producer, operator, uses, keeps_qparams=keeps_qparams)
        if reason is not None:
            record.refuse(operator, reason)
            kept.append(operator)
            continue
        record.did(operator, f"was fused into the {producer.type} `{value.name}`")
        producer.attributes["fused_activation_function"] = operator.type
        producer.outputs = operator.outputs
        makers[id(operator.outputs[0])] = producer
    graph.operators = kept
    return record


def _refusal(
    producer: Operator, activation: Operator, uses: dict[int, int], *, keeps_qparams: bool
) -> str | None:
    """Returns why an activation cannot be fused into the operator before it."""
    value = producer.outputs[0]
    if not spec(producer.type).fuses_activation:
        return f"{producer.type} has no fused activation"
    if uses[id(value)] != 1:
        return f"its input `{value.name}` has other users, or is an output of the model"
    if producer.attributes.get("fused_activation_function", "NONE") != "NONE":
        return f"the {producer.type} before it has another activation"
    if name_of(value.dtype) not in FLOAT_ONLY:
        return f"kernels of {value.dtype} have no fused activation"
    if keeps_qparams and value.qparams not in (None, activation.outputs[0].qparams):
        return f"its input `{value.name}` has quantization parameters of its own"
    return None
