"""Steps of normalizations over the last axes, and the parameters that follow them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.symbolic.dims import Size, is_symbolic
from tmconvert.passes.patterns.matching import array_of, is_call, is_product


def squared(node: object) -> TensorNode | None:
    """Returns the tensor whose square it is; None for another tensor."""
    expr = node.expr if isinstance(node, TensorNode) else None
    if not isinstance(expr, CallFunction):
        return None
    if is_call(expr, "aten::square") or (is_product(expr) and expr.args[0] is expr.args[1]):
        operand: TensorNode = expr.args[0]
        return operand
    power = array_of(expr.args[1]) if is_call(expr, "aten::pow") else None
    is_two = power is not None and power.size == 1 and power.item() == 2
    return expr.args[0] if is_two else None


def axes_of_mean(mean: CallFunction) -> list[int]:
    """Returns the axes of ``aten::mean``, in order."""
    rank = mean.args[0].type.rank
    return sorted(axis % rank for axis in mean.kwargs["dim"] or range(rank))


def why_not_normalized(x: TensorNode, axes: list[int], eps: np.ndarray) -> str | None:
    """Returns why no op normalizes ``x`` over these axes, with ``eps`` added to the mean of squares."""
    if axes != list(range(x.type.rank - len(axes), x.type.rank)):
        return "the normalized axes are not the last ones"
    if is_symbolic(x.type.shape[-len(axes) :]):
        return "the normalized axes are dynamic"
    return None if eps.size == 1 else "the term that is added to the mean is not one number"


def parameter_after(
    graph: InternalGraph,
    call: CallFunction,
    shape: list[int],
    is_kind: Callable[[object], bool],
    *,
    constant: bool = True,
) -> tuple[TensorNode | None, CallFunction]:
    """Returns the tensor of the normalized axes in the product or sum that alone uses ``call``, and that
    product or sum; None and ``call`` itself without one. The tensor is a ``constant``, or may be computed.
    """
    result, users = call.output, list[Any](call.output.users)
    if len(users) != 1 or graph.use_count(result) != 1 or result.qparams is not None:
        return None, call
    (user,) = users
    if not is_kind(user) or any(value not in (1, None) for value in user.kwargs.values()):
        return None, call
    other = user.args[1] if user.args[0] is result else user.args[0]
    known = array_of(other) if constant else other
    is_one = known is not None and _is_parameter(other.type.shape, shape)
    return (other, user) if is_one and user.output.type == result.type else (None, call)


def _is_parameter(found: Sequence[Size], shape: list[int]) -> bool:
    """Whether ``found`` is the shape of the normalized axes, or that with leading axes of one element."""
    ones = len(found) - len(shape)
    return not is_symbolic(tuple(found)) and list(found) == [1] * ones + shape


def in_shape(g: GraphEmitter, parameter: TensorNode | None, shape: list[int]) -> Any:
    """Returns the parameter without leading axes of one element."""
    is_right = parameter is None or list(parameter.type.shape) == shape
    return parameter if is_right else g.call("aten::reshape", parameter, shape)
