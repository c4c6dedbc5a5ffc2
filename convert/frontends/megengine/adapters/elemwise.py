"""megengine.functional.elemwise, and the operators of Tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import Refusal
from ....ir.emitter import Emitter
from .table import Table
from .values import floating, is_tensor, promoted

FUNCTIONS = Table("megengine.functional.elemwise.")
METHODS = Table()

# name in MegEngine -> aten op of one float argument
UNARY = {
    "abs": "abs",
    "ceil": "ceil",
    "exp": "exp",
    "floor": "floor",
    "log": "log",
    "neg": "neg",
    "sqrt": "sqrt",
    "square": "square",
    "tanh": "tanh",
}
KEEPS_INTEGERS = {"abs", "neg", "square"}
# ops on integers that targets have only for floats -> the bounds of the clamp that says the same
INTEGER_CLAMPS = {"relu": {"min": 0}, "relu6": {"min": 0, "max": 6}}

# name in MegEngine -> aten op of two arguments
BINARY = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "maximum": "maximum", "minimum": "minimum"}
# operator -> the aten op it shares with a function
OPERATORS = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide"}


def unary(op: str) -> Callable[[Emitter, Any], Any]:
    """An adapter of one tensor; integers become float32 unless the op keeps them."""

    def adapter(g: Emitter, x: Any) -> Any:
        if g.type(x).dtype.kind in "iu":
            if op in ("ceil", "floor"):
                return x
            if op in INTEGER_CLAMPS:
                return g.call("aten::clamp", x, **INTEGER_CLAMPS[op])
        return g.call(f"aten::{op}", x if op in KEEPS_INTEGERS else floating(g, x))

    return adapter


def binary(op: str) -> Callable[[Emitter, Any, Any], Any]:
    """An adapter of two tensors or a tensor and a scalar."""

    def adapter(g: Emitter, x: Any, y: Any) -> Any:
        x, y = promoted(g, x, y, to_float=op == "div")
        return g.call(f"aten::{op}", x, y)

    return adapter


def _swapped(adapter: Callable[[Emitter, Any, Any], Any]) -> Callable[[Emitter, Any, Any], Any]:
    return lambda g, x, y: adapter(g, y, x)


for _name, _op in UNARY.items():
    FUNCTIONS.add(_name)(unary(_op))
for _name, _op in BINARY.items():
    FUNCTIONS.add(_name)(binary(_op))
for _name, _op in OPERATORS.items():
    METHODS.add(f"__{_name}__", f"__i{_name}__")(binary(_op))
    METHODS.add(f"__r{_name}__")(_swapped(binary(_op)))
METHODS.add("__neg__")(unary("neg"))
METHODS.add("__abs__")(unary("abs"))
FUNCTIONS.add("floor_div")(binary("floor_divide"))


@METHODS.add("__pow__")
@FUNCTIONS.add("pow")
def pow(g: Emitter, x: Any, y: Any) -> Any:
    """Constant exponents that are products, roots and inverses; of integers, too, a float32."""
    forms = {2: "square", 0.5: "sqrt", -1: "reciprocal", -0.5: "rsqrt"}
    if is_tensor(y) or not is_tensor(x) or y not in (1, *forms):
        raise Refusal("a power is supported for the exponents 1, 2, 0.5, -1 and -0.5")
    x = floating(g, x)
    return x if y == 1 else unary(forms[y])(g, x)


@FUNCTIONS.add("clip")
def clip(g: Emitter, x: Any, lower: Any = None, upper: Any = None) -> Any:
    if is_tensor(lower) or is_tensor(upper):
        raise Refusal("clip is supported with constant bounds")
    if any(isinstance(bound, (float, np.floating)) for bound in (lower, upper)):
        x = floating(g, x)
    return g.call("aten::clamp", x, min=lower, max=upper)
