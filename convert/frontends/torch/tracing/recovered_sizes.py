"""Recovers sizes that autograd passes on in C++ as plain numbers.

The backward pass of ``x.sum()`` is ``expand(gradient, [4, 3])``: the numbers are sizes of ``x``, but plain
integers in Python. Runs at other sizes identify them: a number that is 8 where the dimension ``n`` of the
input is 8, and 12 where it is 12, is ``n``. Such numbers are replaced by computations of sizes on the tapes
of all runs, which are then compared as usual. A number without such a rule stays constant, and specializes
its dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tmconvert.frontends.torch.tracing.tape import Record, Scope, Tape, Value
from tmconvert.frontends.torch.tracing.validate_dynamic_shapes import Symbol
from tmconvert.ir.tree import leaves, map_leaves

RUNS = 3  # at other sizes of each symbol, one of them no multiple of the example's
Place = tuple[int, int]  # (index of the record, index of the leaf among its arguments)


class Observation(NamedTuple):
    """The numbers of a run in which ``symbol`` has ``size`` elements and the others those of the example."""

    symbol: Symbol
    size: int
    numbers: Mapping[Place, int]


class SizeRule(NamedTuple):
    """``factor`` times the product of ``symbols``, plus ``offset``."""

    factor: int
    symbols: tuple[str, ...]
    offset: int

    def at(self, sizes: Mapping[str, int]) -> int:
        """Returns the number at these sizes.

        >>> SizeRule(3, ("n",), 1).at({"n": 4})
        13
        """
        number = self.factor
        for name in self.symbols:
            number *= sizes[name]
        return number + self.offset


class SizeRecovery:
    """Runs a module at other sizes, and replaces numbers on the tapes by computations of sizes.

    ``run(symbol, size)`` returns the tape of a run. ``learn`` finds the rules.
    """

    def __init__(self, symbols: Sequence[Symbol], run: Callable[[Symbol, int], Tape]) -> None:
        self._symbols, self._run = symbols, run
        self._rules: dict[Place, SizeRule] = {}
        self._tapes: dict[tuple[Symbol, int], Tape] = {}

    def learn(self, tape: Tape) -> None:
        """Finds the rules of the numbers on the example's tape, and applies them to it."""
        found = [observation for symbol in self._symbols for observation in self._observed(symbol)]
        self._rules = rules_of(numbers_of(tape), found)
        recover(tape, self._rules, self._symbols)

    def rerun(self, symbol: Symbol, size: int) -> Tape:
        """Returns the tape of a run in which ``symbol`` has ``size`` elements."""
        tape = self._tapes.pop((symbol, size), None) or self._run(symbol, size)
        recover(tape, self._rules, self._symbols)
        return tape

    def _observed(self, symbol: Symbol) -> Iterator[Observation]:
        count = 0
        for size in symbol.others():
            try:
                tape = self._tapes[symbol, size] = self._run(symbol, size)
            except (Exception, SystemExit):  # the module's own, at a size that it does not take
                continue
            yield Observation(symbol, size, numbers_of(tape))
            count += 1
            if count == RUNS:
                return


def numbers_of(tape: Tape) -> dict[Place, int]:
    """Returns the plain numbers among the arguments of all calls."""
    return {
        (index, place): int(leaf)
        for index, (_, record) in enumerate(_records(tape.top))
        for place, leaf in enumerate(leaves((record.args, record.kwargs)))
        if _is_number(leaf)
    }


def rules_of(example: Mapping[Place, int], observations: Sequence[Observation]) -> dict[Place, SizeRule]:
    """Returns the rule of each number that depends on sizes; those that follow none are left out."""
    varying = {
        place: None
        for observation in observations
        for place, number in observation.numbers.items()
        if example.get(place, number) != number
    }
    found = ((place, _rule(place, example, observations)) for place in varying)
    return {place: rule for place, rule in found if rule is not None}


def _rule(place: Place, example: Mapping[Place, int], observations: Sequence[Observation]) -> SizeRule | None:
    if any(place not in each.numbers for each in observations):
        return None
    number = example[place]
    sizes = {each.symbol.name: each.symbol.number for each in observations if each.numbers[place] != number}
    changing = [each for each in observations if each.symbol.name in sizes]
    product, first = SizeRule(1, tuple(sizes), 0).at(sizes), changing[0]
    rise, step = first.numbers[place] - number, first.size - first.symbol.number
    rules = []
    if product and not number % product:
        rules.append(SizeRule(number // product, tuple(sizes), 0))
    if len(sizes) == 1 and not rise % step:
        factor = rise // step
        rules.append(SizeRule(factor, tuple(sizes), number - factor * first.symbol.number))
    for rule in rules:
        if all(rule.at(sizes | {each.symbol.name: each.size}) == each.numbers[place] for each in changing):
            return rule
    return None


def recover(tape: Tape, rules: Mapping[Place, SizeRule], symbols: Sequence[Symbol]) -> None:
    """Replaces numbers that follow a rule by computations of sizes on this tape, too."""
    inputs = dict(tape.top.formal_inputs())
    axes = {symbol.name: symbol.place for symbol in symbols}
    places = {name: (inputs[axis.input], axis.axis) for name, axis in axes.items() if axis is not None}
    sizes = {name: (tensor.shape or ())[axis] for name, (tensor, axis) in places.items()}
    numbers = numbers_of(tape)
    by_record: dict[int, dict[int, SizeRule]] = {}
    for (index, place), rule in rules.items():
        if set(rule.symbols) <= sizes.keys() and numbers.get((index, place)) == rule.at(sizes):
            by_record.setdefault(index, {})[place] = rule
    steps: dict[Record | Scope, list[Record]] = {}
    for index, (scope, record) in enumerate(_records(tape.top)):
        if index in by_record:
            steps[record] = _recovered(scope, record, by_record[index], places)
    for scope in {id(scope): scope for scope, record in _records(tape.top) if record in steps}.values():
        scope.items[:] = [each for item in scope.items for each in (*steps.get(item, ()), item)]


def _recovered(
    scope: Scope, record: Record, rules: Mapping[int, SizeRule], places: Mapping[str, tuple[Value, int]]
) -> list[Record]:
    """Gives the call computed sizes as arguments; returns the computations."""
    steps: list[Record] = []
    values = {place: _computed(scope, rule, places, record, steps) for place, rule in rules.items()}
    count = iter(range(len(leaves((record.args, record.kwargs)))))
    record.args, record.kwargs = map_leaves(
        lambda leaf: values.get(next(count), leaf), (record.args, record.kwargs)
    )
    return steps


def _computed(
    scope: Scope,
    rule: SizeRule,
    places: Mapping[str, tuple[Value, int]],
    record: Record,
    steps: list[Record],
) -> Value:
    """Returns the Value of a rule; its computation is added to ``steps``."""

    def step(name: str, is_method: bool, *args: Any) -> Value:
        value = Value(scope, f"{name.rpartition('.')[2]}_out")
        steps.append(Record(name, is_method, args, {}, value, record.source))
        return value

    first, *others = (step("size", True, *places[name]) for name in rule.symbols)
    for other in others:
        first = step("operator.mul", False, first, other)
    if rule.factor != 1:
        first = step("operator.mul", False, first, rule.factor)
    return step("operator.add", False, first, rule.offset) if rule.offset else first


def _is_number(leaf: Any) -> bool:
    return type(leaf) is int or (type(leaf) is float and leaf.is_integer())


def _records(scope: Scope) -> Iterator[tuple[Scope, Record]]:
    """Yields all calls in order, each with the scope that holds it."""
    for item in scope.items:
        if isinstance(item, Scope):
            yield from _records(item)
        else:
            yield scope, item
