"""Calls of modules in a flat graph: the expressions that were inlined of each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tmconvert.ir import CallFunction, Constant, Expr, InternalGraph, Node
from tmconvert.ir.flatten import CallSource, ModuleCall
from tmconvert.ir.subgraphs import nested, subgraphs_of
from tmconvert.ir.tree import leaves


@dataclass(eq=False)
class Region:
    """One call of a module of the source: its expressions, and the calls of its submodules."""

    call: ModuleCall
    items: list[CallFunction | Region]

    def calls(self) -> Iterator[CallFunction]:
        for item in self.items:
            if isinstance(item, Region):
                yield from item.calls()
            else:
                yield item

    def regions(self) -> Iterator[Region]:
        """Yields the region, and those within it."""
        yield self
        for item in self.items:
            if isinstance(item, Region):
                yield from item.regions()

    def inputs(self) -> list[Node]:
        """Returns the nodes that it uses and does not define, constants included.

        Those that are arguments in the source are in that order, the others follow in the order of use.
        """
        exprs = list(self.calls())
        defined = {node for expr in exprs for node in expr.outputs}
        used: dict[Node, None] = {}
        for expr in exprs:
            used.update((leaf, None) for leaf in leaves(expr.args) if isinstance(leaf, Node))
            for body in subgraphs_of(expr):
                constants = (one for graph in nested(body) for one in graph if isinstance(one, Constant))
                used.update((one.output, None) for one in constants)
        names = list(self.call.inputs)
        return sorted((node for node in used if node not in defined), key=lambda node: _place(node, names))

    def outputs(self) -> list[Node]:
        """Returns the nodes that others use, or that the graph returns."""
        exprs = dict.fromkeys(self.calls())
        results = [
            node
            for expr in exprs
            for node in expr.outputs
            if graph_of(expr).is_output(node) or any(user not in exprs for user in node.users)
        ]
        return sorted(results, key=lambda node: _place(node, self.call.outputs))


def _place(node: Node, names: list[str]) -> int:
    return names.index(node.name) if node.name in names else len(names)


def graph_of(expr: Expr | None) -> InternalGraph:
    """Returns the graph of an expression, which may be a subgraph."""
    assert expr is not None and expr.graph is not None
    return expr.graph


def regions_of(exprs: Iterable[CallFunction], depth: int = 0) -> list[CallFunction | Region]:
    """Returns the expressions with those of a module's call in a Region, in order."""
    items: list[CallFunction | Region] = []
    for call, group in itertools.groupby(exprs, key=lambda expr: _call_at(expr, depth)):
        if call is None:
            items += group
            continue
        inner = regions_of(group, depth + 1)
        items += [Region(call, inner)] if call.path else inner
    return items


def _call_at(expr: Expr, depth: int) -> ModuleCall | None:
    calls = expr.source.calls if isinstance(expr.source, CallSource) else ()
    return calls[depth] if depth < len(calls) else None
