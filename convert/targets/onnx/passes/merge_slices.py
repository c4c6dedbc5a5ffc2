"""ONNX: merge slices of slices along different axes into one Slice of several axes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tmconvert.lowering.names import Names
from tmconvert.lowering.rewriting import names_of_values, producers, remove_operators
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.passes.rewriting import PassRecord

_BOUNDS = ("starts", "ends", "axes", "steps")


def merge_slices(graph: TargetGraph) -> PassRecord:
    """Merge each Slice with constant bounds into the one before it, where slices alone use the latter."""
    record = PassRecord("merge_slices")
    makers = producers(graph)
    uses = graph.use_counts()
    chained = [each for each in graph.operators if _inner(each, makers) is not None]
    if not chained:
        return record
    sliced: dict[int, list[Operator]] = {}
    for each in chained:
        sliced.setdefault(id(each.inputs[0]), []).append(each)
    names = names_of_values(graph)
    made: dict[tuple[int, ...], Value] = {}
    gone: set[int] = set()
    for operator in chained:
        x = operator.inputs[0]
        assert x is not None
        others = sliced[id(x)]
        if len(others) != uses[id(x)]:
            record.refuse(operator, f"`{x.name}` is needed by other operators than slices")
            continue
        inner = makers[id(x)]  # a merged one has more axes than it had
        if any(_inner(each, makers) is None for each in others if each.inputs[0] is x):
            record.refuse(operator, f"`{x.name}` is sliced along one of these axes")
            continue
        pairs = zip(_bounds(inner), _bounds(operator), strict=True)
        bounds = [np.concatenate(pair) for pair in pairs]
        values = [
            _constant(bound, role, operator, names, made) for bound, role in zip(bounds, _BOUNDS, strict=True)
        ]
        operator.inputs = [inner.inputs[0], *values]
        record.did(operator, f"was merged with `{x.name}`")
        gone.add(id(inner))
    remove_operators(graph, gone)
    return record


def _inner(operator: Operator, makers: Mapping[int, Operator]) -> Operator | None:
    """Returns the slice that ``operator`` slices along other axes."""
    inner = makers.get(id(operator.inputs[0])) if _is_constant(operator) else None
    if inner is None or not _is_constant(inner):
        return None
    rank = len(operator.outputs[0].shape)
    axes = [{int(axis) % rank for axis in _bounds(each)[2]} for each in (operator, inner)]
    return None if axes[0] & axes[1] else inner


def _is_constant(operator: Operator) -> bool:
    """Whether it is a Slice with all bounds as constants."""
    bounds = operator.inputs[1:]
    return (
        operator.type == "Slice"
        and len(bounds) == len(_BOUNDS)
        and all(value is not None and value.data is not None for value in bounds)
    )


def _bounds(operator: Operator) -> list[np.ndarray]:
    return [np.asarray(value.data) for value in operator.inputs[1:] if value is not None]


def _constant(
    array: np.ndarray, role: str, operator: Operator, names: Names, made: dict[tuple[int, ...], Value]
) -> Value:
    key = tuple(array.tolist())
    if key not in made:
        name = names.free(f"{operator.outputs[0].name}_{role}")
        made[key] = Value(name, array.dtype, array.shape, array)
    return made[key]
