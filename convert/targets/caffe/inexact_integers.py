"""Finds integers of a model that Caffe's blobs, which are float32, do not hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tmconvert.ir import Constant, Expr, InternalGraph, Node, TensorNode
from tmconvert.ir.tree import leaves
from tmconvert.ir.types import name_of
from tmconvert.lowering.target_graph import Operator, Value
from tmconvert.passes.unsupported import Unsupported
from tmconvert.symbolics.registry import has_trait
from tmconvert.symbolics.traits import KeepsQparams, Reduction
from tmconvert.targets.caffe.float32_integers import EXACT, inexact_integer

_LARGEST = 1 << 64  # beyond all integer types: float limits such as 3e38, by which layers choose


def refusal(number: int) -> tuple[str, str]:
    """Returns the reason why an integer cannot be in a file, and the help."""
    reason = f"the integer {number} is not exact in float32, the type of Caffe's blobs"
    return reason, "use integers up to 2**24, or another target"


def inexact_constants(graph: InternalGraph) -> Iterator[Unsupported]:
    """Yields the calls with constants that float32 does not hold, and outputs that such a constant may reach.

    The limit of an integer type is the start of a minimum or maximum. In float32 it is rounded away from 0,
    and stays beyond all integers that a blob represents exactly, so a minimum or maximum may use it.
    """
    limits: dict[Node, int] = {}  # tensors in which the limit of an integer type may be
    found: dict[Node, int] = {}
    for expr in graph:
        if isinstance(expr, Constant) and _has_integers(expr.output):
            number = inexact_integer(np.asarray(expr.value))
            if number is not None:
                kept = limits if _is_limit(np.asarray(expr.value)) else found
                kept[expr.output] = number
        wrong = next((found[node] for node in expr.inputs if node in found), None)
        limit = next((limits[node] for node in expr.inputs if node in limits), None)
        if limit is not None and not _chooses(expr):
            limits |= {node: limit for node in expr.outputs if _has_integers(node)}
        if wrong is None and any(map(graph.is_output, expr.outputs)):
            reached = (each.get(node) for each in (found, limits) for node in expr.outputs)
            wrong = next((number for number in reached if number is not None), None)
        if wrong is not None:
            yield Unsupported(expr, *refusal(wrong))


def _has_integers(node: Node) -> bool:
    return isinstance(node, TensorNode) and np.dtype(node.dtype).kind in "iu"


def _chooses(expr: Expr) -> bool:
    """Whether a result is the least or the largest of some elements."""
    return has_trait(expr, Reduction) and has_trait(expr, KeepsQparams)


def _is_limit(array: np.ndarray) -> bool:
    """Whether all elements are the least or the largest integer of their type."""
    limits = np.iinfo(array.dtype)
    return bool(np.isin(array, (limits.min, limits.max)).all())


def inexact_parameter(operators: Iterable[Operator]) -> int | None:
    """Returns an integer among the parameters of layers on integers that float32 does not hold."""
    for operator in operators:
        values = [value for value in (*operator.inputs, *operator.outputs) if value is not None]
        if not any(map(_is_integer, values)):
            continue
        for number in leaves(dict(operator.attributes)):
            if not isinstance(number, (int, float)) or not EXACT < abs(number) < _LARGEST:
                continue
            if float(np.float32(number)) != number == int(number):
                return int(number)
    return None


def _is_integer(value: Value) -> bool:
    return name_of(value.dtype).startswith(("int", "uint"))
