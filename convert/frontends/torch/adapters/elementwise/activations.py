"""Activations, softmax and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.values import cast, dtype_called, floating, number_of, rank, reshaped
from tmconvert.ir.emitter import Emitter

ATEN, FUNCTIONS = Table(), Table("torch.nn.functional.")


def _declare(table: Table, name: str, **parameters) -> None:
    """Declares a unary op. Functions of torch.nn.functional take ``inplace`` after the other parameters."""
    names = ("input", *parameters, "inplace")

    def adapter(g, *args, **kwargs):
        if len(args) > len(names):
            raise TypeError(f"takes {len(names)} arguments, {len(args)} were given")
        given = {**parameters, **dict(zip(names, args, strict=False)), **kwargs}
        x = given.pop("input", given.pop("self", None))
        given = {key: value for key, value in given.items() if key not in ("inplace", "out")}
        if name not in EXACT:
            return g.call(f"aten::{name}", floating(g, x), **given)
        dtype = g.type(x).dtype
        return g.call(f"aten::{name}", x, **{key: number_of(dtype, value) for key, value in given.items()})

    table.add(name)(adapter)


EXACT = ("threshold", "hardtanh")  # they serve integers as well
_declare(ATEN, "threshold", threshold=None, value=None)
_declare(ATEN, "hardtanh", min_val=-1.0, max_val=1.0)
_declare(ATEN, "leaky_relu", negative_slope=0.01)
_declare(FUNCTIONS, "elu", alpha=1.0)
_declare(ATEN, "elu", alpha=1.0, scale=1.0, input_scale=1.0)
_declare(ATEN, "celu", alpha=1.0)
_declare(ATEN, "gelu", approximate="none")
_declare(ATEN, "softplus", beta=1.0, threshold=20.0)
_declare(ATEN, "hardshrink", lambd=0.5)
_declare(ATEN, "softshrink", lambd=0.5)
_declare(ATEN, "glu", dim=-1)
for _name in ("selu", "silu", "mish", "hardsigmoid", "hardswish", "log_sigmoid", "softsign", "tanhshrink"):
    _declare(ATEN, _name)


@ATEN.add("relu")
def relu(g, input, inplace=False):
    dtype = g.type(input).dtype
    if dtype.kind != "f":
        return g.call("aten::maximum", input, g.constant(0, dtype))
    return g.call("aten::relu", input)


@ATEN.add("relu6")
def relu6(g, input, inplace=False):
    if g.type(input).dtype.kind != "f":
        return g.call("aten::hardtanh", input, 0, 6)
    return g.call("aten::relu6", input)


ATEN.add("log_sigmoid_forward")(lambda g, input: (g.call("aten::log_sigmoid", input), None))


@ATEN.add("prelu", "_prelu_kernel")
def prelu(g, input, weight):
    """PReLU with one slope, or one per channel of axis 1."""
    slopes = reshaped(g, weight, [g.type(weight).size])
    shape = list(g.type(input).shape)
    if len(shape) < 2:  # there is one channel
        return reshaped(
            g, g.call("aten::prelu", reshaped(g, input, [1, 1, g.type(input).size]), slopes), shape
        )
    return g.call("aten::prelu", input, slopes)


# ---- softmax


def _softmax(g: Emitter, op: str, input, dim: int | None, dtype) -> Any:
    x = input if dtype is None else cast(g, input, dtype_called(dtype))
    if dim is None:  # as torch.nn.functional guesses, with a warning
        dim = 0 if rank(g, x) in (0, 1, 3) else 1
    if not rank(g, x):
        return reshaped(g, g.call(op, reshaped(g, x, [1]), 0), [])
    return g.call(op, x, dim)


def _declare_softmax(name: str) -> None:
    op = f"aten::{name}"

    @FUNCTIONS.add(name)
    def functional(g, input, dim=None, _stacklevel=3, dtype=None):
        return _softmax(g, op, input, dim, dtype)

    if name == "softmin":
        return

    @ATEN.add(name, f"special_{name}")
    def adapter(g, input, dim=None, dtype=None, *, out=None):
        return _softmax(g, op, input, dim, dtype)

    @ATEN.add(f"_{name}")
    def half(g, input, dim, half_to_float):
        return _softmax(g, op, cast(g, input, np.float32) if half_to_float else input, dim, None)


for _name in ("softmax", "log_softmax", "softmin"):
    _declare_softmax(_name)


@ATEN.add("_safe_softmax")
def safe_softmax(g, input, dim, dtype=None):
    """Softmax that returns zeros where all inputs are -inf."""
    result = _softmax(g, "aten::softmax", input, dim, dtype)
    lowest = g.constant(-np.inf, g.type(input).dtype)
    highest = g.call("aten::amax", input, [dim], True)
    return g.call(
        "aten::where", g.call("aten::eq", highest, lowest), g.constant(0, g.type(result).dtype), result
    )
