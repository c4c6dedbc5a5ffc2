"""Activations without weights; ``shrink_threshold.py`` and ``elu.py`` have those with parameters."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, Op, Tensor, choice
from tmconvert.symbolics.ops.elementwise.unary import sigmoid
from tmconvert.symbolics.ops.special.erf import _erf
from tmconvert.symbolics.results import same_as
from tmconvert.symbolics.traits import Bounded, FixedRange, SelfGated, Trait

Array = np.ndarray


# name: (kernel, (since, operator of ONNX), operator of TFLite)
TABLE: dict[str, tuple[Callable[[Array], Array], tuple[int, str], str]] = {
    "silu": (lambda x: x * sigmoid(x), (0, ""), ""),
    "mish": (lambda x: x * np.tanh(np.logaddexp(x, 0)), (18, "Mish"), ""),
    "hardswish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, (14, "HardSwish"), "HARD_SWISH"),
    "hardsigmoid": (lambda x: np.clip(x + 3, 0, 6) / 6, (0, ""), ""),
    "softsign": (lambda x: x / (1 + np.abs(x)), (1, "Softsign"), ""),
    "tanhshrink": (lambda x: x - np.tanh(x), (0, ""), ""),
}

TRAITS: dict[str, list[Trait]] = {
    "hardsigmoid": [FixedRange(0, 1), Bounded(0, 1)],  # the kernels that it is made of saturate at both ends
    "hardswish": [Bounded(-0.375)],
    "mish": [Bounded(-0.309)],
    "silu": [SelfGated(), Bounded(-0.2785)],
    "softsign": [Bounded(-1, 1)],
}


def _op(name: str) -> Op:
    kernel, (since, onnx_type), tflite_type = TABLE[name]
    traits = TRAITS.get(name, [])
    op = Op(f"aten::{name}", args=[Tensor("x", FLOATS)], result=same_as("x"), layout=ANY, traits=traits)
    op.reference(lambda x: kernel(x).astype(x.dtype))
    if onnx_type:
        op.onnx(since)(lambda g, x: g.op(onnx_type, x))
    if tflite_type:
        op.tflite()(lambda g, x: g.op(tflite_type, x))
    return op


ACTIVATIONS = {name: _op(name) for name in TABLE}


# OpenCV's importer computes hardswish(x) for Mul(x, HardSigmoid(y)), also where x is not y, if alpha is
# exactly float32(1 / 6). The next number above is as near within rounding: still 0 at -3 and 1 at 3.
_SLOPE = float(np.nextafter(np.float32(1 / 6), np.float32(1)))


ACTIVATIONS["hardsigmoid"].onnx(since=6)(lambda g, x: g.op("HardSigmoid", x, alpha=_SLOPE, beta=0.5))
formula(ACTIVATIONS["silu"])(lambda x: x * x.sigmoid())
formula(ACTIVATIONS["mish"])(lambda x: x * x.softplus().tanh())


for _name, _layer in (("silu", "Swish"), ("mish", "Mish")):
    ACTIVATIONS[_name].caffe("opencv", "ncnn")(lambda g, x, layer=_layer: g.op(layer, x))
ACTIVATIONS["hardswish"].caffe("opencv")(lambda g, x: g.op("HardSwish", x))


formula(ACTIVATIONS["hardswish"])(lambda x: x * x.hardsigmoid())
formula(ACTIVATIONS["hardsigmoid"])(lambda x: (x + 3).relu6() * (1 / 6))
formula(ACTIVATIONS["softsign"])(lambda x: x / (x.abs() + 1))
formula(ACTIVATIONS["tanhshrink"])(lambda x: x - x.tanh())


gelu = Op(
    "aten::gelu",
    args=[Tensor("x", FLOATS), choice("approximate", ("none", "tanh"), "none")],
    result=same_as("x"),
    layout=ANY,
    traits=[Bounded(-0.1701)],
)


@gelu.reference
def gelu_ref(x: Array, approximate: str) -> Array:
    """x times the normal distribution function of x, or an approximation of it by a tanh."""
    if approximate == "none":
        return (0.5 * x * (1 + _erf(x * math.sqrt(0.5)))).astype(x.dtype)
    wide = x.astype(np.float64)
    return (x * sigmoid(2 * math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3))).astype(x.dtype)


gelu.onnx(since=20)(lambda g, x, approximate: g.op("Gelu", x, approximate=approximate))
gelu.tflite(since=8)(lambda g, x, approximate: g.op("GELU", x, approximate=approximate == "tanh"))


@gelu.caffe("opencv")
def gelu_caffe(g, x, approximate):
    return g.op("Gelu" if approximate == "none" else "GeluApproximation", x)


@formula(gelu)
def gelu_product(x: Term, approximate: str) -> Term:
    if approximate == "none":
        return x * ((x * math.sqrt(0.5)).erf() + 1) * 0.5  # a factor that the next weights take
    twice = 2 * math.sqrt(2 / math.pi)  # the tanh of half of y is 2 sigmoid(y) - 1
    return x * ((x * x * (0.044715 * twice) + twice) * x).sigmoid()


OPS = [*ACTIVATIONS.values(), gelu]
