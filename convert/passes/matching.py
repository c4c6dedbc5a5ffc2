"""Questions that patterns ask of calls and nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, Constant, TensorNode
from tmconvert.ir.symbolic.dims import is_symbolic


def is_call(expr: Any, *functions: str) -> bool:
    """Whether ``expr`` is a call of one of these ops."""
    return isinstance(expr, CallFunction) and expr.function in functions


def has_symbolic_sizes(call: CallFunction) -> bool:
    """Whether a size of an operand or result, or an attribute, is symbolic."""
    nodes = [*call.inputs, *call.outputs]
    return is_symbolic((call.kwargs, [node.shape for node in nodes if isinstance(node, TensorNode)]))


def is_float_constant(node: Any) -> bool:
    """Whether ``node`` is a constant without quantization parameters."""
    return isinstance(node, TensorNode) and isinstance(node.expr, Constant) and node.qparams is None


def array_of(node: Any) -> np.ndarray | None:
    """What a constant without quantization parameters holds; None for another node and for None."""
    return np.asarray(node.expr.value) if is_float_constant(node) else None
