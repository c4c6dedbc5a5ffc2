"""Runs the graph of a large model in pieces: each is a file with the weights of a few layers.

What a file with rounded weights is compared with has them in float32: several times as large as the file, and
as the memory of many machines. A piece is written, run and deleted before the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tmconvert.ir.types import NamedArrays, Paths, Shapes
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.output.atomic import temporary_folder
from tmconvert.targets.registry import target_named, write_files
from tmconvert.verification.runtime import Runtime

LARGE = 4 << 30  # bytes of weights
PIECE = 1 << 29


class InPieces:
    """A runtime that runs ``graph`` piece by piece, in ``runtime``; it opens none of the paths."""

    def __init__(self, runtime: Runtime, graph: TargetGraph) -> None:
        self.name, self._runtime, self._graph = runtime.name, runtime, graph
        self.pieces = pieces_of(graph)

    @property
    def version(self) -> str:
        return self._runtime.version

    def run(
        self, paths: Paths, inputs: NamedArrays, outputs: Sequence[str], *, shapes: Shapes | None = None
    ) -> list[np.ndarray]:
        """Returns the arrays of ``outputs``, see ``Runtime.run``."""
        graph = self._graph
        known = dict(zip(graph.output_names, graph.outputs, strict=True))
        wanted = [known[name] for name in outputs]
        given = zip(graph.input_names, graph.inputs, strict=True)
        held = {value.name: inputs[name] for name, value in given if name in inputs}
        held |= {value.name: value.data for value in wanted if value.data is not None}
        for number, piece in enumerate(self.pieces):
            fed = {value.name: held[value.name] for value in piece.inputs}
            with temporary_folder() as folder:
                made = self._runtime.run(write_graph(piece, folder, "piece"), fed, piece.output_names)
            held |= zip(piece.output_names, made, strict=True)
            later = {value.name for other in self.pieces[number + 1 :] for value in other.inputs}
            held = {name: held[name] for name in held if name in later | {each.name for each in wanted}}
        return [held[value.name] for value in wanted]


def is_large(graph: TargetGraph) -> bool:
    """Whether a graph is run in pieces: its weights are large, and all results have types."""
    is_typed = all(value.is_typed for operator in graph.operators for value in operator.outputs)
    return is_typed and sum(value.nbytes for value in graph.constants()) >= LARGE


def pieces_of(graph: TargetGraph) -> list[TargetGraph]:
    """Returns graphs of consecutive operators, each with at most ``PIECE`` bytes of weights or one operator.

    The inputs and outputs of a piece have the names of their values.
    """
    groups, size = list[list[Operator]](), 0
    for operator in graph.operators:
        own = sum(value.nbytes for value in _operands(operator))
        if not groups or size + own > PIECE:
            groups.append([])
            size = 0
        groups[-1].append(operator)
        size += own
    found, wanted = list[TargetGraph](), set(graph.outputs)
    for operators in reversed(groups):
        results = [value for each in operators for value in each.outputs]
        used = dict.fromkeys(value for each in operators for value in _operands(each))
        made = set(results) | {value for each in operators for value in _inner_results(each)}
        inputs = [value for value in used if not value.is_constant and value not in made]
        outputs = [value for value in dict.fromkeys(results) if value in wanted]
        wanted |= set(inputs)
        found.append(_piece(graph, operators, inputs, outputs))
    return found[::-1]


def _piece(
    graph: TargetGraph, operators: list[Operator], inputs: list[Value], outputs: list[Value]
) -> TargetGraph:
    names, results = ([value.name for value in values] for values in (inputs, outputs))
    made = TargetGraph(graph.target, graph.version, graph.name, inputs, outputs, operators, names, results)
    made.origins, made.signature = graph.origins, graph.signature
    return made


def _operands(operator: Operator) -> Iterator[Value]:
    """Yields what an operator reads, also in its subgraphs, and the results of these."""
    yield from (value for value in operator.inputs if value is not None)
    for graph in _subgraphs(operator):
        yield from graph.outputs
        yield from (value for inner in graph.operators for value in inner.inputs if value is not None)


def _inner_results(operator: Operator) -> Iterator[Value]:
    for graph in _subgraphs(operator):
        yield from graph.inputs
        yield from (value for inner in graph.operators for value in inner.outputs)


def _subgraphs(operator: Operator) -> Iterator[TargetGraph]:
    for attribute in operator.attributes.values():
        if isinstance(attribute, TargetGraph):
            yield from attribute.nested()


def write_graph(graph: TargetGraph, folder: Path, name: str) -> list[Path]:
    """Writes a graph, and returns the paths of its files."""
    target = target_named(graph.target)
    path = folder / f"{name}{target.suffixes[0]}"
    paths = target.files(graph, [path], target.default_options())
    write_files(graph, paths)
    return paths
