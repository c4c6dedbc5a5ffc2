"""Sign analysis of symbolic sizes: signs for all values of the symbols (each at least its ``least``)."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from tmconvert.ir.symbolic.atoms import order_of
from tmconvert.ir.symbolic.dims import LEAST, Atom, Dim, Floor, Positive, Size, Symbol, of, same_size
from tmconvert.ir.symbolic.factors import exact_quotient, without_common_factor
from tmconvert.ir.tree import leaves

MOST_NESTED = 12  # parts of a quotient whose remainder bounds a sum
MAX_SIZE = 1 << 31  # of sizes between which a bound is searched
MAX_PERIOD = 1 << 12  # values tried to prove a comparison of floors


def signs(value: Size) -> set[int]:
    """Returns the possible signs (-1, 0, 1) of ``value``; all three where nothing is known."""
    return {(value > 0) - (value < 0)} if isinstance(value, int) else set(_signs(value))


@lru_cache(maxsize=1 << 14)
def _signs(value: Dim) -> set[int]:
    joined = _without_halves(value)
    if joined is not value:
        return signs(joined)
    shared = [atom for atom in value.terms[0][0] if isinstance(atom, Symbol)]
    if shared and all(shared[0] in monomial for monomial, _ in value.terms):
        rest = signs(exact_quotient(value, shared[0]))
        return rest | {0} if shared[0].from_data else rest
    if _has_zero_factor(value):
        return {0}
    found = _signs_within(value) or _signs_if_growing(value)
    if found is None:
        opposite = _signs_if_growing(-value)
        found = None if opposite is None else {-sign for sign in opposite}
    for each in (
        _signs_by_case,
        _signs_by_period,
        _signs_of_quotients,
        _signs_by_remainder,
        _signs_by_fraction,
    ):
        found = found or each(value)
    return found or {-1, 0, 1}


def _signs_of_quotients(value: Dim) -> set[int] | None:
    """Signs of a sum of products of symbols and quotients that are never negative."""
    for sign in (1, -1):
        terms = (sign * value).terms
        if all(
            factor > 0 and all(isinstance(atom, Symbol | Positive) or _is_quotient(atom) for atom in monomial)
            for monomial, factor in terms
        ):
            return {sign} if any(not monomial for monomial, _ in terms) else {0, sign}
    return None


def _signs_by_remainder(value: Dim) -> set[int] | None:
    """Signs of a sum with ``k * floor(n / k)``, which is at most ``n`` and at least ``n - k + 1``."""
    for monomial, factor in value.terms:
        atom = monomial[0] if len(monomial) == 1 else None
        if not isinstance(atom, Floor) or atom.is_float or not isinstance(atom.denominator, int):
            continue
        times, rest = divmod(factor, atom.denominator)
        if rest:
            continue
        one = value - factor * of(atom) + times * atom.numerator
        other = one - times * (atom.denominator - 1)
        if atom.parts > MOST_NESTED and isinstance(one, Dim):  # each level has two bounds to look at
            continue
        least, most = sorted((one, other), key=lambda bound: (bound is one) == (times > 0))
        if signs(least) <= {0, 1}:
            return signs(least) | {1}
        if signs(most) <= {-1, 0}:
            return signs(most) | {-1}
    return None


def _signs_by_fraction(value: Dim) -> set[int] | None:
    """Signs of a sum with a size that is computed in floats, which is at most 1 off the exact fraction."""
    for monomial, factor in value.terms:
        atom: Any = monomial[0] if len(monomial) == 1 else None
        if isinstance(atom, Floor) and atom.is_float and atom.is_rational:  # type: ignore[attr-defined]
            exact = value + factor * (atom.integers - of(atom))  # type: ignore[attr-defined]
            least, most = signs(exact - abs(factor)), signs(exact + abs(factor))
            if least <= {0, 1} or most <= {-1, 0}:
                return least | {1} if least <= {0, 1} else most | {-1}
            return None
    return None


def _is_quotient(atom: Floor) -> bool:
    """Whether an atom is a quotient of sizes that are never negative; one by zero has no value."""
    if atom.is_float:
        return atom.is_never_negative
    parts = (atom.numerator, atom.denominator)
    return all(part >= 0 if isinstance(part, int) else signs(part) <= {0, 1} for part in parts)


def _has_zero_factor(value: Dim) -> bool:
    """Whether what is left of ``value`` without a floor that all of its terms share is always zero."""
    rest = without_common_factor(value)
    return rest is not value and signs(rest) == {0}


def _without_halves(value: Dim) -> Size:
    """Replaces ceil(x / 2) by x - floor(x / 2) where ``value`` has both.

    With x = floor(y / d): floor((y + d) / 2d) = floor(y / d) - floor(y / 2d). Source: Hermite's identity.
    """
    floors = {
        atom.order: atom
        for monomial, _ in value.terms
        for atom in monomial
        if isinstance(atom, Floor) and not atom.is_float
        if isinstance(atom.denominator, int) and atom.denominator % 2 == 0
    }
    replaced: dict[str, Any] = {}
    for text, atom in floors.items():
        step = int(atom.denominator) // 2
        lower = floors.get(Floor(atom.numerator - step, atom.denominator).order)
        if lower is not None:
            replaced[text] = lower.numerator // step - of(lower)
    if not replaced:
        return value
    joined: Size = sum(
        (
            factor * math.prod([replaced.get(order_of(atom), of(atom)) for atom in monomial])
            for monomial, factor in value.terms
        ),
        start=0,
    )
    return joined


def may_be_zero(size: Size) -> bool:
    """Whether ``size`` is zero at some sizes, also where a symbol is 1, which is below its ``least``."""
    return 0 in signs(size) or (isinstance(size, Dim) and _at_or_none(size, 1) == 0)


def _signs_within(value: Dim) -> set[int] | None:
    """Signs of an expression of one bounded symbol, by enumeration of its values."""
    (symbol, *others) = value.symbols.values()
    if others or symbol.most is None or symbol.most - symbol.least > MAX_PERIOD:
        return None
    values = (_at_or_none(value, size) for size in range(symbol.least, symbol.most + 1))
    return {(each > 0) - (each < 0) for each in values if each is not None} or None


def _signs_by_case(value: Dim) -> set[int] | None:
    """Signs of an expression with max(size, 0), by cases."""
    clamp = next(
        (atom for monomial, _ in value.terms for atom in monomial if isinstance(atom, Positive)), None
    )
    if clamp is None:
        return None
    found = set[int]()
    for part in (0, clamp.size):
        case = sum(
            (
                factor * math.prod([part if _is_same(atom, clamp) else of(atom) for atom in monomial])
                for monomial, factor in value.terms
            ),
            start=0,
        )
        sign = -1 if isinstance(part, int) else 1  # of the size in this case, or zero
        if same_size(case, clamp.size):
            found |= {0, sign}
        else:
            found |= {0, -sign} if same_size(case, -clamp.size) else signs(case)
    return found


def _is_same(atom: object, clamp: Positive) -> bool:
    """Whether a factor is this clamp as it is written; ``==`` would ask for signs again, at each depth."""
    return isinstance(atom, Positive) and same_size(atom.size, clamp.size)


def _signs_if_growing(value: Dim) -> set[int] | None:
    """Signs of an expression that is monotonic in each symbol, from its smallest value."""
    if not _grows(value):
        return None
    least = value.at(lambda symbol: symbol.least)
    tops = [symbol.most for symbol in value.symbols.values()]
    highest = None if None in tops else value.at(lambda symbol: symbol.most or 0)
    if highest is not None and (highest < 0 or highest == least == 0):
        return {-1} if highest < 0 else {0}
    return {1} if least > 0 else {0, 1} if least == 0 else None


def _grows(value: Size) -> bool:
    if isinstance(value, int):
        return value >= 0
    return all(
        factor > 0 and all(_atom_grows(atom) for atom in monomial)
        for monomial, factor in value.terms
        if monomial
    )


def _atom_grows(atom: Atom) -> bool:
    """Whether the atom is monotonic in each symbol, and never negative."""
    if isinstance(atom, Positive):
        return _is_linear_growing(atom.size)
    return isinstance(atom, Symbol) or _floor_grows(atom)


def _is_linear_growing(size: Dim) -> bool:
    return all(
        factor > 0 and all(_atom_grows(atom) for atom in monomial)
        for monomial, factor in size.terms
        if monomial
    )


def _floor_grows(atom: Floor) -> bool:
    return isinstance(atom.denominator, int) and _grows(atom.numerator) and signs(atom.numerator) <= {0, 1}


def _signs_by_period(value: Dim) -> set[int] | None:
    """Signs of an expression of one symbol, linear but for floors: periodic up to a constant increment."""
    period = _period(value)
    if len(value.symbols) != 1 or period is None or period > MAX_PERIOD:
        return None
    (symbol,) = value.symbols.values()
    values = [_at(value, size) for size in range(symbol.least, symbol.least + period + 1)]
    step = values.pop() - values[0]
    found = {(each > 0) - (each < 0) for each in values}
    steady = step == 0 or (step > 0 and found == {1}) or (step < 0 and found == {-1})
    if step > 0 and min(values) == 0:
        return {0, 1}
    if step < 0 and max(values) == 0:
        return {-1, 0}
    return found if steady else None


def least_size(difference: Dim, wanted: frozenset[int]) -> tuple[str, int] | None:
    """Returns (symbol, its least size) if that lower bound makes the sign one of ``wanted``."""
    if wanted <= {-1, 0}:
        difference, wanted = -difference, frozenset(-sign for sign in wanted)
    if len(difference.symbols) != 1 or not _grows(difference):
        return None
    (symbol,) = difference.symbols.values()
    for size in range(max(symbol.example, LEAST), 0, -1):
        value = _at(difference, size)
        if ((value > 0) - (value < 0)) not in wanted:
            is_range = size == 1 or -1 not in wanted  # smaller sizes are beyond it, too
            return (symbol.name, (size + 1) * symbol.unit) if is_range else None
    return None


def units_for_zero(value: Dim) -> dict[str, int] | None:
    """Returns the least units by symbol whose multiples make ``value`` zero; None if there are none.

    Multiples of the denominators make floor divisions exact. The example must be among the multiples.
    """
    found = {
        name: math.gcd(_denominators(value, symbol), symbol.example) for name, symbol in value.symbols.items()
    }
    if max(found.values()) > MAX_PERIOD or not _is_zero(value, found):
        return None
    for name, unit in found.items():
        smaller = [
            each for each in range(1, unit) if unit % each == 0 and _is_zero(value, {**found, name: each})
        ]
        found[name] = min(smaller, default=unit)
    return {name: unit * value.symbols[name].unit for name, unit in found.items()}


def _is_zero(value: Dim, units: Mapping[str, int]) -> bool:
    made = value.at(lambda symbol: of(symbol) * units[symbol.name])
    return isinstance(made, int) and made == 0


@lru_cache(maxsize=1 << 14)
def _denominators(value: Size, symbol: Symbol) -> int:
    """Returns a common multiple of the denominators of floors of terms with ``symbol``."""
    found = 1
    for monomial, _ in value.terms if isinstance(value, Dim) else ():
        for atom in monomial:
            if isinstance(atom, Positive):
                found = math.lcm(found, _denominators(atom.size, symbol))
            if isinstance(atom, Floor) and isinstance(atom.denominator, int) and not atom.is_float:
                inner = atom.numerator
                if isinstance(inner, Dim) and symbol.name in inner.symbols:
                    found = math.lcm(found, atom.denominator * _denominators(inner, symbol))
    return found


def _at(value: Dim, size: int) -> int:
    """Evaluates the expression with all symbols equal to ``size``."""
    return int(value.at(lambda _: size))


def _at_or_none(value: Dim, size: int) -> int | None:
    """Evaluates the expression like ``_at``; None where it divides by zero, as no model has that size."""
    try:
        return _at(value, size)
    except ZeroDivisionError:
        return None


def _period(value: Size) -> int | None:
    """Returns the n for which adding n to a symbol changes each floor division in ``value`` by an integer.

    For ``a // 2 + b // 3`` that is 6. None if ``value`` has products of symbols or symbolic divisors.
    """
    period = 1
    for monomial, _ in value.terms if isinstance(value, Dim) else ():
        if len(monomial) > 1:
            return None
        for atom in monomial:
            if isinstance(atom, Positive):
                return None
            if isinstance(atom, Floor):
                inner = _period(atom.numerator)
                if inner is None or not isinstance(atom.denominator, int) or atom.is_float:
                    return None
                period = math.lcm(period, inner * atom.denominator)
    return period


def thresholds(tree: object) -> dict[str, int]:
    """Returns by symbol the size up to which numbers in the tree can matter; approximate if non-linear.

    That of max(floor(height / 2) - 64, 0) is 128.
    """
    found: dict[str, int] = {}
    for size in leaves(tree):
        for symbol in size.symbols.values() if isinstance(size, Dim) else ():
            found[symbol.name] = max(found.get(symbol.name, 0), _compared_with(size, symbol))
    return found


@lru_cache(maxsize=1 << 14)
def _compared_with(size: Size, symbol: Symbol) -> int:
    """Returns the size of a symbol at which quotients of it are as large as the numbers that they meet."""
    if isinstance(size, int):
        return abs(size)
    scale, most = _denominators(size, symbol), 0
    for monomial, factor in size.terms:
        if not monomial:
            most = max(most, abs(factor) * scale)
        for atom in monomial:
            if not isinstance(atom, Symbol) and not atom.is_float:
                inner = atom.numerator if isinstance(atom, Floor) else atom.size
                most = max(most, _compared_with(inner, symbol))
    return most


def interval_of_zero(value: Dim) -> tuple[Symbol, int, int | None] | None:
    """Returns (symbol, least, most) of the sizes where ``value``, of one symbol, is zero; None for no
    interval.

    If ``most`` is None, the interval has no upper bound among the tested sizes. The example, or the least
    size, is among them.
    """
    (symbol, *others) = value.symbols.values()
    atoms = [type(atom) for monomial, _ in value.terms for atom in monomial]
    if others or not {Positive, Floor} & set(atoms):
        return None
    if _is_monotonic(value):
        sizes = range(symbol.least, MAX_SIZE)
        first, end = (
            symbol.least + bisect.bisect_left(sizes, True, key=lambda size: _direction(value, size) >= least)
            for least in (0, 1)
        )
        zeros: Sequence[int] = range(first, end)
    else:
        end = max(thresholds(value).values(), default=0) + 2
        if Floor in atoms:  # from there on a quotient changes once in its denominator
            end += _denominators(value, symbol)
        if end > MAX_PERIOD:
            return None
        zeros = [size for size in range(symbol.least, end + 1) if _at_or_none(value, size) == 0]
    is_interval = len(zeros) > 1 and zeros[-1] - zeros[0] == len(zeros) - 1
    if not is_interval or max(symbol.example, symbol.least) not in zeros:
        return None
    return symbol, zeros[0], None if zeros[-1] == end else zeros[-1]


def box_of_zero(value: Dim) -> list[tuple[Symbol, int, int | None]] | None:
    """Returns (symbol, least, most) of sizes at which clamps are as in the example, and ``value`` is zero.

    Each clamp max(x, 0) is 0 or x there, and has one symbol. None where ``value`` is not zero with these, or
    other clamps remain.
    """
    clamps = {
        str(atom): atom for monomial, _ in value.terms for atom in monomial if isinstance(atom, Positive)
    }
    signs_of = {text: 1 if atom.size.example > 0 else -1 for text, atom in clamps.items()}
    replaced = {text: atom.size if signs_of[text] > 0 else 0 for text, atom in clamps.items()}
    rest = sum(
        (
            factor * math.prod([replaced.get(order_of(atom), of(atom)) for atom in monomial])
            for monomial, factor in value.terms
        ),
        start=0,
    )
    if not clamps or signs(rest) != {0} or any(len(atom.size.symbols) != 1 for atom in clamps.values()):
        return None
    conditions = [signs_of[text] * atom.size for text, atom in clamps.items()]
    return [_box(symbol, conditions) for symbol in value.symbols.values()]


def _box(symbol: Symbol, conditions: list[Dim]) -> tuple[Symbol, int, int | None]:
    """Returns the range of sizes about the example at which conditions of the symbol are not negative."""
    own = [each for each in conditions if symbol.name in each.symbols]

    def holds(size: int) -> bool:
        found = [_at_or_none(each, size) for each in own]
        return all(each is not None and each >= 0 for each in found)

    lowest = highest = max(symbol.example, symbol.least)
    while lowest > symbol.least and holds(lowest - 1):
        lowest -= 1
    end = highest + MAX_PERIOD if symbol.most is None else symbol.most
    while highest < end and holds(highest + 1):
        highest += 1
    has_no_limit = symbol.most is None and highest == end
    return symbol, lowest, None if has_no_limit else highest


def limit_of_zero(value: Dim) -> Dim | None:
    """Returns a size that is at most 0 exactly where ``value``, a clamp or the difference of two, is 0.

    Where a > b, max(a, 0) equals max(b, 0) only if both are 0. None for other sizes.
    """
    clamps = [(monomial[0], factor) for monomial, factor in value.terms if len(monomial) == 1]
    sizes = [atom.size for atom, _ in clamps if isinstance(atom, Positive) and isinstance(atom.size, Dim)]
    if len(sizes) != len(value.terms) or sum(factor for _, factor in clamps) * (len(sizes) - 1):
        return None
    if len(sizes) == 1:
        return sizes[0]
    first, second = sizes if len(sizes) == 2 else (None, None)
    larger = {frozenset({1}): first, frozenset({-1}): second}
    return larger.get(frozenset(signs(first - second))) if first is not None and second is not None else None


def _is_monotonic(value: Dim) -> bool:
    """Whether ``value``, of one symbol, only rises or only falls: it is a sum of floors of the symbol."""
    terms = [(monomial, factor) for monomial, factor in value.terms if monomial]
    rises = {factor > 0 for _, factor in terms}
    return len(rises) == 1 and all(
        len(monomial) == 1 and not isinstance(monomial[0], Symbol) and _is_rising(monomial[0])
        for monomial, _ in terms
    )


def _is_rising(atom: Atom) -> bool:
    """Whether an atom never falls: floor(x / c) or max(x, 0), x a positive combination of such atoms."""
    if isinstance(atom, Symbol):
        return True
    if isinstance(atom, Floor) and not (isinstance(atom.denominator, int) and atom.denominator > 0):
        return False
    inner = atom.numerator if isinstance(atom, Floor) else atom.size
    return not isinstance(inner, Dim) or all(
        factor > 0 and len(monomial) == 1 and _is_rising(monomial[0])
        for monomial, factor in inner.terms
        if monomial
    )


def _direction(value: Dim, size: int) -> int:
    """Returns a monotonic ``value`` at a size of its symbol, negated if it falls."""
    rises = all(factor > 0 for monomial, factor in value.terms if monomial)
    return _at(value, size) if rises else -_at(value, size)
