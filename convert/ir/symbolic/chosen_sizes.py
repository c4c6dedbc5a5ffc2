"""Numbers for the open sizes of a file, with which its inputs fit each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from tmconvert.ir.symbolic.dims import Dim, substituted
from tmconvert.ir.symbolic.text import is_size_expression, is_size_name, names_in, size_of

TRIED = (1, 2, 3, 4, 6, 8, 9, 12, 16, 32, 64, 128, 224, 256, 512, 1024)
MOST_TRIED = 1 << 11
_NUMBER = re.compile(r"\b[0-9]{1,9}\b")
_RELATION = re.compile(r"(.+) (<=|>=|==|!=|<|>) (.+)", re.DOTALL)
_SIGNS = {"<": {-1}, "<=": {-1, 0}, "==": {0}, "!=": {-1, 1}, ">=": {0, 1}, ">": {1}}
Difference = tuple[Dim, set[int]]


def names_of_sizes(shapes: Sequence[Sequence[int | str]]) -> list[str]:
    """Returns the names in open sizes, in order; any text but an expression is a name itself.

    >>> names_of_sizes([("batch", "past+seq"), (3, "")])
    ['batch', 'past', 'seq']
    """
    texts = [size for shape in shapes for size in shape if isinstance(size, str) and size]
    return list(
        dict.fromkeys(
            name for text in texts for name in (names_in(text) if is_size_expression(text) else [text])
        )
    )


def chosen_sizes(
    shapes: Sequence[Sequence[int | str]], ranges: Sequence[str] = (), given: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Returns small numbers for open sizes that these shapes and ranges admit, with those that are ``given``.

    Ranges are relations of sizes, such as ``h >= 4``. Where nothing that is tried fulfils all, they are 1.

    >>> chosen_sizes([("batch", "past+seq"), ("past-2",)], ["batch >= 5"], {"seq": 3})
    {'batch': 5, 'past': 3, 'seq': 3}
    """
    fixed = given or {}
    names = names_of_sizes(shapes)
    known = set(names)
    texts = {size for shape in shapes for size in shape if isinstance(size, str)}
    sums = sorted(text for text in texts if not is_size_name(text) and is_size_expression(text))
    stated = [*_positive(sums, fixed), *_relations(ranges, fixed)]
    conditions = [each for each in stated if set(each[0].symbols) <= known]
    met = {name for difference, _ in conditions for name in difference.symbols}
    mentioned = [*fixed.values(), *(int(each) for text in ranges for each in _NUMBER.findall(text))]
    near = {number + more for number in mentioned for more in (-1, 0, 1)}
    numbers = sorted({*TRIED, *(number for number in near if number > 0)})
    found = _fulfilling([name for name in names if name in met], numbers, conditions)
    return {name: found.get(name, fixed.get(name, 1)) for name in names}


def shape_at(shape: Sequence[int | str], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Returns a shape at these sizes; one without a name is 1."""
    return tuple(size if isinstance(size, int) else _number(size, sizes) for size in shape)


def _number(text: str, sizes: Mapping[str, int]) -> int:
    try:
        made = size_of(text, sizes) if is_size_expression(text) else sizes.get(text, 1)
    except ArithmeticError:
        return 1
    return made if isinstance(made, int) else 1


def _positive(texts: Sequence[str], fixed: Mapping[str, int]) -> Iterator[Difference]:
    for text in texts:
        with suppress(ArithmeticError):
            size = size_of(text, fixed)
            if isinstance(size, Dim):
                yield size, {1}


def _relations(ranges: Sequence[str], fixed: Mapping[str, int]) -> Iterator[Difference]:
    """Yields what ranges state as signs of differences; what a file states in other words is left out."""
    for text in ranges:
        found = _RELATION.fullmatch(text)
        if found is None:
            continue
        try:
            difference = size_of(found[1], fixed) - size_of(found[3], fixed)
        except (ValueError, ArithmeticError):
            continue
        if isinstance(difference, Dim):
            yield difference, _SIGNS[found[2]]


def _fulfilling(
    names: Sequence[str], numbers: Sequence[int], conditions: Sequence[Difference]
) -> dict[str, int]:
    """Returns numbers of sizes that fulfil the conditions, found by backtracking; empty where none are found.

    A condition is looked at as soon as all of its sizes have numbers.
    """
    order = {name: place for place, name in enumerate(names)}
    ending: dict[int, list[Difference]] = {}
    for each in conditions:
        ending.setdefault(max(order[name] for name in each[0].symbols), []).append(each)
    chosen: dict[str, int] = {}
    start = 0  # of the numbers for the next size
    for _ in range(MOST_TRIED):
        if len(chosen) == len(names):
            return chosen
        last = ending.get(len(chosen), [])
        name = names[len(chosen)]
        for place in range(start, len(numbers)):
            chosen[name] = numbers[place]
            if all(_holds(each, chosen) for each in last):
                start = 0
                break
        else:
            del chosen[name]
            if not chosen:
                break
            start = numbers.index(chosen.popitem()[1]) + 1
    return {}


def _holds(condition: Difference, sizes: Mapping[str, int]) -> bool:
    difference, signs = condition
    try:
        value = substituted([difference], sizes)[0]
    except ArithmeticError:  # no size, as 8/(h-1) for 1
        return False
    return not isinstance(value, int) or ((value > 0) - (value < 0)) in signs
