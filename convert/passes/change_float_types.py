"""Changes the float types of a graph: of inputs, constants and results alike.

A cast between two types that become one is an identity then, which rounds nothing. A tensor that no call
computes with, such as float16 between two casts, rounds on purpose: it keeps its type.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, Constant, InternalGraph, Node, TensorNode
from tmconvert.ir.types import name_of
from tmconvert.passes.rewriting import PassRecord
from tmconvert.symbolics.registry import trait_of
from tmconvert.symbolics.traits import Casts


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
        record = PassRecord(self.name)
        tensors = list(_tensors(graph))
        changed: dict[Node, str] = {node: _dtype(node) for node in tensors if self._is_replaced(graph, node)}
        for name in () if self.is_inside else sorted({*changed.values()}):
            record.notes.append(f"{name} as {self.dtype}: " + "; ".join(_parts(graph, changed, name)))
        for node in tensors:
            if node in changed:
                node.dtype = self.dtype
        for expr in graph:
            if isinstance(expr, Constant):
                if expr.output in changed:
                    expr.value = rounded(np.asarray(expr.value), self.dtype)
            elif isinstance(expr, CallFunction) and not changed.keys().isdisjoint(expr.inputs + expr.outputs):
                if changed.keys().isdisjoint(expr.outputs) and trait_of(expr, Casts):
                    continue
                expr.kwargs = {name: self._attribute(value) for name, value in expr.kwargs.items()}
                expr.inferred = None
                record.did(expr, f"computes in {self.dtype}")
        return record

    def _is_replaced(self, graph: InternalGraph, node: TensorNode) -> bool:
        return _dtype(node) in self.replaced and not _only_rounds(graph, node)

    def _attribute(self, value: object) -> Any:
        if isinstance(value, str) and value in self.replaced:
            return self.dtype.name
        if isinstance(value, float) and math.isfinite(value):
            most = float(np.finfo(self.dtype).max)
            return min(max(value, -most), most)
        return value


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


def _only_rounds(graph: InternalGraph, node: TensorNode) -> bool:
    """Whether a cast made this tensor and casts take it, each from and to a wider type."""
    if graph.is_output(node) or not node.uses or node.expr is None:
        return False
    size = node.type.dtype.itemsize
    return all(
        trait_of(expr, Casts) is not None
        and all(each.type.dtype.itemsize > size for each in tensors if isinstance(each, TensorNode))
        for expr, tensors in ((node.expr, node.expr.inputs), *((user, user.outputs) for user in node.users))
    )


def _tensors(graph: InternalGraph) -> Iterator[TensorNode]:
    yield from (node for node in graph.inputs if isinstance(node, TensorNode))
    for expr in graph:
        yield from (node for node in expr.outputs if isinstance(node, TensorNode))


def _parts(graph: InternalGraph, changed: Mapping[Node, str], name: str) -> Iterator[str]:
    """Names the inputs and outputs that had the type ``name``, and counts the other tensors."""
    outputs = zip(graph.output_names or ("",) * len(graph.outputs), graph.outputs, strict=True)
    names = {
        "input": [node.name for node in graph.inputs if changed.get(node) == name],
        "output": [called or node.name for called, node in outputs if changed.get(node) == name],
    }
    for kind, found in names.items():
        if found:
            yield f"{kind}{'s' * (len(found) > 1)} {', '.join(found)}"
    edges = {*graph.inputs, *graph.outputs}
    inside = sum(each == name and node not in edges for node, each in changed.items())
    if inside:
        yield f"{inside} tensor{'s' * (inside > 1)} inside"


def _dtype(node: Node) -> str:
    return name_of(node.dtype) if isinstance(node, TensorNode) and node.dtype is not None else ""
