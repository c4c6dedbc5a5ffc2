"""Arithmetic, comparisons and logic, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.arguments import rank, reshaped
from tmconvert.frontends.tflite.adapters.values import PREFIX, activated
from tmconvert.frontends.tflite.layout import elementwise, like, value_of

OPERATORS = Table(PREFIX)
_BINARY = {
    "MAXIMUM": "maximum",
    "MINIMUM": "minimum",
    "POW": "pow",
    "FLOOR_DIV": "floor_divide",
    "FLOOR_MOD": "remainder",
    "ATAN2": "atan2",
    "EQUAL": "eq",
    "NOT_EQUAL": "ne",
    "LESS": "lt",
    "LESS_EQUAL": "le",
    "GREATER": "gt",
    "GREATER_EQUAL": "ge",
    "LOGICAL_AND": "logical_and",
    "LOGICAL_OR": "logical_or",
    "BITWISE_XOR": "bitwise_xor",
    "RIGHT_SHIFT": "bitwise_right_shift",
}
_WITH_ACTIVATION = {"ADD": "add", "SUB": "sub", "MUL": "mul"}
_UNARY = """
    ABS NEG EXP LOG SQRT RSQRT SQUARE SIN COS FLOOR CEIL ROUND SIGN LOGICAL_NOT
"""


def _add_binary(name: str, op: str) -> None:
    @OPERATORS.add(name)
    def adapter(g, x, y):
        return elementwise(g, f"aten::{op}", x, y)


def _add_activated(name: str, op: str) -> None:
    @OPERATORS.add(name)
    def adapter(g, x, y, *, fused_activation_function="NONE"):
        return activated(g, elementwise(g, f"aten::{op}", x, y), fused_activation_function)


def _add_unary(name: str, op: str) -> None:
    @OPERATORS.add(name)
    def adapter(g, x):
        return elementwise(g, f"aten::{op}", x)


for _name, _op in _BINARY.items():
    _add_binary(_name, _op)
for _name, _op in _WITH_ACTIVATION.items():
    _add_activated(_name, _op)
for _name in _UNARY.split():
    _add_unary(_name, _name.lower())


@OPERATORS.add("DIV")
def div(g, x, y, *, fused_activation_function="NONE"):
    """Integers are divided toward zero."""
    op = "aten::div" if g.type(x).dtype.kind == "f" else "tm::trunc_divide"
    return activated(g, elementwise(g, op, x, y), fused_activation_function)


@OPERATORS.add("SQUARED_DIFFERENCE")
def squared_difference(g, x, y):
    made = elementwise(g, "aten::sub", x, y)
    return like(made, g.call("aten::square", value_of(made)))


@OPERATORS.add("ADD_N")
def add_n(g, *xs):
    total: Any = xs[0]
    for each in xs[1:]:
        total = g.call("aten::add", total, each)
    return total


@OPERATORS.add("SELECT")
def select(g, condition, x, y):
    """A condition of rank 1 selects along the first axis."""
    if rank(g, condition) == 1 and rank(g, x) > 1:
        condition = reshaped(g, condition, [-1, *[1] * (rank(g, x) - 1)])
    return elementwise(g, "aten::where", condition, x, y)


OPERATORS.add("SELECT_V2")(lambda g, condition, x, y: elementwise(g, "aten::where", condition, x, y))


@OPERATORS.add("CAST", "DEQUANTIZE", "QUANTIZE", "DENSIFY")
def converted(g, x):
    """The result's tensor has the type, and the quantization parameters, to which ``x`` is converted."""
    return x


@OPERATORS.add("ZEROS_LIKE")
def zeros_like(g, x):
    dtype = g.type(x).dtype
    return g.call("aten::expand", g.constant(np.zeros((), dtype)), list(g.type(x).shape))


@OPERATORS.add("BITCAST")
def bitcast(g, x):
    raise Refusal("BITCAST is not supported: no target reinterprets the bits of a tensor")
