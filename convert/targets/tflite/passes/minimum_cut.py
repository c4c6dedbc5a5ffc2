"""Minimum s-t cut of a directed graph with integer capacities (Dinic's algorithm)."""

from __future__ import annotations

from collections import deque

INFINITE = 1 << 100


class CutGraph:
    """Nodes are integers from ``add_node``; 0 is the source, 1 the sink.

    Dinic: blocking flows along shortest paths, O(V^2 E) at worst and near linear on the sparse
    graphs of layouts. Source: Dinic, "Algorithm for solution of a problem of maximum flow in
    networks with power estimation", 1970.
    """

    SOURCE, SINK = 0, 1

    def __init__(self) -> None:
        self._edges_of: list[list[int]] = [[], []]
        self._to: list[int] = []
        self._capacity: list[int] = []

    def add_node(self) -> int:
        self._edges_of.append([])
        return len(self._edges_of) - 1

    def add_edge(self, tail: int, head: int, capacity: int) -> None:
        """Adds an edge that counts in a cut with ``tail`` on the source's and ``head`` on the sink's side."""
        for start, end, amount in ((tail, head, capacity), (head, tail, 0)):
            self._edges_of[start].append(len(self._to))
            self._to.append(end)
            self._capacity.append(amount)

    def source_side(self) -> set[int]:
        """Nodes on the source's side of a minimum cut, as few of them as a minimum allows."""
        while (levels := self._levels())[self.SINK] >= 0:
            self._block(levels)
        return {node for node, level in enumerate(levels) if level >= 0}

    def _levels(self) -> list[int]:
        """Distance of each node from the source in the residual graph; -1 for those out of reach."""
        levels = [-1] * len(self._edges_of)
        levels[self.SOURCE] = 0
        queue = deque([self.SOURCE])
        while queue:
            node = queue.popleft()
            for edge in self._edges_of[node]:
                if self._capacity[edge] and levels[self._to[edge]] < 0:
                    levels[self._to[edge]] = levels[node] + 1
                    queue.append(self._to[edge])
        return levels

    def _block(self, levels: list[int]) -> None:
        """Pushes flow along shortest paths until none is left."""
        next_edge = [0] * len(self._edges_of)
        path: list[int] = []
        node = self.SOURCE
        while True:
            if node == self.SINK:
                self._push(path)
                path, node = [], self.SOURCE
                continue
            edge = self._advance(node, levels, next_edge)
            if edge is not None:
                path.append(edge)
                node = self._to[edge]
            elif path:
                node = self._to[path.pop() ^ 1]
                next_edge[node] += 1
            else:
                return

    def _advance(self, node: int, levels: list[int], next_edge: list[int]) -> int | None:
        edges = self._edges_of[node]
        while next_edge[node] < len(edges):
            edge = edges[next_edge[node]]
            if self._capacity[edge] and levels[self._to[edge]] == levels[node] + 1:
                return edge
            next_edge[node] += 1
        return None

    def _push(self, path: list[int]) -> None:
        amount = min(self._capacity[edge] for edge in path)
        for edge in path:
            self._capacity[edge] -= amount
            self._capacity[edge ^ 1] += amount
