"""Blocks of operators that repeat, in a graph without modules."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tmconvert.frontends.shared.view_graph import ViewGraph

SHORTEST, LONGEST = 3, 400  # operators of a block
NEARLY = 0.9  # of the operators that the best period covers


def find_repeats(types: Sequence[str], crossing: Sequence[int]) -> tuple[int, int, int] | None:
    """Returns the start, the length and the number of blocks that follow each other; None without any.

    ``types`` are those of operators in the order of execution, ``crossing`` the numbers of tensors that are
    alive before each. Of the periods that cover nearly as many operators as the best one, the shortest
    counts, and the blocks begin where the fewest tensors are alive.

    >>> find_repeats(["Pad", "Conv", "Relu", "Add", "Conv", "Relu", "Add", "Mean"], [0, 1, 1, 2, 1, 1, 2, 1])
    (1, 3, 2)
    """
    numbers = np.unique(np.asarray(types), return_inverse=True)[1]
    runs = []
    for period in range(SHORTEST, min(len(numbers) // 2, LONGEST) + 1):
        breaks = np.flatnonzero(numbers[period:] != numbers[:-period])
        edges = np.concatenate([[-1], breaks, [len(numbers) - period]])
        longest = int(np.argmax(np.diff(edges)))
        start, length = int(edges[longest]) + 1, int(np.diff(edges)[longest]) - 1 + period
        if length >= 2 * period and len(set(numbers[start : start + period])) > 1:
            runs.append((length // period * period, period, start, length))
    if not runs:
        return None
    most = max(covered for covered, *_ in runs)
    _, period, start, length = next(run for run in runs if run[0] >= NEARLY * most)
    shifts = range(period if length >= 3 * period else length % period + 1)
    shift = min(shifts, key=lambda shift: float(np.mean(crossing[start + shift : start + length : period])))
    return start + shift, period, (length - shift) // period


def tensors_alive(graph: ViewGraph) -> list[int]:
    """Returns the number of computed tensors that are alive before each node."""
    last = {index: number for number, node in enumerate(graph.nodes) for index in node.inputs if index >= 0}
    change = np.zeros(len(graph.nodes) + 2, np.int64)
    for index, number in last.items():
        if (producer := graph.tensors[index].producer) >= 0:
            change[producer + 1] += 1
            change[number + 1] -= 1
    return [int(each) for each in np.cumsum(change)[: len(graph.nodes)]]
