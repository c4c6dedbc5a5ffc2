"""Integers in Caffe's blobs, which are float32: exact up to 2**24, beyond it with enough factors of 2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from tmconvert.ir import Constant, InternalGraph, Node
from tmconvert.ir.tree import leaves
from tmconvert.ir.types import name_of
from tmconvert.ir.unsupported import Unsupported
from tmconvert.lowering.target_graph import Operator, Value

_EXACT = 1 << 24  # float32 holds all integers up to here
_LARGEST = 1 << 64  # beyond all integer types: float limits such as 3e38, by which layers choose


def inexact_integer(array: np.ndarray) -> int | None:
    """Returns the first element of an integer array that float32 does not hold; None where it holds all.

    >>> inexact_integer(np.array([1, (1 << 24) + 1, 1 << 25]))
    16777217
    """
    if array.dtype.kind not in "iu" or not array.size or array.dtype.itemsize < 4:
        return None
    array = np.atleast_1d(array)
    size = np.where(array < 0, ~array.astype(np.uint64) + np.uint64(1), array.astype(np.uint64))
    odd = size // np.maximum(size & (~size + np.uint64(1)), np.uint64(1))  # without its factors of 2
    wrong = array[odd >= _EXACT]
    return int(wrong.flat[0]) if wrong.size else None


def _is_limit(array: np.ndarray) -> bool:
    """Whether all elements are the least or the largest integer of their type."""
    limits = np.iinfo(array.dtype)
    return bool(np.isin(array, (limits.min, limits.max)).all())


def refusal(number: int) -> tuple[str, str]:
    """Returns the reason why an integer cannot be in a file, and the help."""
    reason = f"the integer {number} is not exact in float32, the type of Caffe's blobs"
    return reason, "use integers up to 2**24, or another target"


def inexact_constants(graph: InternalGraph) -> Iterator[Unsupported]:
    """Yields the calls with constants that float32 does not hold, and such constants that are outputs.

    The limit of an integer type is the start of a minimum or maximum. In float32 it is rounded away from 0,
    still beyond all integers that a blob holds exactly, so it may be used, but not be an output.
    """
    limits: set[Node] = set()
    found: dict[Node, int] = {}
    for expr in graph:
        if isinstance(expr, Constant) and np.dtype(expr.output.dtype).kind in "iu":
            number = inexact_integer(np.asarray(expr.value))
            if number is not None:
                found[expr.output] = number
                if _is_limit(np.asarray(expr.value)):
                    limits.add(expr.output)
                if graph.is_output(expr.output):
                    yield Unsupported(expr, *refusal(number))
        allowed = limits if not any(map(graph.is_output, expr.outputs)) else set()
        wrong = next((node for node in expr.inputs if node in found and node not in allowed), None)
        if wrong is not None:
            yield Unsupported(expr, *refusal(found[wrong]))


def inexact_parameter(operators: Iterable[Operator]) -> int | None:
    """Returns an integer among the parameters of layers on integers that float32 does not hold."""
    for operator in operators:
        values = [value for value in (*operator.inputs, *operator.outputs) if value is not None]
        if not any(map(_is_integer, values)):
            continue
        for number in leaves(dict(operator.attributes)):
            if not isinstance(number, (int, float)) or not _EXACT < abs(number) < _LARGEST:
                continue
            if float(np.float32(number)) != number == int(number):
                return int(number)
    return None


def float32_inputs(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the inputs as float32. Raises ValueError for integers that it does not hold."""
    for name, array in inputs.items():
        found = inexact_integer(array)
        if found is not None:
            raise ValueError(
                f"the input {name} has the integer {found}, which float32, the type of Caffe's blobs, does "
                "not hold"
            )
    return {name: np.ascontiguousarray(array, np.float32) for name, array in inputs.items()}


def _is_integer(value: Value) -> bool:
    return name_of(value.dtype).startswith(("int", "uint"))
