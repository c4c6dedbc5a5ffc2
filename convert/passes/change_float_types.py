"""Changes the float types of a graph: of inputs, constants and results alike.

A cast between two types that become one is an identity then, which rounds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, Constant, InternalGraph, Node, TensorNode
from tmconvert.ir.types import name_of
from tmconvert.passes.rewriting import PassRecord


class ChangeFloatTypes:
    """Give all tensors of the float types ``replaced`` another one.

    A finite constant that is too large becomes the largest number of the new type, as -1.8e308 in a mask
    does. The note of the record says what changed.
    """

    name = "change_float_types"

    def __init__(self, replaced: Collection[str], to: str, *, is_inside: bool = False) -> None:
        self.replaced = frozenset(replaced) - {to}
        self.dtype = np.dtype(to)
        self.is_inside = is_inside

    @property
    def inside(self) -> ChangeFloatTypes:
        """The pass for subgraphs of calls, whose tensors the note does not count."""
        return ChangeFloatTypes(self.replaced, self.dtype.name, is_inside=True)

    def run(self, graph: InternalGraph) -> PassRecord:
        """Changes the types in place."""
        record, nodes = PassRecord(self.name), list(_tensors(graph))
        names = [name_of(node.dtype) for node in nodes if node.dtype is not None]
        for name in () if self.is_inside else sorted(self.replaced & {*names}):
            inside = names.count(name) - sum(_dtype(node) == name for node in _edges(graph))
            record.notes.append(f"{name} as {self.dtype}: " + "; ".join(self._parts(graph, name, inside)))
        self._change(graph, record)
        return record

    def _change(self, graph: InternalGraph, record: PassRecord) -> None:
        changed = {node for node in _tensors(graph) if self._is_replaced(node.dtype)}
        for node in changed:
            node.dtype = self.dtype
        for expr in graph:
            if isinstance(expr, Constant):
                if isinstance(expr.value, np.ndarray) and self._is_replaced(expr.value.dtype):
                    expr.value = rounded(expr.value, self.dtype)
            elif isinstance(expr, CallFunction) and not changed.isdisjoint((*expr.inputs, *expr.outputs)):
                expr.kwargs = {name: self._attribute(value) for name, value in expr.kwargs.items()}
                expr.inferred = None
                record.did(expr, f"computes in {self.dtype}")

    def _attribute(self, value: object) -> Any:
        if isinstance(value, str) and value in self.replaced:
            return self.dtype.name
        if isinstance(value, float) and math.isfinite(value):
            most = float(np.finfo(self.dtype).max)
            return min(max(value, -most), most)
        return value

    def _is_replaced(self, dtype: np.dtype | None) -> bool:
        return dtype is not None and name_of(dtype) in self.replaced

    def _parts(self, graph: InternalGraph, name: str, inside: int) -> Iterator[str]:
        outputs = zip(graph.output_names or ("",) * len(graph.outputs), graph.outputs, strict=True)
        names = {
            "input": [node.name for node in graph.inputs if _dtype(node) == name],
            "output": [called or node.name for called, node in outputs if _dtype(node) == name],
        }
        for kind, found in names.items():
            if found:
                yield f"{kind}{'s' * (len(found) > 1)} {', '.join(found)}"
        if inside > 0:
            yield f"{inside} tensor{'s' * (inside > 1)} inside"


def rounded(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Casts to a float type; finite elements stay finite.

    >>> rounded(np.array([-1e300, np.inf, 0.5]), np.dtype("float32"))
    array([-3.4028235e+38,            inf,  5.0000000e-01], dtype=float32)
    """
    with np.errstate(over="ignore"):
        made = array.astype(dtype)
    if np.dtype(dtype).itemsize < array.dtype.itemsize:
        is_lost = np.isinf(made) & np.isfinite(array)
        if np.any(is_lost):
            made = np.where(is_lost, np.copysign(np.finfo(dtype).max, made), made)
    return made


def _tensors(graph: InternalGraph) -> Iterator[TensorNode]:
    yield from (node for node in graph.inputs if isinstance(node, TensorNode))
    for expr in graph:
        yield from (node for node in expr.outputs if isinstance(node, TensorNode))


def _edges(graph: InternalGraph) -> set[TensorNode]:
    return {node for node in (*graph.inputs, *graph.outputs) if isinstance(node, TensorNode)}


def _dtype(node: Node) -> str:
    return name_of(node.dtype) if isinstance(node, TensorNode) and node.dtype is not None else ""
