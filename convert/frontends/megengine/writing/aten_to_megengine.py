"""Converts calls of catalogued ops and of torch to functions of MegEngine that compute exactly the same.

An edit inserts ``aten::relu``, or ``torch.relu``; MegEngine's file needs ``megengine.functional.nn.relu``.
Each entry holds for float32 tensors, with which both promote types alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.errors import WriteError
from tmconvert.frontends.megengine.writing.pickle_writer import CANNOT_SAVE
from tmconvert.frontends.torch.names import aten_name
from tmconvert.ir import CallFunction, Constant, TensorNode
from tmconvert.ir.tree import leaves_of

# the arguments of MegEngine's function from those of the op; None where it has no such case
Translate = Callable[..., tuple[Any, ...] | None]
_PACKAGE = "megengine.functional."


def _reduction(x: TensorNode, dim: object = None, keepdim: bool = False) -> tuple[Any, ...] | None:
    if dim is None:
        return None if keepdim else (x, None, False)
    return (x, tuple(dim) if isinstance(dim, (list, tuple)) else dim, keepdim)


def _clip(x: TensorNode, min: float | None = None, max: float | None = None) -> tuple[Any, ...] | None:
    return None if min is None and max is None else (x, min, max)


def _exact_gelu(x: TensorNode, approximate: str = "none") -> tuple[Any, ...] | None:
    return (x,) if approximate == "none" else None


def _same(*operands: object) -> tuple[Any, ...]:
    return operands


_ELEMENTWISE = {
    **{f"aten::{name}": f"nn.{name}" for name in ("relu", "relu6", "sigmoid", "silu")},
    **{
        f"aten::{name}": f"elemwise.{name}"
        for name in (
            *("abs", "acos", "add", "asin", "atan", "atan2", "ceil", "cos", "cosh", "div", "exp", "expm1"),
            *("floor", "log", "log1p", "maximum", "minimum", "mul", "neg", "pow", "sin", "sinh", "sqrt"),
            *("square", "sub", "tan", "tanh"),
        )
    },
    "aten::eq": "elemwise.equal",
    "aten::ge": "elemwise.greater_equal",
    "aten::gt": "elemwise.greater",
    "aten::hardsigmoid": "nn.hsigmoid",
    "aten::hardswish": "nn.hswish",
    "aten::le": "elemwise.less_equal",
    "aten::lt": "elemwise.less",
    "aten::ne": "elemwise.not_equal",
}
_OTHERS: dict[str, tuple[str, Translate]] = {
    "aten::amax": ("math.max", _reduction),
    "aten::amin": ("math.min", _reduction),
    "aten::cat": ("tensor.concat", lambda tensors, dim=0: (list(tensors), dim, None)),
    "aten::clamp": ("elemwise.clip", _clip),
    "aten::expand": ("tensor.broadcast_to", lambda x, size: (x, tuple(size)) if -1 not in size else None),
    "aten::gelu": ("nn.gelu", _exact_gelu),
    "aten::leaky_relu": ("nn.leaky_relu", lambda x, negative_slope=0.01: (x, negative_slope)),
    "aten::log_softmax": ("nn.logsoftmax", lambda x, dim: (x, dim)),
    "aten::matmul": ("math.matmul", lambda x, other: (x, other, False, False, "default")),
    "aten::mean": ("math.mean", _reduction),
    "aten::permute": ("tensor.transpose", lambda x, dims: (x, tuple(dims))),
    "aten::reshape": ("tensor.reshape", lambda x, shape: (x, tuple(shape))),
    "aten::softmax": ("nn.softmax", lambda x, dim: (x, dim)),
    "aten::sum": ("math.sum", _reduction),
}
WORDS: dict[str, tuple[str, Translate]] = {
    **{op: (function, _same) for op, function in _ELEMENTWISE.items()},
    **_OTHERS,
}


def in_words(expr: CallFunction) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Returns MegEngine's function, args and kwargs for a call.

    Raises WriteError TM5005 for a call of a catalogued op, or of torch, without an equivalent function in
    MegEngine.
    """
    is_of_torch = expr.function.startswith("torch.")
    if not is_of_torch and "::" not in expr.function:
        return expr.function, expr.args, expr.kwargs
    op = f"aten::{aten_name(expr.function, False)}" if is_of_torch else expr.function
    found = WORDS.get(op)
    args = _translated(found[1], expr) if found is not None and _is_float32(expr) else None
    if found is None or args is None:
        raise WriteError(
            CANNOT_SAVE,
            f"no function of MegEngine means exactly {expr!r}".replace("\n", " "),
            notes=[("help", "insert functions of MegEngine, such as megengine.functional.nn.relu")],
        )
    return _PACKAGE + found[0], args, {}


def _translated(translate: Translate, expr: CallFunction) -> tuple[Any, ...] | None:
    kwargs = {name: value for name, value in expr.kwargs.items() if (name, value) != ("inplace", False)}
    try:
        return translate(*expr.args, **kwargs)
    except TypeError:  # an argument of torch that the op does not have, such as alpha
        return None


def _is_float32(expr: CallFunction) -> bool:
    operands = leaves_of(TensorNode, expr.args)
    return len(operands) > 0 and all(_dtype(node) == np.float32 for node in operands)


def _dtype(node: TensorNode) -> np.dtype | None:
    if node.dtype is None and isinstance(node.expr, Constant) and isinstance(node.expr.value, np.ndarray):
        return np.dtype(node.expr.value.dtype)
    return node.dtype
