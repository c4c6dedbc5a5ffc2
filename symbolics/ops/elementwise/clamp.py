"""aten::clamp, min(max(x, min), max); either bound may be None, and max wins."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import NUMBERS, Op, Tensor, number
from tmconvert.symbolics.results import fits
from tmconvert.symbolics.traits import Clamp

Number = int | float

# the bounds of TFLite's activations
TFLITE_ACTIVATIONS = {(0, None): "RELU", (0, 6): "RELU6", (-1, 1): "RELU_N1_TO_1", (0, 1): "RELU_0_TO_1"}


def _result(x: TensorType, min: Number | None, max: Number | None) -> TensorType:
    bounds = [bound for bound in (min, max) if bound is not None]
    if not bounds:
        raise ValueError("needs min or max")
    if any(np.isnan(bound) for bound in bounds):
        raise ValueError(f"the bounds {min} and {max} are not numbers")
    if not all(fits(bound, x.dtype) for bound in bounds):
        raise ValueError(f"the bounds {min} and {max} do not have the type of {x}")
    return x


clamp = Op(
    "aten::clamp",
    args=[Tensor("x", NUMBERS), number("min", None), number("max", None)],
    result=_result,
    layout=ANY,
    traits=[Clamp("min", "max")],
)


@clamp.reference
def clamp_ref(x: np.ndarray, min: Number | None, max: Number | None) -> np.ndarray:
    if min is not None:
        x = np.maximum(x, np.array(min, x.dtype))
    return x if max is None else np.minimum(x, np.array(max, x.dtype))


def _open_ends(x: Any, min: Number | None, max: Number | None) -> tuple[Number | None, Number | None]:
    """Replaces infinite bounds of floats: Clip's defaults are the largest finite numbers."""
    if x.dtype.kind != "f":
        return min, max
    return (-np.inf if min is None else float(min)), (np.inf if max is None else float(max))


@clamp.onnx(since=11)  # the bounds are inputs
def clamp_onnx11(g, x, min, max):
    bounds = _open_ends(x, min, max)
    return g.op("Clip", x, *(None if bound is None else g.const(bound, x.dtype) for bound in bounds))


@clamp.onnx(since=6)  # the bounds are attributes
def clamp_onnx6(g, x, min, max):
    if None not in (min, max) and min > max:  # not allowed here
        min = max
    lower, upper = _open_ends(x, min, max)
    return g.op("Clip", x, min=lower, max=upper)


@clamp.tflite()
def clamp_tflite(g, x, min, max):
    activation = TFLITE_ACTIVATIONS.get((min, max))
    if x.dtype == np.float32 and activation and g.has(activation):
        return g.op(activation, x)
    if min is not None:
        x = g.op("MAXIMUM", x, g.const(min))
    return x if max is None else g.op("MINIMUM", x, g.const(max))


@clamp.caffe()  # Clip is BVLC's alone, and relu(x - min) + min loses what is small beside min
def clamp_caffe(g, x, min, max):
    if min is not None:
        x = idioms.caffe.at_least(g, x, float(min))
    if max is None:
        return x
    return g.op("Power", idioms.caffe.at_least(g, g.op("Power", x, scale=-1.0), -float(max)), scale=-1.0)
