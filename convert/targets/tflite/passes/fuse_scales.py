"""TFLite: fuse a scale and a bias for each channel of images into a depthwise convolution."""

from __future__ import annotations

import math

import numpy as np

from tmconvert.ir.lazy_constants import viewed
from tmconvert.lowering.rewriting import producers, remove_operators
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.passes.rewriting import PassRecord


def fuse_scales(graph: TargetGraph) -> PassRecord:
    """Fuse MUL and ADD of a constant for each channel into one DEPTHWISE_CONV_2D, in place.

    It reads and writes the image once, and XNNPACK has a kernel for that. An activation of the ADD is kept.
    """
    record = PassRecord("fuse_scales")
    makers = producers(graph)
    uses = graph.use_counts()
    gone: set[int] = set()
    for operator in graph.operators:
        shift = _per_channel(operator, "ADD")
        if shift is None:
            continue
        given, summands = shift
        scale = _per_channel(makers.get(id(given)), "MUL")
        if scale is None:
            continue
        if uses[id(given)] != 1:
            record.refuse(operator, f"its input `{given.name}` has other users")
            continue
        if _is_active(makers[id(given)]):
            record.refuse(operator, f"its input `{given.name}` has a fused activation")
            continue
        x, factors = scale
        gone.add(id(makers[id(given)]))
        record.did(operator, f"was fused with the MUL `{given.name}` into a DEPTHWISE_CONV_2D")
        operator.type = "DEPTHWISE_CONV_2D"
        name, channels = operator.outputs[0].name, x.shape[3]
        operator.inputs = [
            x,
            _reshaped(factors, (1, 1, 1, channels), f"{name}_factors"),
            _reshaped(summands, (channels,), f"{name}_summands"),
        ]
        operator.attributes |= {"depth_multiplier": 1, "padding": "VALID", "stride_h": 1, "stride_w": 1}
    remove_operators(graph, gone)
    return record


def _per_channel(operator: Operator | None, type: str) -> tuple[Value, Value] | None:
    """Returns the operand of ``operator``, and its constant per channel."""
    if operator is None or operator.type != type:
        return None
    for x, constant in (operator.inputs, operator.inputs[::-1]):
        if x is None or constant is None or not constant.is_constant or x.is_constant:
            continue
        is_image = len(x.shape) == 4 and x.dtype == np.float32
        if is_image and constant.shape and math.prod(constant.shape) == constant.shape[-1] == x.shape[3]:
            return x, constant
    return None


def _is_active(operator: Operator) -> bool:
    return operator.attributes.get("fused_activation_function", "NONE") != "NONE"


def _reshaped(value: Value, shape: tuple[int, ...], name: str) -> Value:
    if value.shape == shape:
        return value
    assert value.stored is not None
    return Value(name, value.dtype, shape, viewed(value.stored, lambda array: array.reshape(shape)))
