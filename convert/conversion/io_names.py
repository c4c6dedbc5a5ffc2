"""Names of a model's inputs and outputs in the written file.

An input has the name of the argument of ``forward``. An output has the name of the node that computes it, or,
where the model returns dicts, the keys that lead to it: ``{"lst": [a, b], "pool": {"avg": c}}`` gives
``lst_0``, ``lst_1`` and ``pool_avg``. Those of a model that was read from a file keep their names in it, also
where these are no identifiers, such as ``input.1``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tmconvert.errors import UsageError
from tmconvert.errors.values import shown_value
from tmconvert.ir import Constant, Input, InternalGraph, Node
from tmconvert.ir.extract import matching_name, unknown

_NAME = re.compile(r"[!#-&(-\[\]-~]+")  # ASCII without spaces, quotes and backslashes


def name_edges(graph: InternalGraph, source: InternalGraph, rename: Mapping[str, str]) -> None:
    """Names outputs by their position in the result, then applies ``rename``. Raises UsageError TM6014.

    ``source`` is the flat graph of the model, whose nodes keep their names where a call returns its operand.
    """
    named = list(_output_names(graph.result))
    sources = [node for _, node in _output_names(source.result)]
    if len(sources) != len(named):  # a node that was recorded as one tensor and is several
        sources = [node for _, node in named]
    outputs = [
        name or source.source_names.get(node, node.name)
        for (name, _), node in zip(named, sources, strict=True)
    ]
    inputs = [source.source_names.get(node, node.name) for node in source.inputs[1:]]
    _unique(outputs, inputs)
    rename = {matching_name(old, [*inputs, *outputs]): new for old, new in rename.items()}
    for old, new in rename.items():
        if not isinstance(new, str) or not _NAME.fullmatch(new):
            why = (
                "is not a valid name for an input or output: use ASCII without spaces, quotes and backslashes"
            )
            raise UsageError("TM6014", f"{shown_value(new)} {why}")
        if old not in (*inputs, *outputs):
            unknown(old, [*inputs, *outputs], f"the model has no input or output {old!r} to rename")
    inputs = [rename.get(name, name) for name in inputs]
    outputs = [rename.get(name, name) for name in outputs]
    counts = Counter([*inputs, *outputs])
    for name in set(rename.values()):
        if counts[name] > 1:
            raise UsageError("TM6014", f"two inputs or outputs would have the name {name!r}")
    wanted: dict[Node, str] = dict(zip(graph.inputs, inputs, strict=True))
    for node, name in zip(graph.outputs, outputs, strict=True):
        if not isinstance(node.expr, (Input, Constant)):
            wanted.setdefault(node, name)
    _give(graph, {node: name for node, name in wanted.items() if node.name != name})
    graph.output_names = tuple(outputs)


def written_outputs(graph: InternalGraph) -> dict[str, Node]:
    """Returns the outputs of a flat graph by their names in the written file."""
    named, own = list(_output_names(graph.result)), graph.source_names
    names = source_outputs(graph)
    _unique(names, [own.get(node, node.name) for node in graph.inputs])
    return dict(zip(names, (node for _, node in named), strict=True))


def source_outputs(graph: InternalGraph) -> list[str]:
    """Returns the names of the outputs of a flat graph in its source, where they may be those of inputs."""
    own = graph.source_names
    return [name or own.get(node, node.name) for name, node in _output_names(graph.result)]


def output_paths(tree: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Node]]:
    """Yields the keys and positions that lead to each output, and the output, in order."""
    if isinstance(tree, dict):
        for key, child in tree.items():
            yield from output_paths(child, (*path, str(key)))
    elif isinstance(tree, (list, tuple)):
        for index, child in enumerate(tree):
            yield from output_paths(child, (*path, index))
    elif isinstance(tree, Node):
        yield path, tree


def _output_names(tree: object) -> Iterator[tuple[str, Node]]:
    """Returns (name, or an empty one if only positions identify it; node) of each output, in order."""
    for path, node in output_paths(tree):
        parts = ["out", *path] if path and isinstance(path[0], int) else list(path)
        is_telling = any(isinstance(part, str) for part in path)
        yield re.sub(r"[^A-Za-z_0-9.]", "_", "_".join(map(str, parts))) if is_telling else "", node


def _unique(outputs: list[str], inputs: list[str]) -> None:
    """Makes output names unique among outputs and inputs, in place."""
    taken = set(inputs)
    counts = Counter[str]()  # of the names that were tried, by base
    for position, base in enumerate(outputs):
        name = base
        while name in taken or not name:
            counts[base] += 1
            name = f"{base}_output" if counts[base] == 1 else f"{base}_output_{counts[base] - 1}"
        taken.add(name)
        outputs[position] = name


def _give(graph: InternalGraph, wanted: Mapping[Node, str]) -> None:
    """Renames nodes; other nodes with these names get new ones."""
    for node in wanted:
        graph.rename(node, graph.free_name(f"{node.name}_inner"))
    for node, name in wanted.items():
        other = graph.node_called(name)
        if other is not None:
            graph.rename(other, graph.free_name(f"{name}_inner"))
        graph.rename(node, name)
