"""Resizing in integers as two convolutions of 1x1, over the rows and over the columns as channels.

A pixel between two others has the weights 1 - f and f. With f = p / q and a scale of 1 / q for each row of
the matrix they are the integers q - p and p, which are exact where q is at most 127.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tmconvert.lowering.target_graph import Attribute, Operator, Value
from tmconvert.targets.tflite.alternatives.form_writer import FormWriter, sizes

_PARTS = 127
_MOST = 1 << 26  # products
_WINDOW: dict[str, Attribute] = {
    "padding": "VALID",
    "stride_w": 1,
    "stride_h": 1,
    "dilation_w_factor": 1,
    "dilation_h_factor": 1,
    "fused_activation_function": "NONE",
}


def by_products(g: FormWriter) -> list[Operator] | None:
    """RESIZE_BILINEAR or RESIZE_NEAREST_NEIGHBOR."""
    x, y = g.operator.inputs[0], g.operator.outputs[0]
    shape, made = sizes(x), sizes(y)
    if x is None or shape is None or made is None or x.quantization is None:
        return None
    batch, rows, columns, channels = shape
    if batch * made[1] * columns * channels * (rows + made[2]) > _MOST:
        return None
    value = g.transpose(x, [0, 2, 3, 1])  # [N, W, C, H]
    value = _mapped(g, value, made[1])
    value = _mapped(g, g.transpose(value, [0, 3, 2, 1]), made[2])  # [N, H, C, W]
    return g.last("TRANSPOSE", [value, g.ints([0, 1, 3, 2])])


def _mapped(g: FormWriter, x: Value, extent: int) -> Value:
    """Resizes the last axis."""
    known, given = x.quantization, int(x.shape[-1])
    assert known is not None
    if given == extent:
        return x
    weights, scales = np.zeros((extent, 1, 1, given), np.int8), np.zeros(extent, np.float32)
    for at in range(extent):
        place = _place(g.operator, at, given, extent)
        low = min(max(math.floor(place), 0), given - 1)
        part = (place - low).limit_denominator(_PARTS) if 0 < place < given - 1 else Fraction(0)
        times = _PARTS // part.denominator
        scales[at] = 1 / (times * part.denominator)
        weights[at, 0, 0, low] = times * (part.denominator - part.numerator)
        if part:
            weights[at, 0, 0, low + 1] = times * part.numerator
    wide = np.int64 if x.dtype == np.int16 else np.int32
    weight, bias = (
        g.quantized(weights, scales),
        g.quantized(np.zeros(extent, wide), scales * float(known.scale[0])),
    )
    return g.op("CONV_2D", [x, weight, bias], [*x.shape[:-1], extent], options=_WINDOW)


def _place(operator: Operator, at: int, given: int, extent: int) -> Fraction:
    """Returns where an element of the result is among the given ones, which nearest neighbours round."""
    options, is_near = operator.attributes, operator.type == "RESIZE_NEAREST_NEIGHBOR"
    if options.get("align_corners") and extent > 1:
        place = Fraction(at * (given - 1), extent - 1)
        return Fraction(math.floor(place + Fraction(1, 2))) if is_near else place
    half = Fraction(1, 2) if options.get("half_pixel_centers") else Fraction(0)
    place = (at + half) * Fraction(given, extent)
    return Fraction(min(math.floor(place), given - 1)) if is_near else place - half


RESIZES = (("RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR", by_products),)
