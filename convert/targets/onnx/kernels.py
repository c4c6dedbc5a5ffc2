"""Operators of a written ONNX graph that ONNX Runtime has no kernel for."""

from __future__ import annotations

from tmconvert.ir.types import name_of
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.targets.onnx.passes.casts import types_without_kernel


def missing_kernels(graph: TargetGraph) -> list[str]:
    """Returns a line for each operator and element type without kernel, with the number of nodes and the
    first one.

    The standard takes these types, so the file is valid; some of these, such as float64, have no exact
    alternative.
    """
    assert isinstance(graph.version, int)
    found: dict[tuple[str, str], list[str]] = {}
    for operator in graph.all_operators():
        if operator.domain:
            continue
        dtypes = tuple(None if value is None else name_of(value.dtype) for value in operator.inputs)
        for dtype in types_without_kernel(operator.type, dtypes, graph.version):
            place = f"{operator.name} ({operator.source})" if operator.source else operator.name
            found.setdefault((operator.type, dtype), []).append(place)
    return [
        f"ONNX Runtime has no kernel for {operator} in {dtype} in at least one release since 1.17: "
        f"{len(places)} node{'s' if len(places) > 1 else ''}, first {places[0]}"
        for (operator, dtype), places in found.items()
    ]
