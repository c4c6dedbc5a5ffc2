"""Fake quantization, and torch tensors of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.values import axis_of, cast, is_tensor, reshaped
from tmconvert.frontends.torch.quantized_types import INTEGERS, fake_quant_qparams
from tmconvert.ir import QParams
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.fake_quant import fake_quantize_to_even, quantize_to_even

ATEN = Table()
OBSERVING = "run module.apply(torch.ao.quantization.disable_observer) before it is exported"
DYNAMIC = "convert the model with static quantization or QAT, which gives it constant scales"


def qparams_of(g: Emitter, scale, zero_point, low: int, high: int, axis: int | None = None) -> QParams:
    """Returns QParams from constants, tensors or numbers. Raises Refusal."""
    scales, zeros = _numbers(g, scale), _numbers(g, zero_point)
    if (zeros != np.rint(zeros)).any():
        raise Refusal("a zero point is not an integer")
    if axis is None and max(scales.size, zeros.size) > 1:
        raise Refusal("per-tensor quantization has more than one scale")
    if scales.size != zeros.size:
        zeros = np.broadcast_to(zeros, scales.shape)
    return fake_quant_qparams(scales, zeros, int(low), int(high), axis)


def _numbers(g: Emitter, value) -> np.ndarray:
    if not is_tensor(value):
        return np.array([value], np.float64)
    known = g.known(value)
    if known is None:
        raise Refusal("a scale is computed from the data", DYNAMIC)
    return np.asarray(known).reshape(-1).astype(np.float64)


def is_known(g: Emitter, *values) -> bool:
    """Whether all of these are numbers or constants."""
    return all(not is_tensor(value) or g.known(value) is not None for value in values)


@ATEN.add("fake_quantize_per_tensor_affine")
def fake_quantize_per_tensor_affine(g, input, scale, zero_point, quant_min, quant_max):
    if not is_known(g, scale, zero_point):
        return _in_reals(g, input, scale, zero_point, None, quant_min, quant_max)
    return g.quantized(input, qparams_of(g, scale, zero_point, quant_min, quant_max), fake_quantize_to_even)


@ATEN.add("fake_quantize_per_channel_affine")
def fake_quantize_per_channel_affine(g, input, scale, zero_point, axis, quant_min, quant_max):
    axis = axis_of(g, input, axis)
    if is_known(g, scale, zero_point) and (_numbers(g, zero_point) % 1 == 0).all():
        parameters = qparams_of(g, scale, zero_point, quant_min, quant_max, axis)
        return g.quantized(input, parameters, fake_quantize_to_even)
    return _in_reals(g, input, scale, zero_point, axis, quant_min, quant_max)


def _in_reals(g: Emitter, x, scale, zero_point, axis: int | None, low: int, high: int) -> Any:
    """Fake quantization with computed scales, or fractional zero points as of embeddings: no QParams fit."""
    shape = [-1 if each == axis else 1 for each in range(len(g.type(x).shape))]
    tensors = (each if is_tensor(each) else g.constant(np.float32(each)) for each in (scale, zero_point))
    scale, zero_point = (reshaped(g, cast(g, each, np.float32), shape) for each in tensors)
    steps = g.call("aten::add", g.call("aten::div", x, scale), zero_point)
    steps = g.call("aten::clamp", g.call("aten::round", steps), float(low), float(high))
    return g.call("aten::mul", g.call("aten::sub", steps, zero_point), scale)


@ATEN.add("_fake_quantize_learnable_per_tensor_affine")
def _fake_quantize_learnable_per_tensor_affine(
    g, input, scale, zero_point, quant_min, quant_max, grad_factor=1.0
):
    whole = g.constant(np.clip(np.rint(_numbers(g, zero_point)), quant_min, quant_max))
    return fake_quantize_per_tensor_affine(g, input, scale, whole, quant_min, quant_max)


@ATEN.add("_fake_quantize_learnable_per_channel_affine")
def _fake_quantize_learnable_per_channel_affine(
    g, input, scale, zero_point, axis, quant_min, quant_max, grad_factor=1.0
):
    whole = g.constant(np.clip(np.rint(_numbers(g, zero_point)), quant_min, quant_max))
    return fake_quantize_per_channel_affine(g, input, scale, whole, axis, quant_min, quant_max)


def _with_mask(name: str, of: str) -> None:
    """Fake quantization with a second result, a mask for gradients."""

    @ATEN.add(name)
    def adapter(g, *args, **kwargs):
        return ATEN[of](g, *args, **kwargs), None


for _kind in ("tensor", "channel"):
    _name = f"fake_quantize_per_{_kind}_affine"
    _with_mask(f"{_name}_cachemask", _name)


@ATEN.add("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
    g, input, scale, zero_point, fake_quant_enabled, quant_min, quant_max
):
    if not _numbers(g, fake_quant_enabled).any():
        return input, None
    return fake_quantize_per_tensor_affine(g, input, scale, zero_point, quant_min, quant_max), None


@ATEN.add("fused_moving_avg_obs_fake_quant")
def fused_moving_avg_obs_fake_quant(
    g, input, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const,
    quant_min, quant_max, ch_axis, per_row_fake_quant=False, symmetric_quant=False,
):  # fmt: skip
    if not is_known(g, observer_on, fake_quant_on) or _numbers(g, observer_on).any():
        raise Refusal("an observer changes the scales while the model runs", OBSERVING)
    if not _numbers(g, fake_quant_on).any():
        return input
    if per_row_fake_quant:
        return fake_quantize_per_channel_affine(g, input, scale, zero_point, ch_axis, quant_min, quant_max)
    return fake_quantize_per_tensor_affine(g, input, scale, zero_point, quant_min, quant_max)


_with_mask("_fused_moving_avg_obs_fq_helper", "fused_moving_avg_obs_fake_quant")


# ---- quantized tensors of torch: real values with QParams


@ATEN.add("quantize_per_tensor")
def quantize_per_tensor(g, input, scale, zero_point, dtype):
    kind = INTEGERS[dtype.name]
    parameters = kind.qparams((*_numbers(g, scale),), (*map(int, _numbers(g, zero_point)),))
    return g.quantized(input, parameters, quantize_to_even)


@ATEN.add("quantize_per_channel")
def quantize_per_channel(g, input, scales, zero_points, axis, dtype):
    kind = INTEGERS[dtype.name]
    zeros = tuple(map(int, _numbers(g, zero_points)))
    parameters = kind.qparams((*_numbers(g, scales),), zeros, axis_of(g, input, axis))
    return g.quantized(input, parameters, quantize_to_even)


ATEN.add("dequantize")(lambda g, input: input)


def _refused(name: str, reason: str, hint: str) -> None:
    @ATEN.add(name)
    def adapter(g, *args, **kwargs):
        raise Refusal(reason, hint)


for _name in ("quantize_per_tensor_dynamic", "choose_qparams_optimized", "_choose_qparams_per_tensor"):
    _refused(_name, "it computes scales from the data at run time, which no target file can express", DYNAMIC)
for _name in ("quantized_lstm", "quantized_gru"):
    _refused(
        _name,
        "a recurrent layer with dynamic quantization rounds to data-dependent scales in each step",
        "convert the layer in float, with --weights int8; or quantize it for torch.ao.nn.quantizable.LSTM",
    )
