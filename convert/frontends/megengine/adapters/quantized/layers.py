"""megengine.module.quantized: integer layers, converted to float ops with QParams."""

from __future__ import annotations

from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions import convolutions, matrices, modes, tensor
from tmconvert.frontends.megengine.adapters.modules import functional_forms
from tmconvert.frontends.megengine.adapters.operators import windows as window_operators
from tmconvert.frontends.megengine.adapters.quantized import qat
from tmconvert.frontends.megengine.adapters.quantized.fake_quant import bias_qparams
from tmconvert.frontends.megengine.adapters.values import reshaped
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir import QParams, TracedModule
from tmconvert.ir.emitter import Emitter

FUNCTIONS = Table("megengine.functional.quantized.")
OPERATORS = Table("opdef.")
MODULES = Table("megengine.module.quantized.")


def _add_layer(name: str, layer: qat.Layer, rectified: bool) -> None:
    @MODULES.add(name)
    def adapter(g, module, inp):
        weight, bias = quantized_parameters(g, module, inp)
        result = layer.call(g, module, inp, weight, bias)
        return output(g, module, g.call("aten::relu", result) if rectified else result)


# MegEngine raises an error for the last three when they are called, so that no file holds them
OTHERS = {
    "batch_matmul_activation.BatchMatMulActivation",
    "conv.ConvTransposeRelu2d",
    "conv_transpose_bn.ConvTransposeBn2d",
    "conv_transpose_bn.ConvTransposeBnRelu2d",
}
for _name, (_layer, _, _rectified) in qat.LAYERS.items():  # the batch norm is folded already
    if _name not in OTHERS:
        _add_layer(_name, _layer, _rectified)


def quantized_parameters(g: Emitter, module: TracedModule, inp) -> tuple[Any, Any]:
    """Returns the weight, and the bias quantized with the scales of the products."""
    weight, bias = functional_forms.parameter(g, module, "weight"), module.tensors.get("bias")
    if bias is None:
        return weight, None
    value = functional_forms.parameter(g, module, "bias", bias.reshape(-1))
    qparams = bias_qparams(*(getattr(part, "qparams", None) for part in (inp, weight)))
    if qparams is None:
        raise Refusal(
            f"{module.name} needs an input and a weight that are int8", "insert a QuantStub before it"
        )
    return weight, g.quantized(value, qparams)


def output(g: Emitter, module: TracedModule, value) -> Any:
    """Quantizes ``value`` to the module's ``output_dtype``; a Linear may have none."""
    return in_dtype(g, value, module.attributes.get("output_dtype"))


def in_dtype(g, value, dtype):
    """Quantizes ``value`` with the QParams of a quantized dtype, if it is one."""
    if dtype is None:
        return value
    if not isinstance(dtype, QParams):
        raise Refusal(f"{dtype} is not a quantized dtype")
    return g.quantized(value, dtype)


@MODULES.add("batch_matmul_activation.BatchMatMulActivation")
def batch_matmul_activation(g, module, inp):
    """A convolution per sample of the batch: weights (batch, out, in, 1, 1), bias (1, out, 1, 1)."""
    weight, bias = quantized_parameters(g, module, inp)
    weight = tensor.reshape(g, weight, list(g.type(weight).shape[:3]))
    bias = None if bias is None else tensor.reshape(g, bias, [-1, 1])
    return output(g, module, matrices.multiplied(g, module, inp, weight, bias))


MODULES.add("quant_dequant.QuantStub")(lambda g, module, inp: output(g, module, inp))
MODULES.add("quant_dequant.DequantStub")(lambda g, module, inp: inp)


@MODULES.add("elemwise.Elemwise")
def elemwise(g, module, *inps):
    """The method is that of the float module with the prefix q."""
    method = str(module.attributes["method"]).lower()
    if not method.startswith("q"):
        raise Refusal(f"the Elemwise method {method} is not supported for quantized tensors")
    return output(g, module, modes.applied(g, method[1:], *inps))


@MODULES.add("concat.Concat")
def concat(g, module, inps, axis=0):
    """Requantizes each tensor before the concatenation; rounding after it gives the same result."""
    return output(g, module, tensor.concat(g, inps, axis))


# ---- functions on quantized tensors


@FUNCTIONS.add("conv_bias_activation")
def conv_bias_activation(
    g, inp, weight, bias, dtype=None, stride=1, padding=0, dilation=1, groups=1, nonlinear_mode="identity",
    conv_mode="cross_correlation", compute_mode="default",
):  # fmt: skip
    """``bias`` is already quantized, or not quantized."""
    convolutions.cross_correlation(conv_mode)
    result = convolutions.convolved(g, inp, weight, bias, stride, padding, dilation, groups)
    mode = str(nonlinear_mode).upper()
    return in_dtype(g, result if mode == "IDENTITY" else modes.applied(g, mode, result), dtype)


@FUNCTIONS.add("batch_conv_bias_activation")
def batch_conv_bias_activation(
    g, inp, weight, bias, dtype=None, stride=1, padding=0, dilation=1, groups=1, nonlinear_mode="identity",
    conv_mode="cross_correlation", compute_mode="default",
):  # fmt: skip
    """Kernels (N, ...) per sample: one convolution with N times the groups."""
    convolutions.cross_correlation(conv_mode)
    batch, channels, *extents = g.type(inp).shape
    kernels = [batch * groups, -1, *g.type(weight).shape[-3:]]
    if g.type(weight).shape[0] != batch or g.type(weight).rank not in (5, 6):
        raise Refusal(f"the weight {g.type(weight)} and the input {g.type(inp)} have different batch sizes")
    windows = (stride, padding, dilation, batch * groups)
    row = reshaped(g, inp, [1, batch * channels, *extents])
    result = convolutions.convolved(g, row, reshaped(g, weight, kernels), None, *windows)
    result = reshaped(g, result, [batch, -1, *g.type(result).shape[2:]])
    if bias is not None:
        result = modes.applied(g, "ADD", result, bias)
    mode = str(nonlinear_mode).upper()
    return in_dtype(g, result if mode == "IDENTITY" else modes.applied(g, mode, result), dtype)


@OPERATORS.add("BatchConvBias")
def batch_conv_bias(g, inp, weight, bias, *, dtype, **state):
    windows = window_operators.geometry(state)
    groups = g.type(weight).shape[1] if str(state["sparse"]).upper() == "GROUP" else 1
    return batch_conv_bias_activation(
        g, inp, weight, bias, dtype, *windows, groups, state["nonlineMode"], state["mode"]
    )


@FUNCTIONS.add("conv_transpose2d")
def conv_transpose2d(
    g, inp, weight, bias=None, dtype=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1,
    conv_mode="cross_correlation", compute_mode="default",
):  # fmt: skip
    """Version 1.9 and earlier have no ``output_padding``: positional calls have one argument less."""
    if isinstance(groups, str):
        output_padding, dilation, groups = 0, output_padding, dilation
    convolutions.cross_correlation(conv_mode)
    result = convolutions.transposed(g, inp, weight, bias, stride, padding, output_padding, dilation, groups)
    return in_dtype(g, result, dtype)
