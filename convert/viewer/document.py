"""The JSON document of the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tmconvert.frontends.shared.view_graph import ViewGraph
from tmconvert.viewer.modules import Module, module_tree
from tmconvert.viewer.statistics import channels_of, statistics_of

FORMAT = 1


def document(
    graphs: Sequence[ViewGraph],
    reports: Iterable[Mapping[str, Any]] = (),
    title: str = "",
    captions: Sequence[str] = (),
) -> dict[str, Any]:
    """Returns the document for graphs, the written file's last, and reports of quantization noise.

    ``captions`` are those of two graphs that are not a source and its file. The document is the same for the
    same input.
    """
    made = {"captions": [*captions]} if captions else {}
    return made | {
        "format": FORMAT,
        "title": title or (graphs[-1].title if graphs else "report"),
        "graphs": [graph_record(graph) for graph in graphs],
        "reports": [dict(each) for each in reports],
    }


def graph_record(graph: ViewGraph) -> dict[str, Any]:
    """Returns a graph as the page reads it: modules refer to their parents, nodes to modules and tensors."""
    modules, parents = _modules(graph)
    constants = _constants(graph)
    qparams = {
        str(number): tensor.qparams
        for number, tensor in enumerate(graph.tensors)
        if tensor.qparams is not None
    }
    return {
        "title": graph.title,
        "kind": graph.kind,
        "summary": [list(each) for each in graph.summary],
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "tensors": [[tensor.name, tensor.type] for tensor in graph.tensors],
        "constants": constants,
        "qparams": qparams,
        "modules": modules,
        "nodes": [_node(graph, number, parents[number]) for number in range(len(graph.nodes))],
    }


def _constants(graph: ViewGraph) -> dict[str, dict[str, Any]]:
    """Returns the statistics of constants, by the numbers of their tensors; values of several count once."""
    known: dict[int, dict[str, Any]] = {}  # by the identity of the values
    records = {}
    for number, tensor in enumerate(graph.tensors):
        record: dict[str, Any] = {}
        if tensor.values is not None:
            if id(tensor.values) not in known:
                known[id(tensor.values)] = statistics_of(tensor.values)
            record |= known[id(tensor.values)]
            if tensor.channel_axis is not None:
                channels = channels_of(tensor.values, tensor.channel_axis)
                record |= {} if channels is None else {"channels": channels}
        if record | tensor.notes:
            records[str(number)] = record | tensor.notes
    return records


def _modules(graph: ViewGraph) -> tuple[list[list[Any]], dict[int, int]]:
    """Returns the records of modules, and the module of each node."""
    numbers: dict[Module, int] = {}
    records: list[list[Any]] = []
    parents: dict[int, int] = {}
    root = module_tree(graph)
    above: dict[Module, int] = {root: -1}
    for module in root.walk():
        numbers[module] = len(records)
        records.append([module.name, above[module], module.class_name, int(module.is_section)])
        for child in module.children:
            if isinstance(child, Module):
                above[child] = numbers[module]
            else:
                parents[child] = numbers[module]
    return records, parents


def _node(graph: ViewGraph, number: int, module: int) -> dict[str, Any]:
    node = graph.nodes[number]
    record: dict[str, Any] = {
        "n": node.name,
        "t": node.type,
        "m": module,
        "i": node.inputs,
        "o": node.outputs,
    }
    others = {
        "p": ".".join(node.module),
        "a": node.attributes,
        "s": node.source,
        "k": node.mark,
        "f": node.sources,
    }
    return record | {key: value for key, value in others.items() if value}
