"""ONNX: gather by indices of any shape, without reshapes to one axis and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tmconvert.ir.symbolic.dims import Size, is_symbolic, same_size
from tmconvert.lowering.rewriting import producers, remove_operators, remove_unused, users
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.passes.rewriting import PassRecord


def fold_index_reshapes(graph: TargetGraph) -> PassRecord:
    """Fold the Reshape of indices into each Gather that takes them, where reshapes alone use its result.

    Gather puts all axes of the indices in place of the one that it gathers along, and ATen has indices of one
    axis. The reshapes of the result that restore these axes are removed.
    """
    record = PassRecord("fold_index_reshapes")
    makers, takers, uses = producers(graph), users(graph), graph.use_counts()
    gone: set[int] = set()
    for operator in graph.operators:
        inner = makers.get(id(operator.inputs[1])) if operator.type == "Gather" else None
        if inner is None or inner.type != "Reshape" or id(inner) in gone:
            continue
        result, shape = operator.outputs[0], _shape(operator, inner)
        after = takers[id(result)]
        restores = [each for each in after if each.type == "Reshape" and _has_shape(each.outputs[0], shape)]
        if len(after) != uses[id(result)] or not all(each in restores or _is_static(each) for each in after):
            record.refuse(operator, f"`{result.name}` has users other than reshapes to a static shape")
            continue
        if is_symbolic(shape) and len(after) != 1:
            record.refuse(operator, "one of its sizes is symbolic")
            continue
        operator.inputs[1] = inner.inputs[0]
        uses[id(inner.outputs[0])] -= 1
        if not uses[id(inner.outputs[0])]:
            gone.add(id(inner))
        result.shape = shape
        if len(after) == 1 and restores:
            operator.outputs = after[0].outputs
            gone.add(id(after[0]))
        record.did(operator, f"takes the indices of `{inner.outputs[0].name}` in their own shape")
    if gone:
        remove_operators(graph, gone)
        remove_unused(graph)
    return record


def _has_shape(value: Value, shape: Sequence[Size]) -> bool:
    return len(value.shape) == len(shape) and all(map(same_size, value.shape, shape))


def _is_static(operator: Operator) -> bool:
    """Whether it is a Reshape that takes no size from its operand."""
    if operator.type != "Reshape" or len(operator.inputs) < 2 or operator.inputs[1] is None:
        return False
    shape = operator.inputs[1].data
    return shape is not None and bool(np.all(np.asarray(shape) != 0))


def _shape(gather: Operator, inner: Operator) -> tuple[Size, ...]:
    """Returns the shape of what is gathered by the indices before ``inner``."""
    x, indices, axis = gather.inputs[0], inner.inputs[0], gather.attributes.get("axis", 0)
    assert x is not None and indices is not None and isinstance(axis, int)
    axis %= len(x.shape)
    return (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
