"""Extracts a subgraph between named nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NoReturn, TypeVar

from tmconvert.errors import UsageError
from tmconvert.ir.expr import Constant, Input
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.node import Node, TensorNode
from tmconvert.ir.types import TensorType

MOST_NAMES = 12  # in a message
T = TypeVar("T")


def cut_graph(
    graph: InternalGraph,
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
    types: Mapping[Node, TensorType],
    written: Mapping[str, Node] | None = None,
) -> None:
    """Keeps only what computes ``outputs`` from ``inputs``, both node names; None keeps the graph's own.

    ``written`` are other names for outputs, those of the written file, which they keep.

    A node that becomes an input has the type in ``types``, or the recorded one. Inputs that no output needs
    are removed, unless ``inputs`` names them. Raises UsageError TM6014.
    """
    nodes = _named(graph)
    if outputs is not None:
        for name, node in (written or {}).items():
            if name not in nodes and isinstance(node, TensorNode):
                nodes[name] = node
                if name in outputs and not isinstance(node.expr, (Input, Constant)):
                    graph.rename(node, name)
        # A layer of Caffe may replace an input in place: as an output, the name is that of its result.
        replaced = {
            name: node for node, name in graph.source_names.items() if not isinstance(node.expr, Input)
        }
        results = [replaced.get(name) or _find(nodes, name, "output") for name in outputs]
        graph.set_result(results[0] if len(results) == 1 else tuple(results))
    if inputs is not None:
        wanted = [_find(nodes, name, "input") for name in inputs]
        made = [node if isinstance(node.expr, Input) else _new_input(graph, node, types) for node in wanted]
        graph.inputs[1:] = [*made, *(node for node in graph.inputs[1:] if node not in made)]
    _remove_unused(graph)
    for node in list(graph.inputs[1:]):
        if (inputs is not None and _input_name(node) in inputs) or node.name in (inputs or ()):
            continue
        if inputs is None and (outputs is None or graph.use_count(node)):
            continue
        if graph.use_count(node):
            name = _input_name(node)
            raise UsageError(
                "TM6014",
                f"the outputs still depend on the input {name!r}",
                notes=[("help", f"add {name} to --inputs, or choose inputs after its last use")],
            )
        graph.remove_input(node)


def _input_name(node: Node) -> str:
    return node.expr.name if isinstance(node.expr, Input) else node.name


def _named(graph: InternalGraph) -> dict[str, TensorNode]:
    """Returns every tensor by its name, and by that in the file; inputs also by the names of arguments."""
    nodes = [node for expr in graph for node in expr.outputs]
    named = {node.name: node for node in (*nodes, *graph.inputs[1:]) if isinstance(node, TensorNode)}
    for node, name in graph.source_names.items():
        if isinstance(node, TensorNode):
            named[name] = node
    for node in graph.inputs[1:]:
        if isinstance(node, TensorNode):
            named[_input_name(node)] = node
    return named


def _find(nodes: Mapping[str, TensorNode], name: str, what: str) -> TensorNode:
    found = nodes.get(name) or nodes.get(matching_name(name, list(nodes)))
    if found is None:
        unknown(name, list(nodes), f"the model has no node {name!r}, which was requested as an {what}")
    return found


def matching_name(name: str, known: Sequence[str]) -> str:
    """Returns the one of ``known`` that means the same, as ``x.0.key`` and ``x_0_key`` do; ``name`` if none.

    >>> matching_name("past.0.key", ["x", "past_0_key"])
    'past_0_key'
    """
    if name in known:
        return name
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    found = [each for each in known if re.sub(r"\W", "_", each, flags=re.ASCII) == plain]
    return found[0] if len(found) == 1 else name


def by_matching_name(given: Mapping[str, T], known: Sequence[str]) -> dict[str, T]:
    """Returns values by the names of ``known`` that theirs mean; see ``matching_name``.

    >>> by_matching_name({"input_1": 3, "y": 4}, ["input.1"])
    {'input.1': 3, 'y': 4}
    """
    return {matching_name(str(name), known): value for name, value in given.items()}


def matching_input(name: str, known: Sequence[str]) -> str:
    """Returns the name of the input. Raises UsageError TM6014 where there is none."""
    found = matching_name(name, known)
    return found if found in known else unknown(name, known, f"the model has no input {name!r}")


def unknown(name: str, known: Sequence[str], message: str) -> NoReturn:
    """Raises UsageError TM6014 for an unknown name, with similar names."""
    import difflib

    near = difflib.get_close_matches(name, known, n=5, cutoff=0.5)
    contained = [each for each in known if name and name in each and each not in near]
    suggested = (near + contained)[:MOST_NAMES]
    if suggested:
        hint = f"similar names: {', '.join(suggested)}"
    else:
        more = f", and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
        hint = f"valid names: {', '.join(known[:MOST_NAMES]) or 'none'}{more}"
    raise UsageError("TM6014", message, notes=[("help", hint)])


def _new_input(graph: InternalGraph, node: TensorNode, types: Mapping[Node, TensorType]) -> TensorNode:
    """Creates an input that replaces a computed node, under its name."""
    name = node.name
    graph.rename(node, graph.free_name(f"{name}_before_cut"))
    fresh = TensorNode(name, node.shape, node.dtype, qparams=node.qparams)
    if node in types:
        fresh.type = types[node]
    source = node.expr.source if node.expr is not None else None
    own = graph.source_names.pop(node, name)
    graph.add_input(fresh, own, source=source)
    if own != name:
        graph.source_names[fresh] = own
    graph.replace_uses(node, fresh)
    return fresh


def _remove_unused(graph: InternalGraph) -> None:
    expr = graph.last
    while expr is not None:
        previous = expr.previous
        if not any(graph.use_count(node) for node in expr.outputs):
            graph.remove(expr)
        expr = previous
