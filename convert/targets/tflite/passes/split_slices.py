"""TFLite: combine SLICEs of equal parts of a matrix to a SPLIT: GPU delegates slice rank 3 or 4 only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tmconvert.ir.types import name_of
from tmconvert.lowering.names import Names
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.passes.rewriting import PassRecord
from tmconvert.targets.tflite.operators import spec

_SPLIT = "SPLIT"
_MOST = 4  # parts; XNNPACK has kernels for so many


def split_slices(graph: TargetGraph) -> PassRecord:
    """Make SLICEs of equal parts of a matrix one SPLIT, in place."""
    record = PassRecord("split_slices")
    names = Names(value.name for value in graph.inputs)
    names.take(value.name for operator in graph.operators for value in operator.outputs)
    groups: dict[tuple[int, int, int], dict[int, Operator]] = {}
    for operator in graph.operators:
        part = _part(operator)
        if part is not None:
            axis, count, at = part
            if not _has_kernel(operator):
                record.refuse(operator, f"{_SPLIT} has no kernel for {name_of(operator.outputs[0].dtype)}")
                continue
            if count > _MOST:
                record.refuse(operator, f"it is one of {count} parts, more than the {_MOST} that are fast")
                continue
            group = groups.setdefault((id(operator.inputs[0]), axis, count), {})
            group.setdefault(at, operator)  # the same part once more stays a SLICE
    made = {
        id(next(iter(group.values()))): _split(group, axis, count, names)
        for (_, axis, count), group in groups.items()
    }
    for first, operator in zip(
        (next(iter(group.values())) for group in groups.values()), made.values(), strict=True
    ):
        record.did(first, f"is a SPLIT into {len(operator.outputs)} parts now")
    gone = {id(operator) for group in groups.values() for operator in group.values()}
    graph.operators = [
        made.get(id(operator), operator)
        for operator in graph.operators
        if id(operator) in made or id(operator) not in gone
    ]
    return record


def _has_kernel(operator: Operator) -> bool:
    types = spec(_SPLIT).types
    return types is None or name_of(operator.outputs[0].dtype) in types


def _part(operator: Operator) -> tuple[int, int, int] | None:
    """Returns the axis of which this is one of several equal parts, their number, and its index."""
    if operator.type != "SLICE" or len(operator.outputs[0].shape) != 2:
        return None
    x, begin, _ = operator.inputs
    result = operator.outputs[0]
    if x is None or x.is_constant or begin is None or begin.data is None:
        return None
    shape, made = x.shape, result.shape
    if not all(isinstance(extent, int) and extent for extent in (*shape, *made)):
        return None
    cut = [axis for axis in (0, 1) if shape[axis] != made[axis]]
    if len(cut) != 1 or (result.qparams not in (None, x.qparams)):
        return None
    (axis,) = cut
    first, extent = int(begin.data[axis]), made[axis]
    count = shape[axis] // extent
    is_equal = shape[axis] == count * extent and first % extent == 0
    return (axis, count, first // extent) if is_equal else None


def _split(group: dict[int, Operator], axis: int, count: int, names: Names) -> Operator:
    first = next(iter(group.values()))
    x, shape = first.inputs[0], first.outputs[0].shape
    assert x is not None
    name = first.outputs[0].name
    outputs = [
        group[i].outputs[0]
        if i in group
        else Value(names.free(f"{name}_unused_{i}"), x.dtype, shape, qparams=x.qparams)
        for i in range(count)
    ]
    place = Value(names.free(f"{name}_axis"), np.dtype(np.int32), (), np.array(axis, np.int32))
    return replace(first, type=_SPLIT, inputs=[place, x], outputs=outputs, attributes={"num_splits": count})
