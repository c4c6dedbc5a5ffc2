"""What conversions with symbolic sizes have taken for granted.

While a SizeJournal is open (``with journal:``), comparisons of sizes that only an example can decide,
and the places that need a plain number, are noted in it. Nothing else decides them:

- an inequality goes as in the example, and becomes an ``assumption``;
- sizes that are equal in the example only count as different, since that may be chance. Where the
  operation then fails, ``retried`` runs it again with ``guided`` set: they count as equal. That binds
  one symbol to another, or makes a symbol a multiple of a number, or else freezes both sides;
- a number that is needed freezes the symbols in it.

A size that only the data tells is never frozen or bound: where an inequality or a number is needed of it the
call is refused; that it equals another where the operation needs that is an assumption.

Such symbols are no longer free: ``settled`` gives their sizes, with which the conversion starts again.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tmconvert.errors import Refusal

if TYPE_CHECKING:
    from tmconvert.ir.symbolic.dims import Dim, Size

T = TypeVar("T")
# by the signs of a difference
_RELATIONS = {
    frozenset({0}): "==",
    frozenset({-1}): "<",
    frozenset({-1, 0}): "<=",
    frozenset({1}): ">",
    frozenset({0, 1}): ">=",
    frozenset({-1, 1}): "!=",
}


@dataclass(frozen=True)
class Guard:
    """That the sign of ``difference`` is one of ``signs``, which the call at ``place`` went by.

    ``is_ours`` says that the model did not ask: a pass or the lowering did.
    """

    difference: Dim
    signs: frozenset[int]
    place: str = ""
    source: Any = None
    is_ours: bool = False

    @property
    def is_of_equality(self) -> bool:
        """Whether it is that two sizes, which the model compared, are not equal."""
        return self.signs == {-1, 1} and not self.is_ours

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether it does at these sizes; of symbols without one it is taken to."""
        from tmconvert.ir.symbolic.dims import substituted

        value = substituted([self.difference], sizes)[0]
        return not isinstance(value, int) or ((value > 0) - (value < 0)) in self.signs


def summarized(guards: Iterable[Guard]) -> list[str]:
    """The guards in words, of several least sizes of a symbol the greatest."""
    from tmconvert.ir.symbolic.signs import least_size

    least: dict[str, int] = {}
    others: list[str] = []
    for guard in guards:
        difference, wanted = guard.difference, guard.signs
        bound = least_size(difference, wanted) if 0 not in wanted or len(wanted) > 1 else None
        if bound is None:
            others.append(_relation(difference, _RELATIONS[wanted]))
        else:
            name, size = bound
            least[name] = max(size, least.get(name, 0))
    return list(dict.fromkeys([f"{name} >= {size}" for name, size in least.items()] + others))


def note_of(ranges: Sequence[str]) -> list[str]:
    """What a report says of the guards ``summarized``."""
    return [f"assumed of the sizes: {', '.join(ranges)}"] if ranges else []


class SizesSettled(Exception):
    """A symbol is no longer free: what follows would be of another model."""


class SizeJournal:
    """Notes on the sizes of one attempt at a conversion.

    ``names`` are those of the symbols: of two that are bound to each other, the first one stays.
    ``place`` is where the conversion is at: the expression for messages. ``reasons`` has, by symbol,
    the sentence of a report.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = list(names)
        self.place = ""
        self.reason = ""
        self.guided = False
        self.coincidences = 0
        self.settled: dict[str, Size] = {}
        self.reasons: dict[str, str] = {}
        self.source: Any = None
        self.in_passes = False
        self._guards: dict[tuple[Dim, frozenset[int]], Guard] = {}
        self._token: Token[SizeJournal | None] | None = None

    def __enter__(self) -> SizeJournal:
        self._token = _CURRENT.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _CURRENT.reset(self._token)

    def at(self, place: str, source: Any = None) -> None:
        """Says what the conversion is at: a call, with the line that it comes from, or a pass."""
        self.place, self.source = place, source

    @property
    def guards(self) -> list[Guard]:
        """The comparisons that came out as in the example, each once."""
        return list(self._guards.values())

    def summary(self) -> list[str]:
        """What a report says of the guards."""
        return note_of(summarized(self.guards))

    # ---- questions of Dims

    def holds(self, difference: Dim, wanted: set[int]) -> bool:
        """Whether the sign of ``difference`` is one of ``wanted``, in the example."""
        if _of_data(difference):
            relation = _relation(difference, _RELATIONS.get(frozenset(wanted), "compared with"))
            raise Refusal(f"whether {relation} is known only from the data")
        value = _trial(difference)
        answer = ((value > 0) - (value < 0)) in wanted
        found = frozenset(wanted if answer else {-1, 0, 1} - wanted)
        self.assume(difference, found)
        return answer

    def assume(self, difference: Dim, signs: frozenset[int]) -> None:
        """Notes that the sign of ``difference`` is taken to be one of these."""
        self._guards.setdefault(
            (difference, signs), Guard(difference, signs, self.place, self.source, self.in_passes)
        )

    def take(self, difference: Dim, signs: set[int]) -> None:
        """Notes that the model was seen to go where the sign of ``difference`` is one of these."""
        self.assume(difference, frozenset(signs))

    def equal(self, difference: Dim) -> bool:
        """Whether two sizes are equal, of which ``difference`` may be zero."""
        data = _of_data(difference)
        if difference.example != 0 and not data:
            return False
        if not self.guided:
            self.coincidences += 1
            return False
        if not data:
            self._bind(difference)
        elif _is_zero_or_one(difference):  # what asks for these has another way for other sizes
            return False
        else:
            self.assume(min(difference, -difference, key=str), frozenset({0}))
        return True

    def number(self, size: Dim) -> int:
        """The size in the example, where a number is needed."""
        self.freeze(size, self.reason or "needs a number")
        return size.example

    # ---- notes

    def freeze(self, size: Dim, reason: str) -> None:
        """Fixes all symbols of ``size`` to their examples; ``reason`` follows the place in a sentence."""
        for name, symbol in size.symbols.items():
            if symbol.from_data:
                raise Refusal(
                    f"the size {size} is known only from the data, and {self.place or 'this'} {reason}"
                )
            number = symbol.example * symbol.unit
            self._settle(name, number, f"{name} is specialized to {number}", reason)

    def give_up(self, sizes: Iterable[Dim], reason: str) -> bool:
        """Freezes one symbol of ``sizes``, the last: with a number in its place the rest may go on.

        Whether there was one.
        """
        symbols = {
            name: symbol for size in sizes for name, symbol in size.symbols.items() if not symbol.from_data
        }
        if not symbols:
            return False
        from tmconvert.ir.symbolic.dims import of

        self.freeze(of(list(symbols.values())[-1]), reason)
        return True

    def check(self) -> None:
        """Raises SizesSettled where a symbol has been frozen or bound."""
        if self.settled:
            raise SizesSettled

    def _bind(self, difference: Dim) -> None:
        """Makes ``difference`` zero."""
        from tmconvert.ir.symbolic.dims import of

        if self._bounded(difference):
            return
        shared = math.gcd(*(factor for _, factor in difference.terms))
        factors = {monomial: factor // shared for monomial, factor in difference.terms}
        symbols = list(difference.symbols.values())
        order = {name: position for position, name in enumerate(self.names)}
        for symbol in sorted(symbols, key=lambda symbol: order.get(symbol.name, -1), reverse=True):
            factor = factors.get((symbol,), 0)
            rest: Any = (difference - shared * factor * of(symbol)) // shared
            if len(symbols) > 1 and factor in (1, -1) and symbol.name not in getattr(rest, "symbols", {}):
                size = -rest * factor * symbol.unit
                self._settle(symbol.name, size, f"{symbol.name} is {size}", "needs them to be equal")
                return
        if not self._made_even(difference):
            self.freeze(difference, f"needs {_relation(difference, 'to be')}")

    def _bounded(self, difference: Dim) -> bool:
        """Whether ``difference`` is zero for a range of sizes, to which the symbol is then held."""
        from tmconvert.ir.symbolic.dims import dim
        from tmconvert.ir.symbolic.signs import interval_of_zero

        found = interval_of_zero(difference)
        if found is None:
            return False
        symbol, lowest, most = found
        bounds = [f"at least {lowest * symbol.unit}"] * (lowest > symbol.least)
        bounds += [] if most is None else [f"at most {most * symbol.unit}"]
        if not bounds:  # they are equal at all sizes of at least 2
            return True
        size = dim(symbol.name, symbol.example * symbol.unit, symbol.unit, lowest, most or symbol.most)
        self._settle(symbol.name, size, f"{symbol.name} is {' and '.join(bounds)}", "needs equal sizes")
        return True

    def _made_even(self, difference: Dim) -> bool:
        """Whether ``difference`` is zero for multiples of some units, which the sizes are then."""
        from tmconvert.ir.symbolic.dims import Dim, dim
        from tmconvert.ir.symbolic.signs import units_for_zero

        units = units_for_zero(difference)
        if units is None:
            return False
        for name, symbol in difference.symbols.items():
            unit, known = units[name], self.settled.get(name)
            if unit == symbol.unit:
                continue
            if isinstance(known, Dim) and name in known.symbols:
                unit = math.lcm(unit, known.symbols[name].unit)
                del self.settled[name]
            size = dim(name, symbol.example * symbol.unit, unit)
            self._settle(name, size, f"{name} is a multiple of {unit}", "needs equal sizes")
        return True

    def _settle(self, name: str, size: Size, fact: str, reason: str) -> None:
        if name not in self.settled:
            self.settled[name] = size
            self.reasons[name] = f"{fact}: {self.place or 'the conversion'} {reason}"

    @contextlib.contextmanager
    def because(self, reason: str) -> Iterator[None]:
        """Numbers needed in here are needed for ``reason``."""
        outer, self.reason = self.reason, reason
        try:
            yield
        finally:
            self.reason = outer


_CURRENT: ContextVar[SizeJournal | None] = ContextVar("size_journal", default=None)


def current_journal() -> SizeJournal:
    """The journal that is open; one that nobody reads where none is."""
    return _CURRENT.get() or SizeJournal()


def retried(function: Callable[[], T], *errors: type[Exception]) -> T:
    """``function()``; where that fails after chance equalities, once more with these taken for real."""
    journal = current_journal()
    before = journal.coincidences
    try:
        return function()
    except errors:
        if journal.coincidences == before or journal.guided:
            raise
    journal.guided = True
    try:
        return function()
    finally:
        journal.guided = False


def _of_data(size: Dim) -> bool:
    return any(symbol.from_data for symbol in size.symbols.values())


def _is_zero_or_one(difference: Dim) -> bool:
    """Whether the question is if a symbol is one of these."""
    from tmconvert.ir.symbolic.dims import sole_symbol

    return any(sole_symbol(sign * difference + one) is not None for sign in (1, -1) for one in (0, 1))


def _trial(difference: Dim) -> int:
    from tmconvert.ir.symbolic.dims import LEAST

    return int(difference.at(lambda symbol: max(symbol.example, LEAST)))


def _relation(difference: Dim, relation: str) -> str:
    """``height >= 7`` for height - 7 >= 0."""
    if relation == "==":
        from tmconvert.ir.symbolic.dims import Dim

        positive = sum(Dim((term,)) for term in difference.terms if term[1] > 0)
        return f"{positive} == {positive - difference}"
    constant = dict(difference.terms).get((), 0)
    rest: Any = difference - constant
    if all(factor < 0 for _, factor in rest.terms):
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
        rest, constant, relation = -rest, -constant, mirrored[relation]
    return f"{rest} {relation} {-constant}"
