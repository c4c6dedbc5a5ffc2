"""ONNX: fold zeros around images into the convolutions that take them, which may pad each end by itself."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tmconvert.lowering.rewriting import remove_operators
from tmconvert.lowering.target_graph import Operator, TargetGraph
from tmconvert.passes.rewriting import PassRecord


def fold_pads(graph: TargetGraph) -> PassRecord:
    """Fold each Pad of spatial axes by zeros into the Conv operators after it, where only these use it."""
    record = PassRecord("fold_pads")
    pads = {id(each.outputs[0]): each for each in graph.operators if each.type == "Pad"}
    if not pads:
        return record
    uses = graph.use_counts()
    layers: dict[int, list[Operator]] = defaultdict(list)
    for operator in graph.operators:
        if operator.type == "Conv" and id(operator.inputs[0]) in pads:
            layers[id(operator.inputs[0])].append(operator)
    gone: set[int] = set()
    for number, operator in pads.items():
        amounts = _spatial_zeros(operator)
        if amounts is None or number not in layers:
            continue
        if len(layers[number]) != uses[number]:
            record.refuse(operator, "other operators than convolutions use it")
            continue
        for layer in layers[number]:
            known = np.asarray(layer.attributes.get("pads") or [0] * len(amounts))
            layer.attributes["pads"] = (known + amounts).tolist()
            layer.inputs[0] = operator.inputs[0]
        names = ", ".join(f"`{layer.outputs[0].name}`" for layer in layers[number])
        record.did(operator, f"was folded into the padding of {names}")
        gone.add(id(operator))
    remove_operators(graph, gone)
    return record


def _spatial_zeros(operator: Operator) -> list[int] | None:
    """Returns the zeros before and after each spatial axis; None for another padding."""
    given = operator.attributes.get("pads")
    if len(operator.inputs) > 1 and operator.inputs[1] is not None:
        given = operator.inputs[1].data
    if given is None or operator.attributes.get("mode", "constant") != "constant" or not _is_zero(operator):
        return None
    before, after = np.split(np.asarray(given), 2)
    if before[:2].any() or after[:2].any() or (before < 0).any() or (after < 0).any():
        return None
    return [*map(int, before[2:]), *map(int, after[2:])]


def _is_zero(operator: Operator) -> bool:
    """Whether the value that is added is 0: an attribute until opset 10, and an input from then on."""
    if len(operator.inputs) > 2 and operator.inputs[2] is not None:
        data = operator.inputs[2].data
        return data is not None and not np.any(np.asarray(data))
    return not operator.attributes.get("value", 0)
