"""Which nodes of two graphs correspond: by weights, by names where these can be trusted, and by structure.

Weights that occur once are the surest mark. From pairs that are known the search goes along the edges, to
operands at the same position and to readers of the same type. What is left between pairs is aligned by its
types in order.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from difflib import SequenceMatcher
from functools import cached_property

import numpy as np

from tmconvert.frontends.shared.view_graph import ViewGraph, ViewNode

TRUSTED = 0.7  # share of pairs that are known by weights and have equal names: then names are marks, too
_LARGE = 4  # elements of constants that tell nodes apart
_MOST_ALIGNED = 4000  # nodes of one gap, whose alignment takes the product of its sides


class Side:
    """A graph with what the search needs of it."""

    def __init__(self, graph: ViewGraph) -> None:
        self.graph = graph
        self._digests: dict[int, str] = {}

    def name(self, number: int) -> str:
        """Returns the name of the first output of a node, else that of the node."""
        node = self.graph.nodes[number]
        return self.graph.tensors[node.outputs[0]].name if node.outputs else node.name

    def type(self, number: int) -> str:
        return self.graph.nodes[number].type

    def operands(self, number: int) -> list[int]:
        """Returns the nodes that compute the inputs of a node, by position; -1 for constants and inputs."""
        tensors = self.graph.tensors
        return [tensors[each].producer if each >= 0 else -1 for each in self.graph.nodes[number].inputs]

    @cached_property
    def readers(self) -> list[list[tuple[int, int]]]:
        """The nodes that read each node's outputs, with the positions of the operands."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.graph.nodes]
        for number in range(len(self.graph.nodes)):
            for position, producer in enumerate(self.operands(number)):
                if producer >= 0:
                    found[producer].append((number, position))
        return found

    @cached_property
    def weights(self) -> list[Hashable]:
        """The type and the digests of the constants of each node; None for a node without large ones."""
        return [self._weights(node) for node in self.graph.nodes]

    def _weights(self, node: ViewNode) -> Hashable:
        constants = self.constants(node)
        values = [self.graph.tensors[each].values for each in constants]
        if sum(each.size for each in values if each is not None) < _LARGE:
            return None
        return (node.type, *map(self.digest, constants))

    def constants(self, node: ViewNode) -> list[int]:
        """Returns the tensors of a node's inputs whose values are known."""
        return [each for each in node.inputs if each >= 0 and self.graph.tensors[each].values is not None]

    def digest(self, index: int) -> str:
        """Returns the digest of the values of a constant."""
        if index not in self._digests:
            values = self.graph.tensors[index].values
            assert values is not None
            made = hashlib.blake2b(str((values.dtype, values.shape)).encode(), digest_size=16)
            made.update(np.ascontiguousarray(values).view(np.uint8).reshape(-1).data if values.size else b"")
            self._digests[index] = made.hexdigest()
        return self._digests[index]


class Matching:
    """The pairs of nodes of two graphs that correspond; ``pairs`` and ``reverse`` map their numbers.

    >>> Matching(source_graph(a), source_graph(b)).pairs  # doctest: +SKIP
    {0: 0, 1: 2}
    """

    def __init__(self, first: ViewGraph, second: ViewGraph) -> None:
        self.first, self.second = Side(first), Side(second)
        self.pairs: dict[int, int] = {}
        self.reverse: dict[int, int] = {}
        self._pair_unique(lambda side, number: side.weights[number])
        self.trusts_names = self._are_names_trusted()
        if self.trusts_names:
            self._pair_unique(lambda side, number: (side.type(number), side.name(number)))
        self._pair_edges()
        self._spread(list(self.pairs))
        if not self.trusts_names:
            self._pair_unique(lambda side, number: (side.type(number), side.name(number)))
            self._spread(list(self.pairs))
        self._align()

    def reordered(self) -> int:
        """Returns how many nodes would have to move for those with partners to stand in the same order."""
        last: list[int] = []  # of increasing sequences, by their lengths
        for _, other in sorted(self.pairs.items()):
            at = bisect_left(last, other)
            last[at : at + 1] = [other]
        return len(self.pairs) - len(last)

    def add(self, one: int, other: int) -> bool:
        """Pairs two nodes of one type that have no partners; returns whether it did."""
        if one in self.pairs or other in self.reverse or self.first.type(one) != self.second.type(other):
            return False
        if self.trusts_names and self._has_other_namesake(one, other):
            return False
        self.pairs[one], self.reverse[other] = other, one
        return True

    def _has_other_namesake(self, one: int, other: int) -> bool:
        """Whether one of two nodes of different names has a partner by name."""
        names = self.first.name(one), self.second.name(other)
        return names[0] != names[1] and (names[0] in self._names[1] or names[1] in self._names[0])

    @cached_property
    def _names(self) -> tuple[set[str], set[str]]:
        sides = self.first, self.second
        one, other = ({side.name(each) for each in range(len(side.graph.nodes))} for side in sides)
        return one, other

    def _are_names_trusted(self) -> bool:
        """Whether names are marks: by the pairs that weights show, else by how many are shared."""
        one, other = self._names
        if self.pairs:
            equal = sum(self.first.name(each) == self.second.name(self.pairs[each]) for each in self.pairs)
            return equal >= TRUSTED * len(self.pairs)
        return bool(one) and len(one & other) >= TRUSTED * min(len(one), len(other))

    def _pair_unique(self, key: Callable[[Side, int], Hashable]) -> None:
        """Pairs the nodes whose key is not None and occurs once in each graph."""
        tables = []
        for side in (self.first, self.second):
            found: dict[Hashable, list[int]] = defaultdict(list)
            for number in range(len(side.graph.nodes)):
                found[key(side, number)].append(number)
            tables.append(found)
        for value, numbers in tables[0].items():
            others = tables[1].get(value, ())
            if value is not None and len(numbers) == len(others) == 1:
                self.pairs.setdefault(numbers[0], others[0])
                self.reverse.setdefault(others[0], numbers[0])
        self.pairs = {one: other for one, other in self.pairs.items() if self.reverse.get(other) == one}
        self.reverse = {other: one for one, other in self.pairs.items()}

    def _pair_edges(self) -> None:
        """Pairs the readers of the inputs, and the nodes that compute the outputs."""
        one, other = self.first.graph, self.second.graph
        for first, second in zip(one.outputs, other.outputs, strict=False):
            producers = one.tensors[first].producer, other.tensors[second].producer
            if min(producers) >= 0:
                self.add(*producers)
        for first, second in zip(one.inputs, other.inputs, strict=False):
            self._pair_readers(_readers_of_tensor(one, first), _readers_of_tensor(other, second))

    def _spread(self, known: list[int]) -> None:
        """Pairs the neighbours of pairs, and theirs."""
        while known:
            one = known.pop()
            other = self.pairs[one]
            operands = zip(self.first.operands(one), self.second.operands(other), strict=False)
            known += [each for each, its in operands if each >= 0 and its >= 0 and self.add(each, its)]
            known += self._pair_readers(self.first.readers[one], self.second.readers[other])

    def _pair_readers(self, ones: Iterable[tuple[int, int]], others: Iterable[tuple[int, int]]) -> list[int]:
        """Pairs readers of one type and position, in order where there are as many; returns those paired."""
        groups: dict[tuple[str, int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for number, position in ones:
            if number not in self.pairs:
                groups[self.first.type(number), position][0].append(number)
        for number, position in others:
            if number not in self.reverse:
                groups[self.second.type(number), position][1].append(number)
        paired = (zip(*each, strict=True) for each in groups.values() if len(each[0]) == len(each[1]))
        return [one for pairs in paired for one, other in pairs if self.add(one, other)]

    def _align(self) -> None:
        """Pairs what is left between pairs, by types in order."""
        for ones, others in self._gaps():
            if len(ones) * len(others) > _MOST_ALIGNED**2:
                continue
            types = [self.first.type(each) for each in ones], [self.second.type(each) for each in others]
            found = [
                (ones[block.a + offset], others[block.b + offset])
                for block in SequenceMatcher(None, *types, autojunk=False).get_matching_blocks()
                for offset in range(block.size)
            ]
            self._spread([one for one, other in found if self.add(one, other)])

    def _gaps(self) -> list[tuple[list[int], list[int]]]:
        """Returns the nodes without partners between one pair and the next."""
        gaps: list[tuple[list[int], list[int]]] = []
        start, ones = 0, list[int]()
        for number in range(len(self.first.graph.nodes) + 1):
            end = self.pairs.get(number, len(self.second.graph.nodes))
            if number < len(self.first.graph.nodes) and number not in self.pairs:
                ones.append(number)
                continue
            others = [each for each in range(start, end) if each not in self.reverse]
            if ones and others:
                gaps.append((ones, others))
            start, ones = max(start, end), []
        return gaps


def _readers_of_tensor(graph: ViewGraph, index: int) -> list[tuple[int, int]]:
    return [
        (number, position)
        for number, node in enumerate(graph.nodes)
        for position, each in enumerate(node.inputs)
        if each == index
    ]
