"""Journal of the guards on symbolic sizes that a conversion relies on.

While a SizeJournal is open (``with journal:``), comparisons of sizes whose outcome depends on the example,
and locations that need a plain number, are recorded in it:

- an inequality goes as in the example, and becomes an ``assumption``;
- sizes that are equal in the example only count as different, since that may be chance. Where the
  operation then fails, ``retried`` runs it again with ``guided`` set: they count as equal. That binds
  one symbol to another, or makes a symbol a multiple of a number, or else freezes both sides;
- a number that is needed freezes the symbols in it.

A data-dependent size is never specialized or bound: a call that needs an inequality or the number of one is
an error; if an operation needs it to equal another size, that is a guard.

``specialized`` has the sizes of bound and specialized symbols, with which the conversion starts again.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from tmconvert.errors import Refusal

if TYPE_CHECKING:
    from tmconvert.ir.symbolic.dims import Dim, Size, Symbol

T = TypeVar("T")
MAX_COUNTED = 256  # sizes that tell how strict a guard is
MAX_TRIED = 1 << 12  # sizes looked at for one beyond a guard
MAX_SAMPLE = 1 << 24  # the largest size at which a guard is tested whether it is always true
# by the signs of a difference
_RELATIONS = {
    frozenset({0}): "==",
    frozenset({-1}): "<",
    frozenset({-1, 0}): "<=",
    frozenset({1}): ">",
    frozenset({0, 1}): ">=",
    frozenset({-1, 1}): "!=",
}


class Guard(NamedTuple):
    """A guard: the sign of ``difference`` is one of ``signs``; the call at ``place`` depends on it.

    ``is_ours`` is true for a guard of a pass or of the lowering, not of the model. One that ``is_of_target``
    is due to what the target cannot compute; a user may accept it. ``why`` states why the other side of a
    branch is not in the file.
    """

    difference: Dim
    signs: frozenset[int]
    place: str = ""
    source: Any = None
    is_ours: bool = False
    is_of_target: bool = False
    why: str = ""

    @property
    def is_of_equality(self) -> bool:
        """Whether the guard states that two sizes, which the model compared, are not equal."""
        return self.signs == {-1, 1} and not self.is_ours

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether the guard holds for these sizes; unknown symbols count as satisfying it.

        It does not hold where the difference has no value, as ``6 / (n - 2)`` for ``n`` = 2.
        """
        from tmconvert.ir.symbolic.dims import substituted

        try:
            value = substituted([self.difference], sizes)[0]
        except ArithmeticError:
            return False
        return not isinstance(value, int) or ((value > 0) - (value < 0)) in self.signs

    def broken_at(self, sizes: Mapping[str, Any]) -> np.ndarray:
        """Returns where the guard does not hold, for arrays of sizes or numbers by name."""
        with np.errstate(all="ignore"):
            values = self.difference.at(
                lambda each: sizes[each.name] // each.unit if each.name in sizes else each.example
            )
        return ~np.isin(np.sign(values), list(self.signs))

    def is_always_true(self, parts: frozenset[str] = frozenset()) -> bool:
        """Whether the guard holds at all of many sizes, small and large ones; ``parts`` are sizes that may be
        0. A report does not show it.
        """
        symbols = self.difference.symbols
        if self.is_of_equality or not symbols or _of_data(self.difference):
            return False
        large = MAX_SAMPLE if len(symbols) == 1 else MAX_SAMPLE >> 9  # products stay below 2**63
        random = np.random.default_rng(0)
        known = np.unique([*range(1, MAX_COUNTED), *np.geomspace(MAX_COUNTED, large, 64).astype(np.int64)])
        sizes = {
            name: random.permutation(np.resize([0, *known] if name in parts else known, MAX_TRIED))
            * symbol.unit
            for name, symbol in symbols.items()
        }
        return not self.broken_at(sizes).any()


def summarized(guards: Iterable[Guard]) -> list[str]:
    """Returns the guards as text; of several lower bounds of a symbol only the largest."""
    least: dict[str, int] = {}
    others: list[str] = []
    for guard in guards:
        from tmconvert.ir.symbolic.signs import least_size

        difference, wanted = guard.difference, guard.signs
        bound = least_size(difference, wanted) if 0 not in wanted or len(wanted) > 1 else None
        if bound is None:
            others.append(_relation(difference, _RELATIONS[wanted]))
        else:
            name, size = bound
            least[name] = max(size, least.get(name, 0))
    return list(dict.fromkeys([f"{name} >= {size}" for name, size in least.items()] + others))


def note_of(ranges: Sequence[str]) -> list[str]:
    """Returns the note of a report for the guards ``summarized``."""
    return [f"the file is valid for these sizes: {', '.join(ranges)}"] if ranges else []


class SizesSpecialized(Exception):
    """Raised when a symbol was specialized, so that the conversion must restart."""


class DataComparison(Refusal):
    """Raised when code requires the sign of a data-dependent size."""


class SizeJournal:
    """Records the guards and specialized symbols of one attempt at a conversion.

    ``names`` are those of the symbols; of two that are bound to each other, the first one stays. ``place`` is
    the current expression, for messages. ``reasons`` has, by symbol, a sentence for the report. ``unequal``
    are differences of sizes that were taken for unequal though they can be equal, each with the source line.
    ``restrictions`` are guards for the symbols that became multiples, or other sizes.
    With ``trusts_example`` data-dependent sizes are compared.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = list(names)
        self.place = ""
        self.reason: str | Callable[[], str] = ""
        self.guided = False
        self.trusts_example = False
        self.coincidences = 0
        self.specialized: dict[str, Size] = {}
        self.reasons: dict[str, str] = {}
        self.restrictions: list[Guard] = []
        self.source: Any = None
        self.why = ""  # the other side of the branch at the location is not in the file
        self.in_passes = False
        self.unequal: dict[Dim, Any] = {}
        self._guards: dict[tuple[Dim, frozenset[int]], Guard] = {}
        self._token: Token[SizeJournal | None] | None = None

    def __enter__(self) -> SizeJournal:
        self._token = _CURRENT.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _CURRENT.reset(self._token)

    def at(self, place: str, source: object = None) -> None:
        """Sets the current location of the conversion: a call, with its source line, or a pass."""
        self.place, self.source, self.why = place, source, ""

    @property
    def guards(self) -> list[Guard]:
        """Returns the distinct comparisons, each with its outcome in the example."""
        return list(self._guards.values())

    def summary(self) -> list[str]:
        """Returns the text of the guards for a report."""
        return note_of(summarized(self.guards))

    # ---- questions of Dims

    def holds(self, difference: Dim, wanted: set[int]) -> bool:
        """Whether the sign of ``difference`` in the example is one of ``wanted``."""
        if _of_data(difference) and not self.trusts_example:
            relation = _relation(difference, _RELATIONS.get(frozenset(wanted), "compared with"))
            raise DataComparison(f"whether {relation} is data-dependent")
        signs = frozenset(wanted)
        for known in (signs, frozenset({-1, 0, 1}) - signs):
            if _holds_in_branch(difference, known):
                return known == signs
        value = _trial(difference)
        answer = ((value > 0) - (value < 0)) in wanted
        found = frozenset(wanted if answer else {-1, 0, 1} - wanted)
        self.assume(difference, found)
        return answer

    def assume(self, difference: Dim, signs: frozenset[int]) -> None:
        """Adds the guard that the sign of ``difference`` is one of these."""
        made = Guard(difference, signs, self.place, self.source, self.in_passes, why=self.why)
        self._guards.setdefault((difference, signs), made)

    def take(self, difference: Dim, signs: set[int], *, is_of_target: bool = False) -> None:
        """Adds a guard that a user may accept, as of a traced branch: the signs of ``difference``."""
        key = difference, frozenset(signs)
        if _holds_in_branch(*key):
            return
        made = Guard(*key, self.place, self.source, False, is_of_target, self.why)
        self._guards.setdefault(key, made)

    def take_equal(self, difference: Dim) -> None:
        """Restricts the sizes to those with which the ``difference`` is zero, as in a branch of the trace."""
        if not _holds_in_branch(difference, frozenset({0})):
            self._bind(difference, is_guarded=True)

    def equal(self, difference: Dim) -> bool:
        """Whether two sizes are equal whose ``difference`` may be zero."""
        data = _of_data(difference)
        if _holds_in_branch(difference, frozenset({0})):
            return True
        if data and (min(difference, -difference, key=str), frozenset({0})) in self._guards:
            return True  # as an operation before it needs
        if not data and int(difference.at(_example_size)) != 0:
            if not self.in_passes:
                self.unequal.setdefault(difference, self.source)
            return False
        if not self.guided:
            self.coincidences += 1
            return False
        if not data:
            self._bind(difference)
        elif _is_zero_or_one(difference) or _is_a_sum(difference):
            return False  # code that compares with such a size has another way for other sizes
        else:
            self.assume(min(difference, -difference, key=str), frozenset({0}))
        return True

    def number(self, size: Dim) -> int:
        """Specializes the size to that of the example, where a number is required."""
        reason = self.reason if isinstance(self.reason, str) else self.reason()
        self.specialize(size, reason or "requires a static size")
        return size.example

    # ---- notes

    def specialize(self, size: Dim, reason: str) -> None:
        """Specializes the symbols of ``size`` to their examples; ``reason`` continues the sentence."""
        for name, symbol in size.symbols.items():
            if symbol.from_data:
                raise Refusal(f"the size {size} is data-dependent, and {self.place or 'this'} {reason}")
            number = symbol.example * symbol.unit
            self._specialize(name, number, f"{name} is specialized to {number}", reason)

    def give_up(self, sizes: Iterable[Dim], reason: str) -> bool:
        """Specializes the last symbol of ``sizes``, so the others may stay dynamic; False if none."""
        symbols = {
            name: symbol for size in sizes for name, symbol in size.symbols.items() if not symbol.from_data
        }
        if not symbols:
            return False
        from tmconvert.ir.symbolic.dims import of

        self.specialize(of(list(symbols.values())[-1]), reason)
        return True

    def check(self) -> None:
        """Raises SizesSettled if a symbol was specialized or bound."""
        if self.specialized:
            raise SizesSpecialized

    def _bind(self, difference: Dim, *, is_guarded: bool = False) -> None:
        """Binds a symbol so that ``difference`` is zero.

        If that takes several numbers, they are specialized, or else ``is_guarded``.
        """
        from tmconvert.ir.symbolic.dims import of
        from tmconvert.ir.symbolic.factors import without_common_factor

        difference = without_common_factor(difference)
        if self._bounded(difference) or self._unclamped(difference):
            return
        if Guard(difference, frozenset({0})).is_always_true():  # as floor(floor(n / 4) + 0.1) is floor(n / 4)
            self.assume(difference, frozenset({0}))
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
                self._specialize(symbol.name, size, f"{symbol.name} is {size}", "requires them to be equal")
                return
        if self._made_even(difference):
            return
        is_number = len(symbols) == 1 and len(difference.terms) <= 2 and (symbols[0],) in factors
        if is_guarded and not is_number:
            self.assume(difference, frozenset({0}))
        else:
            self.specialize(difference, f"requires {_relation(difference, '==')}")

    def _bounded(self, difference: Dim) -> bool:
        """Whether ``difference`` is zero for a range of sizes, to which the symbols are then restricted."""
        from tmconvert.ir.symbolic.dims import dim
        from tmconvert.ir.symbolic.signs import box_of_zero, interval_of_zero

        found = interval_of_zero(difference)
        ranges = box_of_zero(difference) if found is None else [found]
        for symbol, lowest, most in ranges or ():
            bounds = [f"at least {lowest * symbol.unit}"] * (lowest > symbol.least)
            bounds += [] if most in (None, symbol.most) else [f"at most {most * symbol.unit}"]
            if bounds:  # or they are equal at all sizes of at least 2
                size = dim(
                    symbol.name, symbol.example * symbol.unit, symbol.unit, lowest, most or symbol.most
                )
                self._specialize(
                    symbol.name, size, f"{symbol.name} is {' and '.join(bounds)}", "needs equal sizes"
                )
        return ranges is not None

    def _unclamped(self, difference: Dim) -> bool:
        """Whether ``difference`` is zero where clamps of several sizes are, which becomes a guard."""
        from tmconvert.ir.symbolic.signs import limit_of_zero

        limit = limit_of_zero(difference)
        if limit is not None:
            self.assume(limit, frozenset({-1, 0}))
        return limit is not None

    def _made_even(self, difference: Dim) -> bool:
        """Whether ``difference`` is zero for multiples of some units, which the sizes then become."""
        from tmconvert.ir.symbolic.dims import Dim, dim
        from tmconvert.ir.symbolic.signs import units_for_zero

        units = units_for_zero(difference)
        if units is None:
            return False
        for name, symbol in difference.symbols.items():
            unit, known = units[name], self.specialized.get(name)
            if unit == symbol.unit:
                continue
            if isinstance(known, Dim) and name in known.symbols:
                unit = math.lcm(unit, known.symbols[name].unit)
                del self.specialized[name]
            size = dim(name, symbol.example * symbol.unit, unit)
            self._specialize(name, size, f"{name} is a multiple of {unit}", "needs equal sizes")
        return True

    def _specialize(self, name: str, size: Size, fact: str, reason: str) -> None:
        from tmconvert.ir.symbolic.dims import Dim, Symbol, of
        from tmconvert.ir.symbolic.factors import in_elements

        if name not in self.specialized:
            self.specialized[name] = size
            self.reasons[name] = f"{fact}: {self.place or 'the conversion'} {reason}"
            if isinstance(size, Dim):
                whole = in_elements(size)
                own = of(Symbol(name, size.example))
                difference = own % size.symbols[name].unit if name in size.symbols else own - whole
                if isinstance(difference, Dim):
                    self.restrictions.append(
                        Guard(
                            difference, frozenset({0}), self.place, self.source, self.in_passes, why=self.why
                        )
                    )

    @contextlib.contextmanager
    def because(self, reason: str | Callable[[], str]) -> Iterator[None]:
        """Sets ``reason``, or what it returns then, as the reason for specializations in this context."""
        outer, self.reason = self.reason, reason
        try:
            yield
        finally:
            self.reason = outer


_CURRENT: ContextVar[SizeJournal | None] = ContextVar("size_journal", default=None)


def current_journal() -> SizeJournal:
    """Returns the current journal; without one, a journal that is discarded."""
    return _CURRENT.get() or SizeJournal()


def retried(function: Callable[[], T], *errors: type[Exception]) -> T:
    """Calls ``function()``; if it fails after accidental equalities, calls it again with them as guards."""
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


def validated(function: Callable[[], T]) -> T:
    """Calls a function that compares sizes to find errors, not to choose.

    A data-dependent size is then as in the example, with a guard: a convolution needs an element.
    """
    try:
        return function()
    except DataComparison:
        journal = _CURRENT.get()
    with contextlib.nullcontext(journal) if journal is not None else SizeJournal() as journal:
        journal.trusts_example = True
        try:
            return function()
        finally:
            journal.trusts_example = False


def _holds_in_branch(difference: Dim, signs: frozenset[int]) -> bool:
    """Whether the current code is a branch that sizes choose, and the relation holds at all of these."""
    branch = BRANCH.get()
    return branch is not None and branch.holds(difference, signs)


def _of_data(size: Dim) -> bool:
    return any(symbol.from_data for symbol in size.symbols.values())


def _is_zero_or_one(difference: Dim) -> bool:
    """Whether the comparison is one of a symbol with 0 or 1."""
    from tmconvert.ir.symbolic.dims import sole_symbol

    return any(sole_symbol(sign * difference + one) is not None for sign in (1, -1) for one in (0, 1))


class Branch(NamedTuple):
    """A branch that is taken at some sizes alone: relations that hold there, and the example's sizes."""

    holds: Callable[[Dim, frozenset[int]], bool]
    example: Mapping[str, int]


BRANCH: ContextVar[Branch | None] = ContextVar("branch", default=None)  # see ``choices.where``


def _example_size(symbol: Symbol) -> int:
    branch = BRANCH.get()
    return symbol.example if branch is None else branch.example.get(symbol.name, symbol.example)


def _trial(difference: Dim) -> int:
    from tmconvert.ir.symbolic.dims import LEAST

    return int(difference.at(lambda symbol: max(_example_size(symbol), LEAST)))


def _is_a_sum(difference: Dim) -> bool:
    """Whether only sizes that are all 0 make it 0."""
    factors = {factor > 0 for _, factor in difference.terms}
    return len(factors) == 1


def _relation(difference: Dim, relation: str) -> str:
    """Returns ``height >= 7`` for height - 7 >= 0, and ``height % 8 == 0`` for a remainder."""
    from tmconvert.ir.symbolic.dims import Dim
    from tmconvert.ir.symbolic.text import as_remainder

    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    opposite = mirrored.get(relation, relation)
    for each, sign in ((difference, relation), (-difference, opposite)):
        remainder = as_remainder(each)
        if remainder is not None:
            return f"{remainder[0]} {sign} {-remainder[1]}"
    if relation == "==":
        positive = sum(Dim((term,)) for term in difference.terms if term[1] > 0)
        return f"{positive} == {positive - difference}"
    constant = dict(difference.terms).get((), 0)
    rest: Any = difference - constant
    if all(factor < 0 for _, factor in rest.terms):
        rest, constant, relation = -rest, -constant, opposite
    return f"{rest} {relation} {-constant}"
