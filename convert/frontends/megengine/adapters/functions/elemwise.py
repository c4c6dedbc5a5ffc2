"""megengine.functional.elemwise, the operators of Tensor, and the raw operators of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.frontends.megengine.adapters.functions import modes
from tmconvert.frontends.megengine.adapters.values import cast, floating, promoted
from tmconvert.frontends.shared.adapter_table import Adapter, Table
from tmconvert.ir.emitter import Emitter

FUNCTIONS = Table()
METHODS = Table()

ELEMWISE = "megengine.functional.elemwise."
# function of one argument -> mode
UNARY = {
    **{
        name: name.upper()
        for name in ("abs", "ceil", "exp", "expm1", "floor", "log", "log1p", "round", "sqrt")
    },
    **{
        name: name.upper() for name in ("cos", "sin", "tan", "acos", "asin", "cosh", "sinh", "tanh", "square")
    },
    **{name: name.upper() for name in ("asinh", "acosh", "atanh", "relu", "relu6", "sigmoid", "hsigmoid")},
    "neg": "NEGATE",
    "hswish": "H_SWISH",
    "logical_not": "NOT",
}
# function of two arguments -> mode
BINARY = {
    **{name: name.upper() for name in ("add", "sub", "mul", "floor_div", "mod", "pow")},
    "div": "TRUE_DIV",
    "maximum": "MAX",
    "minimum": "MIN",
    "left_shift": "SHL",
    "right_shift": "SHR",
    "logaddexp": "LOG_SUM_EXP",
    "logical_and": "AND",
    "logical_or": "OR",
    "logical_xor": "XOR",
}
# operator of Tensor -> mode; each has a reflected and an in-place form
BINARY_OPERATORS = {
    **{name: name.upper() for name in ("add", "sub", "mul", "mod", "pow", "and", "or", "xor")},
    "truediv": "TRUE_DIV",
    "floordiv": "FLOOR_DIV",
    "lshift": "SHL",
    "rshift": "SHR",
}
UNARY_OPERATORS = {"neg": "NEGATE", "abs": "ABS", "invert": "NOT"} | {
    name: name.upper() for name in ("round", "floor", "ceil")
}
# comparison -> (operator of Tensor, aten op)
COMPARISONS = {
    "equal": ("eq", "eq"),
    "not_equal": ("ne", "ne"),
    "less": ("lt", "lt"),
    "less_equal": ("le", "le"),
    "greater": ("gt", "gt"),
    "greater_equal": ("ge", "ge"),
}


def unary(mode: str) -> Adapter:
    return lambda g, x: modes.applied(g, mode, x)


def _binary(mode: str) -> Adapter:
    return lambda g, x, y: modes.applied(g, mode, x, y)


def _swapped(mode: str) -> Adapter:
    return lambda g, x, y: modes.applied(g, mode, y, x)


def _comparison(op: str) -> Callable[[Emitter, Any, Any], Any]:
    return lambda g, x, y: modes.compared(g, op, x, y)


for _name, _mode in UNARY.items():
    FUNCTIONS.add(ELEMWISE + _name)(unary(_mode))
for _name, _mode in BINARY.items():
    FUNCTIONS.add(ELEMWISE + _name)(_binary(_mode))
for _name, _mode in BINARY_OPERATORS.items():
    METHODS.add(f"__{_name}__", f"__i{_name}__")(_binary(_mode))
    METHODS.add(f"__r{_name}__")(_swapped(_mode))
for _name, _mode in UNARY_OPERATORS.items():
    METHODS.add(f"__{_name}__")(unary(_mode))
for _name, (_operator, _op) in COMPARISONS.items():
    FUNCTIONS.add(ELEMWISE + _name)(_comparison(_op))
    METHODS.add(f"__{_operator}__")(_comparison(_op))


METHODS.add("__pos__")(lambda g, x: x)


@FUNCTIONS.add(ELEMWISE + "atan")
def atan(g, x):
    """ATAN2 of x and a float32 one."""
    return g.call("aten::atan", cast(g, x, np.float32))


@FUNCTIONS.add(ELEMWISE + "atan2")
def atan2(g, y, x):
    """The angle of the point (x, y)."""
    return modes.applied(g, "ATAN2", y, x)


@FUNCTIONS.add(ELEMWISE + "clip")
def clip(g, x, lower=None, upper=None):
    return modes.applied(g, "CLIP", x, lower, upper)


FUNCTIONS.add("megengine.functional.math.sign")(lambda g, x: modes.applied(g, "SIGN", x))


@FUNCTIONS.add("megengine.functional.math.isnan")
def isnan(g, inp):
    return _test(g, "aten::isnan", inp)


@FUNCTIONS.add("megengine.functional.math.isinf")
def isinf(g, inp):
    return _test(g, "aten::isinf", inp)


def _test(g: Emitter, op: str, x) -> Any:
    """Compares ``x`` with itself or infinity, if it is a float tensor."""
    return modes.with_an_axis(g, g.call(op, x)) if g.type(x).dtype.kind == "f" else g.call(op, floating(g, x))


@FUNCTIONS.add("megengine.functional.tensor.where")
def where(g, mask, x, y):
    return g.call("aten::where", mask, *promoted(g, x, y))


FUNCTIONS.add("opdef.Elemwise")(lambda g, *inputs, mode: modes.applied(g, mode, *inputs))


@FUNCTIONS.add("opdef.ElemwiseMultiType")
def elemwise_multi_type(g, *inputs, mode, dtype):
    """Comparisons and predicates with bool results."""
    tests = {"ISNAN": isnan, "ISINF": isinf}
    name = str(mode).upper()
    if name in tests:
        return cast(g, tests[name](g, *inputs), dtype)
    op = modes.COMPARISONS.get(name)
    return cast(g, modes.compared(g, op, *inputs) if op else modes.applied(g, name, *inputs), dtype)


FUNCTIONS.add("opdef.TypeCvt")(lambda g, inp, dtype: cast(g, inp, np.dtype(dtype)))
