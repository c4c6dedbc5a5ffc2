"""Quantizes and dequantizes tensors with ONNX's scales and zero points, and records their QParams."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapters.values import cast, rank, reshaped
from tmconvert.frontends.shared.recorded_qparams import integers_of_range
from tmconvert.ir import CallFunction, QParams
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.fake_quant import ONNX
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.ops.quantization import quantize as quantize_op
from tmconvert.symbolics.registry import has_trait
from tmconvert.symbolics.traits import Concatenates, SelectsElements


class Integers(NamedTuple):
    """An integer type of ONNX: the type of its tensors in a graph, and its range."""

    dtype: np.dtype
    low: int
    high: int

    @classmethod
    def of(cls, dtype: np.dtype, bits: int = 0) -> Integers:
        """Returns the type of a tensor, whose elements have ``bits`` if that is less than its type has."""
        if dtype.kind not in "iu":
            raise Refusal(f"quantization to {dtype.name} is not supported")
        bits = bits or dtype.itemsize * 8
        low = 0 if dtype.kind == "u" else -(1 << (bits - 1))
        return cls(dtype, low, low + (1 << bits) - 1)


def parameters(g: Emitter, x, scale, zero, axis: int, integers: Integers) -> QParams | None:
    """Returns the parameters of a tensor; None where they are computed, or no QParams can express them."""
    known = g.known(scale)
    zeros = np.zeros(1) if zero is None else g.known(zero)
    if known is None or zeros is None:
        return None
    is_one = known.size == 1
    if not is_one and (known.ndim != 1 or not rank(g, x)):
        return None
    scales = known.reshape(-1).astype(np.float32)
    zeros = np.broadcast_to(zeros.reshape(-1), scales.shape)
    made = QParams(
        integers_of_range(integers.low, integers.high),
        tuple(scales.tolist()),
        tuple(int(each) for each in zeros),
        integers.low,
        integers.high,
        None if is_one else axis % rank(g, x),
        integers.low < 0 and not zeros.any(),
        ONNX,
    )
    return None if made.problem(g.type(x).shape) else made


def _quantize_attributes(qparams: QParams) -> dict[str, Any]:
    """Returns the attributes of tm::quantize."""
    return {
        "scale": list(qparams.scale),
        "zero_point": list(qparams.zero_point),
        "quant_min": qparams.quant_min,
        "quant_max": qparams.quant_max,
        "axis": -1 if qparams.channel_axis is None else qparams.channel_axis,
        "divides": True,
    }


def quantized(g: Emitter, x, scale, zero, integers: Integers, axis: int = 1, block: int = 0) -> Any:
    """Quantizes: ``clip(round(x / scale) + zero)``."""
    x = cast(g, x, np.float32)
    found = parameters(g, x, scale, zero, axis, integers)
    if found is not None and integers.dtype.name in quantize_op.DTYPES:
        return g.call("tm::quantize", x, dtype=integers.dtype.name, **_quantize_attributes(found))
    step = Term(g, cast(g, spread(g, x, scale, axis, block), np.float32))
    steps = (Term(g, x) / step).round()
    if zero is not None:
        steps = steps + Term(g, cast(g, spread(g, x, zero, axis, block), np.float32))
    return cast(g, steps.clamp(float(integers.low), float(integers.high)).value, integers.dtype)


def dequantized(g: Emitter, value, scale, zero, axis: int = 1, block: int = 0, bits: int = 0) -> Any:
    """Dequantizes: ``(value - zero) * scale`` in float32, with its QParams."""
    dtype = g.type(value).dtype
    found = None
    if dtype.kind in "iu" and dtype.itemsize < 4 and not block:
        found = parameters(g, value, scale, zero, axis, Integers.of(dtype, bits))
    given = None if found is None else _before(g, value, found)
    if given is None:
        given = _dequantized_by_formula(g, value, scale, zero, axis, block)
    return given if found is None else g.quantized(given, found, _as_it_is)


def _as_it_is(array: np.ndarray, qparams: QParams) -> np.ndarray:
    return array


def _dequantized_by_formula(g: Emitter, value, scale, zero, axis: int, block: int) -> Any:
    made = Term(g, cast(g, value, np.float32))
    known = None if zero is None else g.known(zero)
    if zero is not None and (known is None or known.any()):
        made = made - Term(g, cast(g, spread(g, value, zero, axis, block), np.float32))
    return (made * Term(g, cast(g, spread(g, value, scale, axis, block), np.float32))).value


def _before(g: Emitter, value, qparams: QParams) -> Any:
    """Returns the tensor that was quantized with these parameters to give ``value``; None for other values.

    What moves elements of the integers moves those of the tensor instead.
    """
    maker = getattr(value, "expr", None)
    if not isinstance(maker, CallFunction):
        return None
    if maker.function == "tm::quantize":
        said = {name: maker.kwargs[name] for name in _quantize_attributes(qparams)}
        return maker.args[0] if said == _quantize_attributes(qparams) else None
    is_joint = has_trait(maker, Concatenates)
    if qparams.channel_axis is not None or not (has_trait(maker, SelectsElements) or is_joint):
        return None
    operands = maker.args[0] if is_joint else maker.args[:1]
    found = [_before(g, each, qparams) for each in operands]
    if any(each is None for each in found):
        return None
    moved = [g.quantized(each, qparams, _as_it_is) for each in found]
    first = moved if is_joint else moved[0]
    arguments = g.catalogue[maker.function].by_name([first, *maker.args[1:]], maker.kwargs)
    return g.call(maker.function, **arguments)


def spread(g: Emitter, x, vector, axis: int, block: int = 0) -> Any:
    """Returns scales or zero points in a shape that broadcasts against ``x``: one number, one for each index
    of an axis, or one for each ``block`` of them.
    """
    type_, shape = g.type(vector), g.type(x).shape
    if type_.size == 1 and not block:
        return reshaped(g, vector, [])
    place = axis % len(shape)
    if type_.rank == 1 and not block:
        return reshaped(g, vector, [-1 if each == place else 1 for each in range(len(shape))])
    if type_.rank != len(shape):
        raise Refusal(f"the scales {type_} do not fit a tensor {g.type(x)}")
    if not block:  # one for each element of other axes
        return vector
    sizes = list(type_.shape)
    copies = reshaped(g, vector, [*sizes[: place + 1], 1, *sizes[place + 1 :]])
    copies = g.call("aten::expand", copies, [*sizes[: place + 1], block, *sizes[place + 1 :]])
    whole = reshaped(g, copies, [*sizes[:place], sizes[place] * block, *sizes[place + 1 :]])
    return (
        whole
        if sizes[place] * block == shape[place]
        else g.call("aten::slice", whole, place, 0, shape[place], 1)
    )
