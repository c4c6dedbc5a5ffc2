"""Quantize/dequantize pairs of exported programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.quantized import dynamic
from tmconvert.frontends.torch.adapters.quantized.fake_quant import is_known, qparams_of
from tmconvert.frontends.torch.adapters.values import axis_of, cast, dtype_called
from tmconvert.ir import CallFunction, QParams
from tmconvert.ir.emitter import Emitter

ATEN = Table()


def _integers(g: Emitter, x, parameters: QParams, dtype: np.dtype) -> Any:
    return g.call("tm::quantize", x, dtype=dtype.name, **_said(parameters))


@ATEN.add("int_repr")
def int_repr(g, input):
    if input.qparams is None:
        raise Refusal("the integers of a tensor that is not quantized are requested")
    return _integers(g, input, input.qparams, np.dtype("uint8" if input.qparams.quant_max > 127 else "int8"))


def _said(parameters: QParams) -> dict[str, Any]:
    """Returns the attributes of tm::quantize."""
    return {
        "scale": list(parameters.scale),
        "zero_point": list(parameters.zero_point),
        "quant_min": parameters.quant_min,
        "quant_max": parameters.quant_max,
        "axis": -1 if parameters.channel_axis is None else parameters.channel_axis,
    }


def _quantized_to(g: Emitter, value, parameters: QParams) -> Any:
    """Returns the tensor that was quantized with these parameters to give ``value``, or None."""
    maker = getattr(value, "expr", None)
    if not isinstance(maker, CallFunction) or maker.function != "tm::quantize":
        return None
    said = {name: maker.kwargs[name] for name in _said(parameters)}
    return maker.args[0] if said == _said(parameters) else None


def _real(g: Emitter, value, parameters: QParams, dtype) -> Any:
    """Dequantizes integers."""
    given = _quantized_to(g, value, parameters)
    if given is None:
        shape = [1] * len(g.type(value).shape)
        if parameters.channel_axis is not None:
            shape[parameters.channel_axis] = -1
        numbers = (parameters.scale, parameters.zero_point)
        scale, zero = (g.constant(np.array(each, np.float32).reshape(shape)) for each in numbers)
        given = dynamic.numbers(g, value, scale, zero if any(parameters.zero_point) else None)
    result = g.quantized(given, parameters, _as_it_is)
    return result if dtype is None else cast(g, result, dtype_called(dtype))


def _as_it_is(array: np.ndarray, qparams: QParams) -> np.ndarray:
    return array


@ATEN.add("quantized_decomposed::quantize_per_tensor")
def decomposed_quantize_per_tensor(g, input, scale, zero_point, quant_min, quant_max, dtype):
    if not is_known(g, scale, zero_point):
        return dynamic.steps(g, input, scale, zero_point, quant_min, quant_max, dtype)
    parameters = qparams_of(g, scale, zero_point, quant_min, quant_max)
    return _integers(g, input, parameters, dtype_called(dtype))


@ATEN.add("quantized_decomposed::dequantize_per_tensor")
def decomposed_dequantize_per_tensor(
    g, input, scale, zero_point, quant_min, quant_max, dtype, *, out_dtype=None
):
    if not is_known(g, scale, zero_point):
        return dynamic.numbers(g, input, scale, zero_point, out_dtype)
    return _real(g, input, qparams_of(g, scale, zero_point, quant_min, quant_max), out_dtype)


@ATEN.add("quantized_decomposed::quantize_per_channel")
def decomposed_quantize_per_channel(g, input, scales, zero_points, axis, quant_min, quant_max, dtype):
    parameters = qparams_of(g, scales, zero_points, quant_min, quant_max, axis_of(g, input, axis))
    return _integers(g, input, parameters, dtype_called(dtype))


@ATEN.add("quantized_decomposed::dequantize_per_channel")
def decomposed_dequantize_per_channel(
    g, input, scales, zero_points, axis, quant_min, quant_max, dtype, *, out_dtype=None
):
    zeros = 0 if zero_points is None else zero_points
    parameters = qparams_of(g, scales, zeros, quant_min, quant_max, axis_of(g, input, axis))
    return _real(g, input, parameters, out_dtype)
