"""Folds the normalization of images into the convolutions that take them, where this is exact.

A factor of each channel becomes part of the weights: zeros that a convolution pads with stay zeros. A sum
becomes part of the bias without padding only, as padded zeros would have to be other values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, Constant, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.symbolics.op import Ops

Step = tuple[str, np.ndarray]  # an op, and its constant operand of shape [1, C or 1, 1, 1]
CONVOLUTION = "aten::conv2d"


def folded_scale(
    node: TensorNode, catalogue: Ops, added: Step | None, factor: Step | None
) -> tuple[Step | None, Step | None]:
    """Changes the weights of the convolutions that read ``node``, the normalized images, and returns the
    steps that remain.

    Both remain where something else reads the images, or where weights are quantized or not constant.
    """
    calls = [user for user in node.users if isinstance(user, CallFunction)]
    graph = None if node.expr is None else node.expr.graph
    if graph is None or graph.is_output(node) or len(calls) != len(node.users):
        return added, factor
    if not calls or not all(_takes(call, node) for call in calls):
        return added, factor
    sums = added is not None and all(not any(call.kwargs["padding"]) for call in calls)
    for call in calls:
        _fold(call, catalogue, added if sums else None, factor)
    return (None if sums else added), None


def _takes(call: CallFunction, node: TensorNode) -> bool:
    if call.function != CONVOLUTION or call.args[0] is not node or isinstance(call.kwargs["padding"], str):
        return False
    constants = [each for each in call.args[1:] if each is not None]
    return node not in constants and all(
        isinstance(each.expr, Constant) and each.qparams is None and each.dtype == np.float32
        for each in constants
    )


def _fold(call: CallFunction, catalogue: Ops, added: Step | None, factor: Step | None) -> None:
    _, weight, bias = call.args[:3]
    stored = np.asarray(weight.expr.value).astype(np.float64)
    groups = int(call.kwargs["groups"])
    channels = stored.shape[1] * groups

    def by_group(step: Step | None, default: float) -> np.ndarray:
        values = (
            np.full(channels, default) if step is None else np.broadcast_to(step[1].reshape(-1), channels)
        )
        return values.astype(np.float64).reshape(groups, 1, -1, *(1,) * (stored.ndim - 2))

    grouped = stored.reshape(groups, -1, *stored.shape[1:]) * by_group(factor, 1.0)
    args: list[Any] = list(call.args)
    assert call.graph is not None
    g = GraphEmitter(
        call.graph, catalogue, source=call.source, made_by="preprocess", name=weight.name, before=call
    )
    args[1] = g.constant(grouped.reshape(stored.shape).astype(np.float32))
    if added is not None:
        moved = (grouped * by_group(added, 0.0)).reshape(stored.shape).sum(tuple(range(1, stored.ndim)))
        known = 0.0 if bias is None else np.asarray(bias.expr.value).astype(np.float64)
        args[2] = g.constant((moved + known).astype(np.float32))
    call.graph.set_arguments(call, tuple(args), dict(call.kwargs))
