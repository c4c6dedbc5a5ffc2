"""What an integer graph is made of: a float one, in which some operators have a better form for integers."""

from __future__ import annotations

from ..idle_bounds import without_idle_bounds
from ..target_graph import TargetGraph
from .averages import averages_in_products, windows_in_products
from .blocks import blocks_in_views
from .gates import clamped_gates
from .quotients import quotients_in_products
from .resizes import resizes_in_products


def prepared(graph: TargetGraph, kind: str, infers: bool) -> TargetGraph:
    """``graph``, which is left as it is; once more changes nothing. The others as for ``in_integers``."""
    graph = averages_in_products(without_idle_bounds(quotients_in_products(graph)))
    graph = clamped_gates(graph, kind)
    graph = windows_in_products(graph, kind, infers)
    return blocks_in_views(resizes_in_products(graph, kind, infers), kind, infers)
