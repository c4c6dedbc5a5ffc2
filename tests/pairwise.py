"""Pairwise test cases: rows in which any two values of two parameters meet, instead of a full product."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any


def pairwise(*parameters: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Returns about as many rows as the two longest parameters have pairs of values.

    Args:
        parameters: The values of each, of two or more. Rows have one value of each, in this order.
    """
    values = [list(each) for each in parameters]
    longest = sorted(range(len(values)), key=lambda index: -len(values[index]))
    indices = [range(len(values[index])) for index in longest]
    rests, missing, rows = list(product(*indices[2:])), set[Any](), list[tuple[int, ...]]()
    for (first, of_first), (second, of_second) in combinations(enumerate(indices), 2):
        missing |= {((first, one), (second, other)) for one, other in product(of_first, of_second)}
    while missing:
        for head in product(*indices[:2]):
            row = max((head + rest for rest in rests), key=lambda row: len(missing & _pairs(row)))
            if missing & _pairs(row):
                rows.append(row)
                missing -= _pairs(row)
    place = {index: position for position, index in enumerate(longest)}
    return [tuple(each[row[place[index]]] for index, each in enumerate(values)) for row in rows]


def _pairs(row: tuple[int, ...]) -> set[Any]:
    return set(combinations(enumerate(row), 2))
