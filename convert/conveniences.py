"""The methods of models, graphs and reports that higher layers add: pages, text of normalized models."""

from __future__ import annotations

from typing import Any, Protocol


class Conveniences(Protocol):
    """Functions of higher layers, which import what they need when they are called."""

    def notebook_page(self, shown: object) -> str | None:
        """Returns the HTML text of an object; None where a notebook is to print it."""

    def flat_graph(self, graph: Any) -> Any:
        """Returns the flat graph to print for the graph of a normalized model; None for others."""


_registered: list[Conveniences] = []


def register_conveniences(functions: Conveniences) -> None:
    """Registers the functions; ``tmconvert.api_conveniences`` does so on import."""
    _registered[:] = [functions]


def flat_graph(graph: Any) -> Any:
    """Returns the flat graph to print for the graph of a normalized model; None for others."""
    return _registered[0].flat_graph(graph) if _registered else None


class NotebookForm:
    """Shows an object in notebooks as a page: models, graphs and reports."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        """Returns the page in a frame; Jupyter calls this."""
        return _registered[0].notebook_page(self) if _registered else None
