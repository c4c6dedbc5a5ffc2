"""Dynamic quantization, expressed in plain ops: scales are computed from the data at run time.

Weights keep their integers. Scales of activations are computed by the model, so that they are not QParams of
a tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.layers import convolutions
from tmconvert.frontends.torch.adapters.quantized.operators import LAYERS
from tmconvert.frontends.torch.adapters.values import cast, dtype_called, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

ATEN = Table()
_SMALLEST = 6.1e-5  # scale of torch's layers
_EPS = float(np.finfo(np.float32).eps)


def _ends(x: Term, axes: list[int] | None = None) -> tuple[Term, Term]:
    """Returns minimum and maximum including 0, along the last axis or of all elements."""
    along: dict[str, Any] = {} if axes is None else {"dim": axes, "keepdim": True}
    return x.call("amin", **along).minimum(0), x.call("amax", **along).maximum(0)


def _rounded(x: Term, scale: Term, zero: Term, low: int, high: int) -> Term:
    """clamp(round(x / scale + zero), low, high): quantized values, as floats."""
    return ((x * (x.like(1) / scale)).round() + zero).call("clamp", min=float(low), max=float(high))


# ---- layers, which round what they take


def _measured(x: Term, high: int) -> tuple[Term, Term]:
    """Computes scale and zero point for values 0 to ``high`` like FBGEMM's ChooseQuantizationParams."""
    least, largest = _ends(x)
    scale = (largest - least) / high
    zero = (-least / scale.maximum(np.finfo(np.float32).tiny)).round()
    return scale.maximum(_SMALLEST), zero.call("clamp", min=0.0, max=float(high))


def _fake(x: Term, scale: Term, zero: Term, high: int) -> Term:
    return (_rounded(x, scale, zero, 0, high) - zero) * scale


def _layer(name: str, formula: Callable[..., Any]) -> None:
    @ATEN.add(f"quantized::{name}_dynamic")
    def layer(g, x, packed, reduce_range=False):
        """A layer with quantized input ``x``. The result of a convolution is rounded to the same scale."""
        high = 127 if reduce_range and packed["engine"] != "qnnpack" else 255  # which passes over it
        term = Term(g, x)
        scale, zero = _measured(term, high)
        made = formula(g, _fake(term, scale, zero, high).value, packed)
        return made if name == "linear" else _fake(Term(g, made), scale, zero, 255).value


for _name, _formula in LAYERS.items():
    _layer(_name, _formula)


@ATEN.add("quantized::linear_relu_dynamic")
def linear_relu_dynamic(g, x, packed, reduce_range=False):
    return g.call("aten::relu", ATEN["quantized::linear_dynamic"](g, x, packed, reduce_range))


@ATEN.add("quantized::linear_dynamic_fp16")
def linear_dynamic_fp16(g, x, packed):
    """Linear layer with weights rounded to float16."""
    return convolutions.linear(g, x, packed["weight"], packed["bias"])


@ATEN.add("quantized::linear_relu_dynamic_fp16")
def linear_relu_dynamic_fp16(g, x, packed):
    return g.call("aten::relu", linear_dynamic_fp16(g, x, packed))


# ---- exported programs, which measure first and round then


@ATEN.add("quantized_decomposed::choose_qparams")
def choose_qparams(g, input, quant_min, quant_max, eps, dtype):
    least, largest = _ends(Term(g, input))
    scale = ((largest - least) / (quant_max - quant_min)).maximum(eps)
    zero = (scale.like(quant_min) - (least / scale).round()).call(
        "clamp", min=float(quant_min), max=float(quant_max)
    )
    return _one(scale), _one(zero)


@ATEN.add("quantized_decomposed::choose_qparams_symmetric")
def choose_qparams_symmetric(g, input, quant_min, quant_max, eps, dtype):
    least, largest = _ends(Term(g, input))
    scale = ((-least).maximum(largest) / ((quant_max - quant_min) / 2)).maximum(eps)
    middle = 128 if dtype_called(dtype) == np.uint8 else 0
    return _one(scale), _one(scale * 0 + middle)


def _one(x: Term) -> Any:
    return reshaped(x.g, x.value, [1])


@ATEN.add("quantized_decomposed::choose_qparams_per_token")
def choose_qparams_per_token(g, input, dtype):
    scale = Term(g, input).abs().call("amax", dim=[-1], keepdim=True).maximum(1e-5) / 127
    return scale.value, (scale * 0).value


@ATEN.add(
    "quantized_decomposed::choose_qparams_per_token_asymmetric",
    "quantized_decomposed::_choose_qparams_per_token_asymmetric_impl",
)
def choose_qparams_per_token_asymmetric(g, input, dtype):
    least, largest = _ends(Term(g, input), [-1])
    scale = ((largest - least) / 255).maximum(_EPS)
    low, high = least / scale, largest / scale
    zero = (low + high > 1).where(-low - 128, -high + 127)
    return scale.value, zero.call("clamp", min=-128.0, max=127.0).round().value


def steps(g: Emitter, x, scale, zero_point, quant_min: int, quant_max: int, dtype) -> Any:
    """Quantizes ``x`` to an integer type with scales that are not constants."""
    x, scale, zero = (Term(g, cast(g, each, np.float32)) for each in (x, scale, zero_point))
    return cast(g, _rounded(x, scale, zero, quant_min, quant_max).value, dtype_called(dtype))


def numbers(g, steps, scale, zero_point=None, dtype=None):
    """Dequantizes integers."""
    made = Term(g, cast(g, steps, np.float32))
    if zero_point is not None:
        made = made - Term(g, cast(g, zero_point, np.float32))
    made = made * Term(g, cast(g, scale, np.float32))
    return made.value if dtype is None else cast(g, made.value, dtype_called(dtype))


@ATEN.add("quantized_decomposed::quantize_per_token")
def quantize_per_token(g, input, scales, zero_points, quant_min, quant_max, dtype):
    """clamp(round(x / scale + zero), low, high): the zero point is added before rounding."""
    x, scale, zero = (Term(g, cast(g, each, np.float32)) for each in (input, scales, zero_points))
    whole = (x * (x.like(1) / scale) + zero).round().call("clamp", min=float(quant_min), max=float(quant_max))
    return cast(g, whole.value, dtype_called(dtype))


@ATEN.add("quantized_decomposed::dequantize_per_token")
def dequantize_per_token(g, input, scales, zero_points, quant_min, quant_max, dtype, output_dtype=None):
    return numbers(g, input, scales, zero_points, output_dtype)
