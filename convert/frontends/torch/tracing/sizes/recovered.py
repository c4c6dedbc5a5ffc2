"""Recovers sizes that are plain numbers among the arguments of calls.

The backward pass of ``x.sum()`` is ``expand(gradient, [4, 3])``: the numbers are sizes of ``x``, but plain
integers in Python. So are those of ``x.view(int(n), -1)``. Runs at other sizes identify them: a number that
is 8 where the dimension ``n`` of the input is 8, and 12 where it is 12, is ``n``; one that in each run is
what ``int(h / 4)`` was is that quotient. Such numbers are replaced by computations of sizes on the tapes of
all runs, which are then compared as usual. A number without such a rule stays constant, and specializes its
dimension. So do the numbers that describe an array that Python computes (``recovered_arrays.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, product
from typing import Any, NamedTuple

from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Tape, Value
from tmconvert.frontends.torch.tracing.sizes.differing_conversions import differing_conversions
from tmconvert.frontends.torch.tracing.sizes.integers import TRACED, untraced
from tmconvert.frontends.torch.tracing.sizes.recovered_arrays import (
    IndexList,
    Series,
    arguments_of,
    computed_array,
    series_of,
)
from tmconvert.frontends.torch.tracing.sizes.replaced_functions import computation
from tmconvert.frontends.torch.tracing.sizes.validate_dynamic_shapes import Symbol
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.ir.types import Shape

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


class ArrayRule(NamedTuple):
    """An array of the example, and the rules of those of its numbers that follow sizes."""

    series: Series
    rules: tuple[SizeRule | None, ...]


class SizeRecovery:
    """Runs a module at other sizes, and replaces numbers on the tapes by computations of sizes.

    ``run(symbol, size)`` returns the tape of a run. ``learn`` finds the rules.
    """

    def __init__(self, symbols: Sequence[Symbol], run: Callable[[Symbol, int], Tape]) -> None:
        self._symbols, self._run = symbols, run
        self._rules: dict[Place, SizeRule] = {}
        self._arrays: dict[Place, ArrayRule] = {}

    def learn(self, tape: Tape) -> None:
        """Finds the rules of the numbers on the example's tape, and applies them to it."""
        found = [observation for symbol in self._symbols for observation in self._observed(symbol, tape)]
        rules = rules_of(numbers_of(tape), found, conversions_of(tape))
        self._rules = {place: rule for place, rule in rules.items() if len(place) == 2}
        self._arrays = _arrays_of(tape, rules, [each.numbers for each in found])
        self.recover(tape)

    def recover(self, tape: Tape) -> None:
        """Applies the rules to the tape of a run, once."""
        if (self._rules or self._arrays) and not tape.is_recovered:
            tape.is_recovered = True
            recover(tape, self._rules, self._symbols, self._arrays)

    def _observed(self, symbol: Symbol, example: Tape) -> Iterator[Observation]:
        """Yields what some runs show; those at sizes where conversions differ come last."""
        count, differing, calls = 0, differing_conversions(example, symbol.number), called(example)
        for size in (*symbol.others(), *differing):
            if count >= RUNS and size not in differing:
                continue
            try:
                tape = self._run(symbol, size)
            except (Exception, SystemExit):  # the module's own, at a size that it does not take
                continue
            is_other = called(tape) != calls
            yield Observation(symbol, size, numbers_of(tape), conversions_of(tape), is_other)
            count += 1


def numbers_of(tape: Tape) -> dict[Place, Any]:
    """Returns the plain numbers among the arguments of all calls, and those that describe constant arrays."""
    found: dict[Place, Any] = {}
    for index, (_, record) in enumerate(_records(tape.top)):
        for place, leaf in enumerate(leaves(arguments_of(record))):
            if _is_number(leaf, record):
                found[index, place] = int(leaf)
            for series in series_of(leaf):
                found |= zip(_places((index, place), series), series.numbers, strict=False)
    return found


def _places(place: Place, series: Series) -> list[Place]:
    """Returns the keys of the numbers that describe the array at a place."""
    return [(*place, *series[:3], number) for number in range(len(series.numbers))]


def called(tape: Tape) -> list[str]:
    """Returns the names of all calls, without comparisons of sizes."""
    return [record.name for _, record in _records(tape.top)]


def conversions_of(tape: Tape) -> dict[str, int]:
    """Returns the plain numbers that the module made of sizes, by their positions: ``int #0``."""
    return {f"int #{index}": int(untraced(size)) for index, size in enumerate(tape.conversions)}


def rules_of(
    example: Mapping[Place, Any],
    observations: Sequence[Observation],
    conversions: Mapping[str, int] | None = None,
) -> dict[Place, SizeRule]:
    """Returns the rule of each number that depends on sizes; those that follow none are left out.

    ``conversions`` are those of the example.
    """
    converted = _different(conversions or {}, observations)
    varying = {
        place: None
        for observation in observations
        for place, number in observation.numbers.items()
        if example.get(place, number) != number and type(number) is type(example[place]) is int
    }
    alike = [each for each in observations if not each.makes_other_calls]  # of sizes that can stay dynamic
    found: dict[Place, SizeRule] = {}
    for place in varying:
        rule = _converted(place, example, observations, converted)
        if rule := rule or _rule(place, example, observations) or _rule(place, example, alike):
            found[place] = rule
    return found


def _arrays_of(
    tape: Tape, rules: Mapping[Place, SizeRule], observed: Sequence[Mapping[Place, Any]]
) -> dict[Place, ArrayRule]:
    """Returns the arrays of the example whose numbers are all constant or follow sizes by a rule."""
    found: dict[Place, ArrayRule] = {}
    for index, (_, record) in enumerate(_records(tape.top)):
        for place, leaf in enumerate(leaves(arguments_of(record))):
            for series in series_of(leaf):
                places = _places((index, place), series)
                fixed = [pair for pair in zip(places, series.numbers, strict=True) if pair[0] not in rules]
                if (
                    series.is_complete
                    and len(fixed) < len(places)
                    and all(run.get(each, number) == number for run in observed for each, number in fixed)
                ):
                    found.setdefault((index, place), ArrayRule(series, tuple(map(rules.get, places))))
    return found


def _different(conversions: Mapping[str, int], observations: Sequence[Observation]) -> dict[str, Shape]:
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
    conversions: Mapping[str, Shape],
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


def recover(
    tape: Tape,
    rules: Mapping[Place, SizeRule],
    symbols: Sequence[Symbol],
    arrays: Mapping[Place, ArrayRule] | None = None,
) -> None:
    """Replaces numbers and arrays that follow a rule by computations of sizes on this tape, too."""
    found = _Found(tape, symbols)
    by_record: dict[int, dict[int, SizeRule | ArrayRule]] = {}
    for (index, place), rule in rules.items():
        if found.has(rule, (index, place)):
            by_record.setdefault(index, {})[place] = rule
    for (index, place), array in (arrays or {}).items():
        if found.has_array(array, (index, place)):
            by_record.setdefault(index, {})[place] = array
    steps: dict[Record | Scope, list[Record]] = {}
    constants: dict[Value, Value] = {}
    for index, (scope, record) in enumerate(_records(tape.top)):
        if index in by_record:
            _recovered(scope, record, by_record[index], found.origins, steps, constants)
    for scope in _scopes(tape.top):
        scope.items[:] = [each for item in scope.items for each in (*steps.get(item, ()), item)]
    if constants:
        _replace(tape.top, constants)


class _Found:
    """The sizes of a run by the names of symbols and conversions, and how each is computed."""

    def __init__(self, tape: Tape, symbols: Sequence[Symbol]) -> None:
        inputs = dict(tape.top.formal_inputs())
        axes = {symbol.name: symbol.place for symbol in symbols}
        self.origins: dict[str, Any] = {
            name: ("size", inputs[axis.input], axis.axis) for name, axis in axes.items() if axis is not None
        }
        self._sizes = {name: (tensor.shape or ())[axis] for name, (_, tensor, axis) in self.origins.items()}
        self.origins |= {f"int #{index}": size.origin for index, size in enumerate(tape.conversions)}
        self._sizes |= conversions_of(tape)
        self._numbers, self._made = numbers_of(tape), _made(tape)
        self._records = list(_records(tape.top))
        self._first: dict[Record | Scope, int] = {}  # the index of the first call in an item of a scope
        for index, (scope, record) in enumerate(self._records):
            items: list[Record | Scope] = [record, *scope.ancestors()]
            for item in items:
                self._first.setdefault(item, index)

    def has(self, rule: SizeRule, place: Place, before: int | None = None) -> bool:
        """Returns whether the number at a place is that of the rule, and can be computed there, or ``before``
        the call of this index.
        """
        return (
            set(rule.symbols) <= self._sizes.keys()
            and self._numbers.get(place) == rule.at(self._sizes)
            and all(
                self._made.get(value, -1) < (place[0] if before is None else before)
                for name in rule.symbols
                for value in _used(self.origins[name])
            )
        )

    def has_array(self, array: ArrayRule, place: Place) -> bool:
        """Returns whether the array at a place has the numbers of a rule; a short one does not show all."""
        places = _places(place, array.series)
        scope, record = self._records[place[0]]
        _, item = _home(leaves(arguments_of(record))[place[1]], scope, record)
        first = self._first[item]
        return places[0] in self._numbers and all(
            (rule is None and self._numbers[each] == number)
            or (rule is not None and self.has(rule, each, first))
            for each, rule, number in zip(places, array.rules, array.series.numbers, strict=True)
            if each in self._numbers
        )


def _replace(scope: Scope, values: Mapping[Value, Value]) -> None:
    """Puts other Values in the place of some, in a scope and all within."""

    def other(leaf: Any) -> Any:
        return values.get(leaf, leaf) if isinstance(leaf, Value) else leaf

    for step in (scope, *scope.items):
        step.args, step.kwargs = map_leaves(other, (step.args, step.kwargs))
        step.result = map_leaves(other, step.result)
        for inner in (step,) if isinstance(step, Scope) and step is not scope else ():
            _replace(inner, values)


def _made(tape: Tape) -> dict[Value, int]:
    """Returns the index of the call that made each Value."""
    return {
        value: index for index, (_, record) in enumerate(_records(tape.top)) for value in record.results()
    }


def _used(origin: Sequence[Any]) -> Iterator[Value]:
    """Yields the tensors whose sizes a computation uses."""
    for operand in origin[1:]:
        if isinstance(operand, TRACED):
            yield from _used(operand.origin)
        elif isinstance(operand, Value):
            yield operand


def _recovered(
    scope: Scope,
    record: Record,
    rules: Mapping[int, SizeRule | ArrayRule],
    origins: Mapping[str, Sequence[Any]],
    steps: dict[Record | Scope, list[Record]],
    constants: dict[Value, Value],
) -> None:
    """Gives the call computed sizes and arrays as arguments; adds the computations to those of ``steps``.

    A constant array that a module is called with is computed before that call, and once for all calls.
    """
    before = leaves(arguments_of(record))
    values: dict[int, Value] = {}
    for place, rule in rules.items():
        leaf = before[place]
        home, item = _home(leaf, scope, record)
        own = steps.setdefault(item, [])
        if isinstance(rule, SizeRule):
            values[place] = _computed(scope, rule, origins, record, own)
        elif not isinstance(leaf, Value):
            values[place] = _computed_array(scope, rule, origins, record, own)
        elif leaf not in constants:
            constants[leaf] = _computed_array(home, rule, origins, record, own)
    count = iter(range(len(before)))
    record.args, record.kwargs = map_leaves(
        lambda leaf: values.get(next(count), leaf.numbers if isinstance(leaf, IndexList) else leaf),
        arguments_of(record),
    )


def _home(leaf: Any, scope: Scope, record: Record) -> tuple[Scope, Record | Scope]:
    """Returns the scope in which a constant was first seen, and its item that has the call."""
    item: Record | Scope = record
    for each in scope.ancestors():
        if not isinstance(leaf, Value) or each is leaf.scope:
            return each, item
        item = each
    return scope, record


def _computed_array(
    scope: Scope, rule: ArrayRule, origins: Mapping[str, Sequence[Any]], record: Record, steps: list[Record]
) -> Value:
    """Returns the Value of an array; its computation is added to ``steps``."""
    numbers = [
        number if each is None else _computed(scope, each, origins, record, steps)
        for each, number in zip(rule.rules, rule.series.numbers, strict=True)
    ]
    value, calls = computed_array(scope, rule.series, numbers, record.source)
    steps.extend(calls)
    return value


def _computed(
    scope: Scope, rule: SizeRule, origins: Mapping[str, Sequence[Any]], record: Record, steps: list[Record]
) -> Value:
    """Returns the Value of a rule; its computation is added to ``steps``."""

    def step(kind: str, *args: Any) -> Value:
        value = Value(scope, f"{kind}_out")
        steps.append(Record(*computation(kind), args, {}, value, record.source))
        return value

    def repeated(operand: Any) -> Any:
        if not isinstance(operand, (*TRACED, tuple)):
            return operand
        kind, *operands = operand if isinstance(operand, tuple) else operand.origin
        return step(kind, *map(repeated, operands))

    first, *others = (repeated(origins[name]) for name in rule.symbols)
    for other in others:
        first = step("mul", first, other)
    changes = (
        ("add", rule.added, 0),
        ("floordiv", rule.divisor, 1),
        ("mul", rule.factor, 1),
        ("add", rule.offset, 0),
    )
    for kind, number, neutral in changes:
        if number != neutral:
            first = step(kind, first, number)
    return first


def _is_number(leaf: Any, record: Record) -> bool:
    """Whether a leaf is an integer, or the float of one that does not decide the type of the result."""
    if type(leaf) is int:
        return True
    tensors = [value for value in record.values() if value.shape is not None]
    return (
        type(leaf) is float
        and leaf.is_integer()
        and any(str(value.dtype).startswith("float") for value in tensors)
    )


def _scopes(scope: Scope) -> Iterator[Scope]:
    """Yields a scope and those of the module calls and subgraphs within."""
    yield scope
    for item in scope.items:
        for inner in [item] if isinstance(item, Scope) else item.subgraphs:
            yield from _scopes(inner)


def _records(scope: Scope) -> Iterator[tuple[Scope, Record]]:
    """Yields all calls in order, each with the scope that holds it; without comparisons of sizes."""
    for item in scope.items:
        if isinstance(item, Scope):
            yield from _records(item)
        elif item.name != "tm.assume":
            yield scope, item
            for body in item.subgraphs:
                yield from _records(body)
