"""Fake quantization, and the pairs of quantize and dequantize that exported programs have in its place."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import Refusal
from ....ir import CallFunction, QParams
from ....ir.emitter import Emitter
from ....ir.fake_quant import fake_quantize_to_even, quantize_to_even
from ...recorded_grids import integers_of_range
from ...table import Table
from ..grids import INTEGERS, float32
from .values import axis_of, cast, dtype_called, is_tensor, reshaped

ATEN = Table()
DYNAMIC = "give it scales of its own: convert the model with static quantization, or for training"


def grid(g: Emitter, scale: Any, zero_point: Any, low: int, high: int, axis: int | None = None) -> QParams:
    """Parameters of constants, tensors or numbers. Raises Refusal."""
    scales, zeros = _numbers(g, scale), _numbers(g, zero_point)
    if (zeros != np.rint(zeros)).any():
        raise Refusal("a zero point is not a whole number")
    if axis is None and max(scales.size, zeros.size) > 1:
        raise Refusal("there are several scales for a whole tensor")
    if scales.size != zeros.size:
        zeros = np.broadcast_to(zeros, scales.shape)
    zero_points = tuple(map(int, zeros))
    return QParams(
        integers_of_range(low, high),
        tuple(map(float32, scales)),
        zero_points,
        int(low),
        int(high),
        axis,
        low < 0 and not any(zero_points),
        "PyTorch",
    )


def _numbers(g: Emitter, value: Any) -> np.ndarray:
    if not is_tensor(value):
        return np.array([value], np.float64)
    known = g.known(value)
    if known is None:
        raise Refusal("a scale is computed from the data", DYNAMIC)
    return np.asarray(known).reshape(-1).astype(np.float64)


@ATEN.add("fake_quantize_per_tensor_affine")
def fake_quantize_per_tensor_affine(
    g: Emitter, input: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Any:
    return g.quantized(input, grid(g, scale, zero_point, quant_min, quant_max), fake_quantize_to_even)


@ATEN.add("fake_quantize_per_channel_affine")
def fake_quantize_per_channel_affine(
    g: Emitter, input: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int
) -> Any:
    axis = axis_of(g, input, axis)
    zeros = _numbers(g, zero_point)
    if (zeros == np.rint(zeros)).all():
        parameters = grid(g, scale, zero_point, quant_min, quant_max, axis)
        return g.quantized(input, parameters, fake_quantize_to_even)
    return _in_reals(g, input, scale, zero_point, axis, quant_min, quant_max)


def _in_reals(g: Emitter, x: Any, scale: Any, zero_point: Any, axis: int, low: int, high: int) -> Any:
    """With zero points between integers, as tables of embeddings have them: no parameters say that."""
    shape = [-1 if each == axis else 1 for each in range(len(g.type(x).shape))]
    scale, zero_point = (reshaped(g, cast(g, each, np.float32), shape) for each in (scale, zero_point))
    steps = g.call("aten::add", g.call("aten::div", x, scale), zero_point)
    steps = g.call("aten::clamp", g.call("aten::round", steps), float(low), float(high))
    return g.call("aten::mul", g.call("aten::sub", steps, zero_point), scale)


@ATEN.add("_fake_quantize_learnable_per_tensor_affine")
def _fake_quantize_learnable_per_tensor_affine(
    g: Emitter,
    input: Any,
    scale: Any,
    zero_point: Any,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Any:
    whole = g.constant(np.clip(np.rint(_numbers(g, zero_point)), quant_min, quant_max))
    return fake_quantize_per_tensor_affine(g, input, scale, whole, quant_min, quant_max)


@ATEN.add("_fake_quantize_learnable_per_channel_affine")
def _fake_quantize_learnable_per_channel_affine(
    g: Emitter,
    input: Any,
    scale: Any,
    zero_point: Any,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Any:
    whole = g.constant(np.clip(np.rint(_numbers(g, zero_point)), quant_min, quant_max))
    return fake_quantize_per_channel_affine(g, input, scale, whole, axis, quant_min, quant_max)


# ---- quantized tensors of torch: values on their grids


@ATEN.add("quantize_per_tensor")
def quantize_per_tensor(g: Emitter, input: Any, scale: Any, zero_point: Any, dtype: Any) -> Any:
    kind = INTEGERS[dtype.name]
    parameters = kind.qparams((*_numbers(g, scale),), (*map(int, _numbers(g, zero_point)),))
    return g.quantized(input, parameters, quantize_to_even)


@ATEN.add("quantize_per_channel")
def quantize_per_channel(g: Emitter, input: Any, scales: Any, zero_points: Any, axis: int, dtype: Any) -> Any:
    kind = INTEGERS[dtype.name]
    zeros = tuple(map(int, _numbers(g, zero_points)))
    parameters = kind.qparams((*_numbers(g, scales),), zeros, axis_of(g, input, axis))
    return g.quantized(input, parameters, quantize_to_even)


@ATEN.add("dequantize")
def dequantize(g: Emitter, input: Any) -> Any:
    return input


@ATEN.add("int_repr")
def int_repr(g: Emitter, input: Any) -> Any:
    if input.qparams is None:
        raise Refusal("it is asked for the integers of a tensor that has none")
    return _integers(g, input, input.qparams, np.dtype("uint8" if input.qparams.quant_max > 127 else "int8"))


# ---- pairs of exported programs


def _integers(g: Emitter, x: Any, parameters: QParams, dtype: np.dtype) -> Any:
    return g.call("tm::quantize", x, dtype=dtype.name, **_said(parameters))


def _said(parameters: QParams) -> dict[str, Any]:
    """The attributes of tm::quantize."""
    return {
        "scale": list(parameters.scale),
        "zero_point": list(parameters.zero_point),
        "quant_min": parameters.quant_min,
        "quant_max": parameters.quant_max,
        "axis": -1 if parameters.channel_axis is None else parameters.channel_axis,
    }


def _quantized_to(g: Emitter, value: Any, parameters: QParams) -> Any:
    """The tensor that was quantized with these parameters to make ``value``; None for another value."""
    maker = getattr(value, "expr", None)
    if not isinstance(maker, CallFunction) or maker.function != "tm::quantize":
        return None
    said = {name: maker.kwargs[name] for name in _said(parameters)}
    return maker.args[0] if said == _said(parameters) else None


def _real(g: Emitter, value: Any, parameters: QParams, dtype: Any) -> Any:
    """The numbers that integers stand for."""
    given = _quantized_to(g, value, parameters)
    if given is None:
        shape = [1] * len(g.type(value).shape)
        if parameters.channel_axis is not None:
            shape[parameters.channel_axis] = -1
        scale = g.constant(np.array(parameters.scale, np.float32).reshape(shape))
        given = cast(g, value, np.float32)
        if any(parameters.zero_point):
            zero = g.constant(np.array(parameters.zero_point, np.float32).reshape(shape))
            given = g.call("aten::sub", given, zero)
        given = g.call("aten::mul", given, scale)
    result = g.quantized(given, parameters, _as_it_is)
    return result if dtype is None else cast(g, result, dtype_called(dtype))


def _as_it_is(array: np.ndarray, qparams: QParams) -> np.ndarray:
    return array


@ATEN.add("quantized_decomposed::quantize_per_tensor")
def decomposed_quantize_per_tensor(
    g: Emitter, input: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int, dtype: Any
) -> Any:
    parameters = grid(g, scale, zero_point, quant_min, quant_max)
    return _integers(g, input, parameters, dtype_called(dtype))


@ATEN.add("quantized_decomposed::dequantize_per_tensor")
def decomposed_dequantize_per_tensor(
    g: Emitter,
    input: Any,
    scale: Any,
    zero_point: Any,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    *,
    out_dtype: Any = None,
) -> Any:
    return _real(g, input, grid(g, scale, zero_point, quant_min, quant_max), out_dtype)


@ATEN.add("quantized_decomposed::quantize_per_channel")
def decomposed_quantize_per_channel(
    g: Emitter,
    input: Any,
    scales: Any,
    zero_points: Any,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: Any,
) -> Any:
    parameters = grid(g, scales, zero_points, quant_min, quant_max, axis_of(g, input, axis))
    return _integers(g, input, parameters, dtype_called(dtype))


@ATEN.add("quantized_decomposed::dequantize_per_channel")
def decomposed_dequantize_per_channel(
    g: Emitter,
    input: Any,
    scales: Any,
    zero_points: Any,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    *,
    out_dtype: Any = None,
) -> Any:
    zeros = 0 if zero_points is None else zero_points
    parameters = grid(g, scales, zeros, quant_min, quant_max, axis_of(g, input, axis))
    return _real(g, input, parameters, out_dtype)


def _dynamic(name: str) -> None:
    @ATEN.add(name)
    def adapter(g: Emitter, *args: Any, **kwargs: Any) -> Any:
        raise Refusal("it finds scales in the data as it runs, which no file can say", DYNAMIC)


_DYNAMIC = """fused_moving_avg_obs_fake_quant quantize_per_tensor_dynamic choose_qparams_optimized
    quantized_decomposed::choose_qparams quantized_decomposed::choose_qparams_symmetric
    quantized_decomposed::choose_qparams_per_token
    quantized_decomposed::_choose_qparams_per_token_asymmetric_impl
    quantized::linear_dynamic quantized::linear_relu_dynamic quantized::linear_dynamic_fp16
    quantized::conv1d_dynamic quantized::conv2d_dynamic quantized::conv3d_dynamic
    quantized_lstm quantized_gru quantized_lstm_cell quantized_gru_cell"""
for _name in _DYNAMIC.split():
    _dynamic(_name)
