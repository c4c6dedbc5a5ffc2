"""Recovers sizes that are plain numbers among the arguments of calls.

The backward pass of ``x.sum()`` is ``expand(gradient, [4, 3])``: the numbers are sizes of ``x``, but plain
integers in Python. So are those of ``x.view(int(n), -1)``. Runs at other sizes identify them: a number that
is 8 where the dimension ``n`` of the input is 8, and 12 where it is 12, is ``n``; one that in each run is
what ``int(h / 4)`` was is that quotient. Such numbers are replaced by computations of sizes on the tapes of
all runs, which are then compared as usual. A number without such a rule stays constant, and specializes its
dimension. So do the numbers that describe an array that Python computes (``recovered_arrays.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

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
from tmconvert.frontends.torch.tracing.sizes.size_rules import (
    RUNS,
    ArrayRule,
    Observation,
    Place,
    Rule,
    is_equal,
    rules_of,
)
from tmconvert.frontends.torch.tracing.sizes.validate_dynamic_shapes import Symbol
from tmconvert.ir.tree import leaves, map_leaves


class SizeRecovery:
    """Runs a module at other sizes, and replaces numbers on the tapes by computations of sizes.

    ``run(symbol, size)`` returns the tape of a run. ``learn`` finds the rules.
    """

    def __init__(self, symbols: Sequence[Symbol], run: Callable[[Symbol, int], Tape]) -> None:
        self._symbols, self._run = symbols, run
        self._rules: dict[Place, Rule] = {}
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
                found[index, place] = int(leaf) if float(leaf).is_integer() else leaf
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


def _arrays_of(
    tape: Tape, rules: Mapping[Place, Rule], observed: Sequence[Mapping[Place, Any]]
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


def recover(
    tape: Tape,
    rules: Mapping[Place, Rule],
    symbols: Sequence[Symbol],
    arrays: Mapping[Place, ArrayRule] | None = None,
) -> None:
    """Replaces numbers and arrays that follow a rule by computations of sizes on this tape, too."""
    found = _Found(tape, symbols)
    by_record: dict[int, dict[int, Rule | ArrayRule]] = {}
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
    for scope in tape.top.nested():
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

    def has(self, rule: Rule, place: Place, before: int | None = None) -> bool:
        """Returns whether the number at a place is that of the rule, and can be computed there, or ``before``
        the call of this index.
        """
        return (
            set(rule.symbols) <= self._sizes.keys()
            and is_equal(self._numbers.get(place), rule.at(self._sizes))
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
    rules: Mapping[int, Rule | ArrayRule],
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
        if not isinstance(rule, ArrayRule):
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
    scope: Scope,
    rule: Rule,
    origins: Mapping[str, Sequence[Any]],
    record: Record,
    steps: list[Record],
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
    for kind, *numbers in rule.changes():
        first = step(kind, first, *numbers)
    return first


def _is_number(leaf: Any, record: Record) -> bool:
    """Whether a leaf is an integer, or a float that does not decide the type of the result."""
    if type(leaf) is int:
        return True
    tensors = [value for value in record.values() if value.shape is not None]
    return type(leaf) is float and any(str(value.dtype).startswith("float") for value in tensors)


def _records(scope: Scope) -> Iterator[tuple[Scope, Record]]:
    """Yields all calls in order, each with the scope that holds it; without comparisons of sizes."""
    for item in scope.items:
        if isinstance(item, Scope):
            yield from _records(item)
        elif item.name != "tm.assume":
            yield scope, item
            for body in item.subgraphs:
                yield from _records(body)
