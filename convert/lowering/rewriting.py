"""Rewriting of lowered graphs: who makes and who takes a value, free names, and removal of operators.

``passes/rewriting.py`` has the rules for graphs of aten ops. A value is known by its ``id``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping

from tmconvert.lowering.names import Names
from tmconvert.lowering.target_graph import Operator, TargetGraph


def producers(graph: TargetGraph) -> dict[int, Operator]:
    """Maps each computed value to its operator."""
    return {id(value): operator for operator in graph.operators for value in operator.outputs}


def users(graph: TargetGraph) -> Mapping[int, list[Operator]]:
    """Maps each value to the operators that take it, once for each operand; empty for unused values."""
    found: dict[int, list[Operator]] = defaultdict(list)
    for operator in graph.operators:
        for value in operator.inputs:
            if value is not None:
                found[id(value)].append(operator)
    return found


def names_of_values(graph: TargetGraph) -> Names:
    """Returns the names in use, among which new values find a free one."""
    names = Names(value.name for value in (*graph.inputs, *graph.constants()))
    names.take(value.name for operator in graph.operators for value in operator.outputs)
    return names


def remove_operators(graph: TargetGraph, gone: Container[int]) -> None:
    """Removes the operators whose ``id`` is in ``gone``."""
    graph.operators = [operator for operator in graph.operators if id(operator) not in gone]


def remove_unused(graph: TargetGraph) -> None:
    """Removes the operators whose results no operator and no output uses."""
    uses, gone = graph.use_counts(), set[int]()
    for operator in reversed(graph.operators):
        if not any(uses[id(value)] for value in operator.outputs):
            gone.add(id(operator))
            uses.subtract(id(value) for value in operator.inputs if value is not None)
    remove_operators(graph, gone)
