"""Dynamic-range quantization: TFLite operators with weights of integers and float32 activations.

The kernel quantizes the activations at run time, with 255 steps of their range, which includes 0: one range
for each row of a product, and for each image of a convolution. In LiteRT 2.3 with XNNPACK that takes a third
to a quarter of the time of float32, and a FULLY_CONNECTED with int4 weights less. A CONV_2D with int4 weights
is LiteRT's own, and takes as long as float32. DEPTHWISE_CONV_2D is excluded: XNNPACK has no kernel for it,
and LiteRT's own takes seven times as long as float32.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from tmconvert.lowering.target_graph import Attribute, Operator, Value
from tmconvert.targets.tflite.operators import spec
from tmconvert.targets.tflite.runtimes import runtime_refusal
from tmconvert.targets.tflite.versions import operator_version

KERNEL_STEPS = 255


def takes(operator: Operator, index: int, stored: Value, runtime: int) -> bool:
    """Whether ``operator`` supports ``stored`` weights directly in the runtime 2.``runtime``."""
    known = spec(operator.type).dynamic_range
    if known is None or index != known.weight or stored.quantization is None or runtime < known.since:
        return False
    if stored.dtype != np.int8 and stored.dtype.name not in known.narrow:
        return False
    x = operator.inputs[known.x]
    if x is None or x.is_constant or x.dtype != np.float32:
        return False
    # LiteRT's own kernel reads a weight that is broadcast in the wrong places.
    if operator.type == "BATCH_MATMUL" and len(stored.shape) > 2 and stored.shape[:-2] != x.shape[:-2]:
        return False
    made = with_stored(operator, index, stored)
    return runtime_refusal(made.type, operator_version(made), runtime) is None


def with_stored(operator: Operator, index: int, stored: Value) -> Operator:
    """Returns ``operator`` with the stored weight at ``index``."""
    inputs = [stored if i == index else value for i, value in enumerate(operator.inputs)]
    attributes = dict(operator.attributes)
    known = spec(operator.type).dynamic_range
    if known is not None and known.says_asymmetric:
        attributes["asymmetric_quantize_inputs"] = True
    return replace(operator, inputs=inputs, attributes=attributes)


def with_rounded_activations(operator: Operator, steps: int) -> list[Operator]:
    """Returns ``operator`` in float32, after operators that round activations like its kernel for integer
    weights.

    step = (max(x, 0) - min(x, 0)) / steps for each range, x' = round(x / step) * step. The kernel has
    ``KERNEL_STEPS``; with a few less x is rounded to other values.
    """
    known = spec(operator.type).dynamic_range
    assert known is not None
    x = operator.inputs[known.x]
    assert x is not None
    axes = _axes_of_a_range(operator, x)
    ranges = tuple(1 if axis in axes else extent for axis, extent in enumerate(x.shape))
    made: list[Operator] = []

    def op(type: str, *inputs: Value, shape: tuple[int, ...] = x.shape, **attributes: Attribute) -> Value:
        name = f"{operator.name}/round_{len(made)}"
        result = Value(name, x.dtype, shape)
        made.append(Operator(type, list(inputs), [result], attributes, name, operator.source))
        return result

    def number(value: float) -> Value:
        return Value(f"{operator.name}/{value}", x.dtype, (), np.array(value, x.dtype))

    over = Value(f"{operator.name}/axes", np.dtype(np.int32), (len(axes),), np.array(axes, np.int32))
    low = op("MINIMUM", op("REDUCE_MIN", x, over, shape=ranges, keep_dims=True), number(0), shape=ranges)
    high = op("MAXIMUM", op("REDUCE_MAX", x, over, shape=ranges, keep_dims=True), number(0), shape=ranges)
    extent = op("SUB", high, low, shape=ranges)
    step = op("MUL", extent, number(1 / steps), shape=ranges)
    step = op("MAXIMUM", step, number(float(np.finfo(np.float32).tiny)), shape=ranges)
    rounded = op("MUL", op("ROUND", op("DIV", x, step)), step)
    inputs = [rounded if i == known.x else value for i, value in enumerate(operator.inputs)]
    return [*made, replace(operator, inputs=inputs)]


def _axes_of_a_range(operator: Operator, x: Value) -> list[int]:
    """Returns the axes of the activations that share one quantization range."""
    rank = len(x.shape)
    if operator.type == "FULLY_CONNECTED":
        weight = operator.inputs[1]
        assert weight is not None
        within = itertools.takewhile(
            lambda axis: math.prod(x.shape[axis + 1 :]) != weight.shape[1], range(rank - 1, -1, -1)
        )
        return sorted(within)
    if operator.type == "BATCH_MATMUL":
        return [rank - (2 if operator.attributes.get("adj_x") else 1)]
    return list(range(1, rank))
