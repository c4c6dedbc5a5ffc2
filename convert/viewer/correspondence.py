"""Which nodes of a source model each operator of its written file computes.

A conversion keeps the names of tensors. An operator computes the nodes of the source between the tensors of
the file that it reads and the one that it writes: what lies between was fused into it. Tensors that the
source does not have, such as quantized forms, belong to the next tensor that it has.
"""

from __future__ import annotations

from tmconvert.frontends.shared.view_graph import ViewGraph


def correspond(source: ViewGraph, written: ViewGraph) -> None:
    """Sets ``sources`` of the nodes of ``written``, and modules and lines where it has none."""
    by_name = {
        source.tensors[index].name: number
        for number, node in enumerate(source.nodes)
        for index in node.outputs
    }
    direct = [
        [by_name[name] for index in node.outputs if (name := written.tensors[index].name) in by_name]
        for node in written.nodes
    ]
    known = {number for found in direct for number in found}
    for node, found in zip(written.nodes, direct, strict=True):
        node.sources = _fused(source, found, known)
    _complete(written)
    has_modules = any(node.module for node in written.nodes)
    for node in written.nodes:
        if node.sources:
            last = source.nodes[node.sources[-1]]
            node.source = node.source or last.source
            node.module = node.module if has_modules else last.module
    if not has_modules:
        written.classes = source.classes


def _fused(source: ViewGraph, found: list[int], known: set[int]) -> list[int]:
    """Returns ``found`` and the nodes before them whose tensors the file does not have, in order."""
    reached, stack = set(found), list(found)
    while stack:
        for producer in source.producers(source.nodes[stack.pop()]):
            if producer not in known and producer not in reached:
                reached.add(producer)
                stack.append(producer)
    return sorted(reached)


def _complete(written: ViewGraph) -> None:
    """Gives a node without sources those of the node that reads its result, else those of its operand."""
    readers: dict[int, int] = {}
    for number, node in enumerate(written.nodes):
        for producer in written.producers(node):
            readers.setdefault(producer, number)
    for number in reversed(range(len(written.nodes))):
        node = written.nodes[number]
        if not node.sources and number in readers:
            node.sources = written.nodes[readers[number]].sources[-1:]
    for node in written.nodes:
        if not node.sources:
            node.sources = next(
                (
                    each
                    for producer in written.producers(node)
                    if (each := written.nodes[producer].sources[-1:])
                ),
                [],
            )
