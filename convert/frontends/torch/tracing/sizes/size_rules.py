"""Rules by which numbers follow sizes, found from what some runs show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, product
from typing import Any, NamedTuple

from tmconvert.frontends.torch.tracing.loops.progressions import (
    NUMBERS,
    TOLERANCE,
    Progression,
    progression_of,
)
from tmconvert.frontends.torch.tracing.sizes.recovered_arrays import Series
from tmconvert.frontends.torch.tracing.sizes.validate_dynamic_shapes import Symbol

MOST_DIVISORS = 64
RUNS = 3  # at other sizes of each symbol, one of them no multiple of the example's
# index of the record, index of the leaf among its arguments; kind, axis, type and position for a number that
# describes an array
Place = tuple[Any, ...]


class Observation(NamedTuple):
    """The numbers of a run in which ``symbol`` has ``size`` elements and the others those of the example.

    ``conversions`` are the sizes that the module converted to plain numbers, by their names. A run
    ``makes_other_calls`` where the size has as many steps or chooses a branch.
    """

    symbol: Symbol
    size: int
    numbers: Mapping[Place, Any]
    conversions: Mapping[str, int] = {}
    makes_other_calls: bool = False


class SizeRule(NamedTuple):
    """``factor`` times the product of ``symbols``, plus ``offset``.

    The product is divided by ``divisor`` first, and rounded down, or up if ``rounds_up``. Symbols are
    dimensions of inputs, or conversions.
    """

    factor: int
    symbols: tuple[str, ...]
    offset: int
    divisor: int = 1
    rounds_up: bool = False

    def at(self, sizes: Mapping[str, int]) -> int:
        """Returns the number at these sizes.

        >>> SizeRule(3, ("n",), 1).at({"n": 4})
        13
        """
        product = math.prod(sizes[name] for name in self.symbols)
        return self.factor * ((product + self.added) // self.divisor) + self.offset

    @property
    def added(self) -> int:
        """The addend before the division."""
        return self.divisor - 1 if self.rounds_up else 0

    def changes(self) -> Iterator[tuple[str, int]]:
        """Yields the functions of a size and a number that lead from the product to the number, in order."""
        steps = (
            ("add", self.added, 0),
            ("floordiv", self.divisor, 1),
            ("mul", self.factor, 1),
            ("add", self.offset, 0),
        )
        yield from ((kind, number) for kind, number, neutral in steps if number != neutral)


class FloatRule(NamedTuple):
    """A float that Python computes of a size, such as ``k * 0.1`` or ``1 / (k + 1)``."""

    symbols: tuple[str]
    progression: Progression

    def at(self, sizes: Mapping[str, int]) -> float:
        number: float = self.progression.at(sizes[self.symbols[0]])
        return number

    def changes(self) -> Iterator[tuple[str, float]]:
        """Yields the functions of a size and a number that lead to the float, in order."""
        for name, *operands in self.progression.steps():
            yield name, *operands


Rule = SizeRule | FloatRule


class ArrayRule(NamedTuple):
    """An array of the example, and the rules of those of its numbers that follow sizes."""

    series: Series
    rules: tuple[Rule | None, ...]


def rules_of(
    example: Mapping[Place, Any],
    observations: Sequence[Observation],
    conversions: Mapping[str, int] | None = None,
) -> dict[Place, Rule]:
    """Returns the rule of each number that depends on sizes; those that follow none are left out.

    ``conversions`` are those of the example.
    """
    converted = _different(conversions or {}, observations)
    varying = {
        place: None
        for observation in observations
        for place, number in observation.numbers.items()
        if example.get(place, number) != number and {type(number), type(example[place])} <= {*NUMBERS}
    }
    alike = [each for each in observations if not each.makes_other_calls]  # of sizes that can stay dynamic
    found: dict[Place, Rule] = {}
    for place in varying:
        rule: Rule | None
        numbers = [each.numbers[place] for each in observations if place in each.numbers]
        if any(type(number) is float for number in (example[place], *numbers)):
            rule = _float_rule(place, example, observations) or _float_rule(place, example, alike)
        else:
            rule = _converted(place, example, observations, converted)
            rule = rule or _rule(place, example, observations) or _rule(place, example, alike)
        if rule:
            found[place] = rule
    return found


def _float_rule(
    place: Place, example: Mapping[Place, Any], observations: Sequence[Observation]
) -> FloatRule | None:
    """Returns the rule of a float that follows one size."""
    if any(place not in each.numbers for each in observations):
        return None
    changing = [each for each in observations if each.numbers[place] != example[place]]
    symbols = {each.symbol for each in changing}
    if len(symbols) != 1 or len(changing) < RUNS:
        return None
    symbol = next(iter(symbols))
    points = {symbol.number: float(example[place])} | {
        each.size: float(each.numbers[place]) for each in changing
    }
    found = progression_of([*points.items()])
    if found is None or not all(name in _OF_SIZES for name, *_ in found.steps()):
        return None
    return FloatRule((symbol.name,), found)


_OF_SIZES = frozenset(("mul", "add", "pow", "exp", "log"))  # what a size is computed with


def _different(
    conversions: Mapping[str, int], observations: Sequence[Observation]
) -> dict[str, tuple[int, ...]]:
    """Returns conversions with their numbers in all runs, the example's first; of equal ones the first."""
    runs = [conversions, *(each.conversions for each in observations)]
    shared = [name for name in conversions if all(name in run for run in runs)]
    names: dict[tuple[int, ...], str] = {}
    for name in shared:
        names.setdefault(tuple(run[name] for run in runs), name)
    return {name: numbers for numbers, name in names.items() if len(set(numbers)) > 1}


def _converted(
    place: Place,
    example: Mapping[Place, Any],
    observations: Sequence[Observation],
    conversions: Mapping[str, tuple[int, ...]],
) -> SizeRule | None:
    """Returns the rule by which a number follows from conversions: a multiple, a quotient, or a product."""
    if not conversions or any(place not in each.numbers for each in observations):
        return None
    numbers = (example[place], *(each.numbers[place] for each in observations))
    rules = sorted(
        (rule for name, sizes in conversions.items() for rule in _candidates(name, numbers, sizes)),
        key=lambda rule: (rule.divisor != 1, rule.offset != 0, rule.factor != 1),
    )
    pairs = combinations_with_replacement(conversions, 2)
    products = (
        SizeRule(factor, pair, 0)
        for pair in pairs
        for factor in _factors(numbers[0], conversions[pair[0]][0] * conversions[pair[1]][0])
    )
    for rule in (*rules, *products):
        runs = ({name: conversions[name][run] for name in rule.symbols} for run in range(len(numbers)))
        if all(rule.at(sizes) == number for sizes, number in zip(runs, numbers, strict=True)):
            return rule
    return None


def _candidates(name: str, numbers: Sequence[int], sizes: Sequence[int]) -> Iterator[SizeRule]:
    """Yields rules with one conversion that hold in two runs."""
    for divisor in range(1, MOST_DIVISORS + 1):
        for rounds_up in (False, True)[:divisor]:
            quotient = SizeRule(1, (name,), 0, divisor, rounds_up)
            parts = [quotient.at({name: size}) for size in sizes]
            other = next((run for run, part in enumerate(parts) if part != parts[0]), 0)
            rise, step = numbers[other] - numbers[0], parts[other] - parts[0]
            if step and not rise % step:
                factor = rise // step
                yield quotient._replace(factor=factor, offset=numbers[0] - factor * parts[0])


def _factors(number: int, product: int) -> Iterator[int]:
    if product and not number % product:
        yield number // product


def _rule(place: Place, example: Mapping[Place, Any], observations: Sequence[Observation]) -> SizeRule | None:
    if any(place not in each.numbers for each in observations):
        return None
    number = example[place]
    sizes = {each.symbol.name: each.symbol.number for each in observations if each.numbers[place] != number}
    if not sizes:
        return None
    changing = [each for each in observations if each.symbol.name in sizes]
    first = changing[0]
    rise, step = first.numbers[place] - number, first.size - first.symbol.number
    rules = []
    for powers in product((1, 2), repeat=len(sizes)):  # as of a matrix that is flattened
        factors = tuple(name for name, power in zip(sizes, powers, strict=True) for _ in range(power))
        of_example = SizeRule(1, factors, 0).at(sizes)
        if of_example and not number % of_example:
            rules.append(SizeRule(number // of_example, factors, 0))
    if len(sizes) == 1 and not rise % step:
        factor = rise // step
        rules.append(SizeRule(factor, tuple(sizes), number - factor * first.symbol.number))
    if len(sizes) == 1:
        seen = {first.symbol.number: number} | {each.size: each.numbers[place] for each in changing}
        rules += _candidates(first.symbol.name, list(seen.values()), list(seen))
    for rule in rules:
        if all(rule.at(sizes | {each.symbol.name: each.size}) == each.numbers[place] for each in changing):
            return rule
    return None


def is_equal(number: Any, expected: float) -> bool:
    if type(expected) is int:
        return bool(number == expected)
    return number is not None and math.isclose(number, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
