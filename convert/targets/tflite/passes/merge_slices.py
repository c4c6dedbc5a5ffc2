"""TFLite: merge slices of slices: x[:, 1:3, 2:4] is one SLICE, x[:, ::2, ::2] one STRIDED_SLICE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tmconvert.lowering.names import Names
from tmconvert.lowering.rewriting import names_of_values, producers, remove_operators
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.passes.rewriting import PassRecord


class _Window(NamedTuple):
    """Where the elements of a result are on each axis of the operand: first, step, and how many."""

    begin: tuple[int, ...]
    step: tuple[int, ...]
    extent: tuple[int, ...]

    def after(self, inner: _Window) -> _Window:
        """Returns this window composed with ``inner``, as a window of the operand of ``inner``."""
        axes = range(len(self.begin))
        begin = tuple(inner.begin[axis] + self.begin[axis] * inner.step[axis] for axis in axes)
        return _Window(begin, tuple(inner.step[axis] * self.step[axis] for axis in axes), self.extent)


def merge_slices(graph: TargetGraph) -> PassRecord:
    """Merge each SLICE or STRIDED_SLICE into the one before it, in place.

    The latter must be used by slices only, and have no quantization parameters of its own.
    """
    record = PassRecord("merge_slices")
    makers = producers(graph)
    slices = Counter(id(each.inputs[0]) for each in graph.operators if _window(each))
    if not any(id(value) in slices for each in graph.operators if _window(each) for value in each.outputs):
        return record
    names = names_of_values(graph)
    others = graph.use_counts() - slices
    gone: set[int] = set()
    for operator in graph.operators:
        window, x = _window(operator), operator.inputs[0] if operator.inputs else None
        inner = None if window is None or x is None else makers.get(id(x))
        before = None if inner is None else _window(inner)
        if window is None or x is None or inner is None or before is None:
            continue
        reason = _refusal(x, inner, others)
        if reason is not None:
            record.refuse(operator, reason)
            continue
        _rewrite(operator, inner.inputs[0], window.after(before), names)
        record.did(operator, f"was merged with `{x.name}`")
        gone.add(id(inner))
    remove_operators(graph, gone)
    return record


def _refusal(x: Value, inner: Operator, others: Counter[int]) -> str | None:
    source = inner.inputs[0]
    if others[id(x)]:
        return f"`{x.name}` is needed by other operators than slices, or is an output of the model"
    if source is not None and x.qparams not in (None, source.qparams):
        return f"`{x.name}` has quantization parameters of its own"
    return None


def _window(operator: Operator) -> _Window | None:
    """Returns the bounds of a slice with static sizes; None for other operators."""
    is_strided = operator.type == "STRIDED_SLICE"
    if not (is_strided or operator.type == "SLICE") or any(operator.attributes.values()):
        return None
    x, *bounds = operator.inputs
    shape = operator.outputs[0].shape
    known = [None if value is None else value.data for value in bounds]
    if x is None or not all(isinstance(extent, int) and extent for extent in (*x.shape, *shape)):
        return None
    begin, step = known[0], known[2] if is_strided else np.ones(len(shape), np.int32)
    # negative numbers count from the end, or backwards: ends would need masks
    if begin is None or step is None or (begin < 0).any() or (step < 1).any():
        return None
    return _Window(tuple(begin.tolist()), tuple(step.tolist()), tuple(shape))


def _rewrite(operator: Operator, x: Value | None, window: _Window, names: Names) -> None:
    """Makes ``operator`` take ``window`` of ``x``."""
    name = operator.outputs[0].name

    def constant(role: str, numbers: Sequence[int]) -> Value:
        array = np.array(numbers, np.int32)
        return Value(names.free(f"{name}_{role}"), array.dtype, array.shape, array)

    begin = constant("begin", window.begin)
    if set(window.step) <= {1}:
        operator.type, operator.inputs = "SLICE", [x, begin, constant("size", window.extent)]
        return
    parts = zip(*window, strict=True)
    ends = [first + (count - 1) * step + 1 for first, step, count in parts]
    operator.type = "STRIDED_SLICE"
    operator.inputs = [x, begin, constant("end", ends), constant("strides", window.step)]
