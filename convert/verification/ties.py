"""Handles ties: the order of equal elements, which differs between sources and runtimes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tmconvert.ir import CallFunction, TensorNode
from tmconvert.ir.types import Arrays
from tmconvert.symbolics.registry import has_trait
from tmconvert.symbolics.traits import RanksElements, SameElements
from tmconvert.verification.compare import TOLERANCES, Comparison
from tmconvert.verification.reference import Reference

_EQUAL = 1e-5  # of the largest: what rounding may put in either order


def with_equal_elements(
    reference: Reference, inputs: Arrays, actual: Arrays, expected: Arrays, comparisons: Sequence[Comparison]
) -> list[np.ndarray]:
    """Returns ``actual`` with the elements of ``expected`` where only the order of ties differs."""
    made = list(actual)
    equal = max([_EQUAL, *(TOLERANCES["bfloat16"] for each in actual if each.dtype.name == "bfloat16")])
    for number, each in enumerate(comparisons):
        if not each.ok and each.shape == each.expected_shape:
            made[number] = _picked_alike(reference, inputs, number, actual[number], expected[number], equal)
    return _rows_in_order(made, expected, comparisons)


def _picked_alike(
    reference: Reference, inputs: Arrays, number: int, actual: np.ndarray, expected: np.ndarray, equal: float
) -> np.ndarray:
    """Returns the expected indices where the file's indices select equal elements, but for ``equal``."""
    call = _selection(reference.graph.outputs[number])
    if call is None or actual.dtype.kind not in "iu" or expected.dtype.kind not in "iu":
        return actual
    x = reference.operand(call, inputs)
    axis = call.kwargs.get("dim")
    flat = x.reshape(-1) if axis is None else np.moveaxis(x, axis, -1)
    is_reduced = actual.ndim < flat.ndim or axis is None
    if flat.ndim == 0 or actual.min(initial=0) < 0 or actual.max(initial=0) >= flat.shape[-1]:
        return actual
    try:
        ours, theirs = (
            _taken(flat, each if is_reduced or axis is None else np.moveaxis(each, axis, -1))
            for each in (actual, expected)
        )
    except ValueError:  # the output has another form than the selection
        return actual
    scale = float(np.max(np.abs(x[np.isfinite(x)]), initial=0)) if x.dtype.kind == "f" else 0.0
    with np.errstate(invalid="ignore"):  # of two infinities
        is_alike = (ours == theirs) | (np.abs(ours.astype(np.float64) - theirs) <= equal * scale)
    if is_reduced or axis is None:
        return np.where(is_alike.reshape(expected.shape), expected, actual)
    indices = np.sort(np.moveaxis(actual, axis, -1), axis=-1)
    is_distinct = bool((np.diff(indices, axis=-1) != 0).all())
    return expected if is_alike.all() and is_distinct else actual


def _taken(x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    if indices.ndim == x.ndim:
        return np.take_along_axis(x, indices, -1)
    return np.take_along_axis(x, indices.reshape((*x.shape[:-1], 1)), -1)[..., 0].reshape(indices.shape)


def _selection(node: object) -> CallFunction | None:
    """Returns the selecting call from which an output of indices comes, through casts and reshapes."""
    while isinstance(node, TensorNode) and isinstance(node.expr, CallFunction):
        if has_trait(node.expr, RanksElements):
            return node.expr
        if not has_trait(node.expr, SameElements):
            return None
        node = node.expr.args[0]
    return None


def _rows_in_order(
    actual: list[np.ndarray], expected: Arrays, comparisons: Sequence[Comparison]
) -> list[np.ndarray]:
    """Sorts rows with equal scores, such as boxes, like in ``expected``.

    The scores are an output that agrees as it is; only rows of which these are equal change places, and all
    outputs with as many rows change alike.
    """
    made = list(actual)
    keys = [
        number
        for number, each in enumerate(comparisons)
        if each.ok and len(each.shape) == 1 and each.shape[0] > 1 and expected[number].dtype.kind == "f"
    ]
    for key in keys:
        scores = expected[key]
        rows = [
            number
            for number, each in enumerate(comparisons)
            if each.shape == each.expected_shape and each.shape[:1] == scores.shape
        ]
        order = np.arange(scores.size)
        for group in _groups(scores):
            order[group] = _matched(group, [(made[each], expected[each]) for each in rows])
        for each in rows:
            made[each] = made[each][order]
    return made


def _groups(scores: np.ndarray) -> list[np.ndarray]:
    """Yields positions of equal scores, two or more each."""
    by_score = np.argsort(scores, kind="stable")
    far = np.abs(np.diff(scores[by_score].astype(np.float64))) > _EQUAL * np.max(np.abs(scores))
    groups = np.split(by_score, np.flatnonzero(far) + 1)
    return [np.sort(group) for group in groups if group.size > 1]


def _matched(group: np.ndarray, pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[int]:
    """Returns for each row of ``group`` the nearest unused row of the file."""
    left, order = list(group), []
    for row in group:
        nearest = min(left, key=lambda other: sum(_distance(a[other], b[row], b) for a, b in pairs))
        left.remove(nearest)
        order.append(int(nearest))
    return order


def _distance(one: np.ndarray, other: np.ndarray, all_rows: np.ndarray) -> float:
    scale = float(np.max(np.abs(all_rows), initial=0)) or 1.0
    return float(np.max(np.abs(one.astype(np.float64) - other), initial=0)) / scale
