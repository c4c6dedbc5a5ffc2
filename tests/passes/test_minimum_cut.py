"""Minimum cuts against all cuts."""

from __future__ import annotations

import itertools
import random

import pytest

from tmconvert.targets.tflite.passes.minimum_cut import INFINITE, CutGraph

Edge = tuple[int, int, int]


def cost(edges: list[Edge], side: set[int]) -> int:
    return sum(capacity for tail, head, capacity in edges if tail in side and head not in side)


def cheapest(edges: list[Edge], count: int) -> tuple[int, set[int]]:
    """Cost of a minimum cut, and the smallest source side that has it."""
    sides = [
        {0, *chosen} for size in range(count - 1) for chosen in itertools.combinations(range(2, count), size)
    ]
    best = min(cost(edges, side) for side in sides)
    return best, next(side for side in sides if cost(edges, side) == best)


@pytest.mark.parametrize("seed", range(60))
def test_no_cut_is_cheaper(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(2, 8)
    edges = []
    for _ in range(rng.randint(0, 18)):
        tail, head = rng.sample(range(count), 2)
        edges.append((tail, head, rng.choice([0, 1, 2, 3, 5, 100, 10**15])))
    graph = CutGraph()
    assert [graph.add_node() for _ in range(count - 2)] == list(range(2, count))
    for edge in edges:
        graph.add_edge(*edge)
    side = graph.source_side()
    best, smallest = cheapest(edges, count)
    assert CutGraph.SOURCE in side
    assert CutGraph.SINK not in side
    assert cost(edges, side) == best
    assert side == smallest


def test_infinite_edges_are_never_cut() -> None:
    graph = CutGraph()
    a, b = graph.add_node(), graph.add_node()
    graph.add_edge(CutGraph.SOURCE, a, INFINITE)
    graph.add_edge(a, b, 1 << 62)
    graph.add_edge(a, b, 1 << 62)
    graph.add_edge(b, CutGraph.SINK, INFINITE)
    assert graph.source_side() == {CutGraph.SOURCE, a}


def test_a_long_line_takes_no_recursion() -> None:
    graph = CutGraph()
    nodes = [CutGraph.SOURCE, *(graph.add_node() for _ in range(5000)), CutGraph.SINK]
    for place, (tail, head) in enumerate(itertools.pairwise(nodes)):
        graph.add_edge(tail, head, 1 if place == 3000 else 2)
    assert graph.source_side() == set(nodes[:3001])
