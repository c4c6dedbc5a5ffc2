"""Predicates of calls and nodes for patterns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

import numpy as np

from tmconvert.ir import CallFunction, Constant, Expr, InternalGraph, TensorNode
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.tree import map_leaves
from tmconvert.symbolics.layouts import LayoutRule
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.registry import trait_of
from tmconvert.symbolics.traits import Arithmetic, Weights

VIEW = "tm::view"


def is_call(expr: object, function: str) -> TypeGuard[CallFunction]:
    """Whether ``expr`` is a call of an op; ``symbolics/traits.py`` has the properties of ops."""
    return isinstance(expr, CallFunction) and expr.function == function


def is_view(expr: object) -> TypeGuard[CallFunction]:
    """Whether it is a call of ``tm::view``, which passes compose by its attributes."""
    return is_call(expr, VIEW)


def is_linear(expr: object) -> TypeGuard[CallFunction]:
    """Whether it is a layer with weights whose channels are the last axis."""
    weights = trait_of(expr, Weights)
    return weights is not None and not weights.spatial


def is_sum(expr: object) -> TypeGuard[CallFunction]:
    """Whether it adds two tensors."""
    arithmetic = trait_of(expr, Arithmetic)
    return arithmetic is not None and not arithmetic.is_product and not arithmetic.is_inverse


def is_difference(expr: object) -> TypeGuard[CallFunction]:
    """Whether it subtracts one tensor from another."""
    arithmetic = trait_of(expr, Arithmetic)
    return arithmetic is not None and not arithmetic.is_product and arithmetic.is_inverse


def is_product(expr: object) -> TypeGuard[CallFunction]:
    """Whether it multiplies two tensors element by element."""
    arithmetic = trait_of(expr, Arithmetic)
    return arithmetic is not None and arithmetic.is_product and not arithmetic.is_inverse


def is_quotient(expr: object) -> TypeGuard[CallFunction]:
    """Whether it divides two tensors element by element."""
    arithmetic = trait_of(expr, Arithmetic)
    return arithmetic is not None and arithmetic.is_product and arithmetic.is_inverse


def integer_weights(expr: Expr) -> Weights | None:
    """Returns the weights of a call with integer kernels; three spatial axes have float kernels only."""
    weights = trait_of(expr, Weights)
    return None if weights is None or weights.spatial > 2 else weights


def rule_of(expr: Expr, catalogue: Mapping[str, Op]) -> LayoutRule:
    """Returns the layouts that a call supports."""
    assert isinstance(expr, CallFunction)
    op = catalogue[expr.function]
    if isinstance(op.layout, LayoutRule):
        return op.layout
    types = map_leaves(lambda leaf: None if leaf is None else leaf.type, list(expr.args))
    return op.layout_rule(types, expr.kwargs)


def is_elementwise(expr: CallFunction, catalogue: Mapping[str, Op]) -> bool:
    """Whether it works in any layout, and none of its attributes describes an axis."""
    rule = rule_of(expr, catalogue)
    return rule.kind == "any" and not rule.axes


def has_symbolic_sizes(call: CallFunction) -> bool:
    """Whether a size of an operand or result, or an attribute, is symbolic."""
    shapes = [node.shape for node in (*call.inputs, *call.outputs) if isinstance(node, TensorNode)]
    return any(map(is_symbolic, shapes)) or is_symbolic(call.kwargs)


def is_float_constant(node: object) -> bool:
    """Whether ``node`` is a constant without quantization parameters."""
    return isinstance(node, TensorNode) and isinstance(node.expr, Constant) and node.qparams is None


def array_of(node: Any) -> np.ndarray | None:
    """Returns the array of a constant without quantization parameters; None for another node and for None."""
    return np.asarray(node.expr.value) if is_float_constant(node) else None


def kept_step(graph: InternalGraph, call: CallFunction, steps: Iterable[TensorNode]) -> str | None:
    """Returns why the tensors between the operands of an idiom and its result ``call`` have to stay."""
    inner = [node for node in dict.fromkeys(steps) if node is not call.output]
    if any(node.qparams is not None for node in inner):
        return "its steps have quantization parameters of their own"
    users = {call, *(node.expr for node in inner)}
    shared = [node for node in inner if graph.is_output(node) or not users.issuperset(node.users)]
    return f"`{shared[0].name}` has other users" if shared else None
