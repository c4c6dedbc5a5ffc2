"""Checks of source graphs: links, names, attributes, arguments; types are inferred again.

The codes are those of the verifier of normalized graphs (``ir/verifier.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmconvert.ir.links import check_links
from tmconvert.surgery.transaction import Transaction
from tmconvert.surgery.type_inference import TypeInference, retyped, vocabulary_of

if TYPE_CHECKING:
    from tmconvert.ir.graph import InternalGraph


def lint(graph: InternalGraph) -> None:
    """``graph.lint``."""
    check_links(graph)
    vocabulary = vocabulary_of(graph)
    if vocabulary is None:
        return
    with Transaction(graph) as edit:
        inference = TypeInference(graph, vocabulary)
        inference.visit_called = _Visits(edit)
        for expr in graph:
            inference.run(expr)
            for node in expr.outputs:
                retyped(edit, node, inference.type_of(node))
    graph.links_checked_at = graph.edits


class _Visits:
    """Checks graphs of submodules, and records the types of their first call."""

    def __init__(self, edit: Transaction) -> None:
        self.edit = edit
        self.recorded: set[InternalGraph] = set()

    def __call__(self, inner: TypeInference, is_done: bool) -> None:
        graph = inner.graph
        if not is_done:
            check_links(graph)
        elif graph not in self.recorded:
            self.recorded.add(graph)
            for node in [*graph.inputs, *(node for expr in graph for node in expr.outputs)]:
                retyped(self.edit, node, inner.type_of(node))
