"""Registers what methods of models, graphs and reports get from higher layers."""

from __future__ import annotations

from tmconvert.conveniences import register_conveniences
from tmconvert.ir import InternalGraph, ModuleNode
from tmconvert.symbolics.registry import catalogue


class _Functions:
    """See ``tmconvert.conveniences.Conveniences``; the imports are lazy as conversions need none of them."""

    def notebook_page(self, shown: object) -> str | None:
        """Returns the page of a model, graph or report; None where it cannot be drawn."""
        from tmconvert.conversion.notebook import notebook_page  # which loads the readers of all files

        return notebook_page(shown)

    def flat_graph(self, graph: InternalGraph) -> InternalGraph | None:
        """Returns the graph to print for that of a model in ATen-style ops; None for others."""
        from tmconvert.transform.normal_form import is_normalized, normal_form

        first = graph.inputs[0] if graph.inputs else None
        owner = first.owner if isinstance(first, ModuleNode) else None
        is_plain = owner is None or owner.graph is not graph or not is_normalized(owner)
        return None if is_plain or owner is None else normal_form(owner, catalogue())


register_conveniences(_Functions())
