"""Inputs and outputs of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmconvert.ir.node import Node

if TYPE_CHECKING:
    from tmconvert.ir.graph import InternalGraph


def erase_input(graph: InternalGraph, node: Node) -> None:
    """Removes a formal input that nothing uses."""
    graph.remove_input(node)
