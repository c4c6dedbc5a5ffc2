"""Symbolic sizes: integer expressions of named symbols.

A ``Dim`` stands for an int in shape arithmetic: ``+ - * // %`` give Dims, or plain ints where the
symbols cancel. Equal expressions have one form, so they compare and hash equal:

    (batch * 48) // 48 == batch          floor(floor((h + 1) / 2) / 2) == floor((h + 1) / 4)

A symbol stands for a size of at least 2 (``LEAST``), so that no graph relies on broadcasting at size 1; only
data-dependent ones (``data_dependent.py``) may be 0. A comparison with one outcome for all sizes is an
ordinary bool. Any other has the outcome of the example, and is recorded in the current SizeJournal
(``journal.py``). Where code needs a plain number (``int``, ``range``, an index), it gets that of the example,
and the journal records that the symbol was specialized.

Canonical form: a polynomial over atoms. An atom is a Symbol, the Floor of a quotient that does
not come out even, or the Positive part of a size. ``a % b`` is ``a - b * (a // b)``, the
minimum of a and b ``a - max(a - b, 0)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Union
from weakref import WeakValueDictionary

import numpy as np

from tmconvert.ir.symbolic.atoms import Compound, key_of, product_of, sum_of
from tmconvert.ir.symbolic.journal import current_journal
from tmconvert.ir.tree import leaves_of, map_leaves

_DIMS: WeakValueDictionary[Any, Dim] = WeakValueDictionary()
LEAST = 2


@dataclass(frozen=True)
class Symbol:
    """A named size; with ``unit``, the size divided by a number of which it is a multiple.

    ``example`` is its value in the example: the size is ``example * unit``. A symbol that is ``from_data`` is
    a data-dependent size (``data_dependent.py``); its example is its upper bound. It is known to be at least
    ``lowest`` and at most ``most``.
    """

    name: str
    example: int
    unit: int = 1
    from_data: bool = False
    lowest: int = LEAST
    most: int | None = None

    @property
    def least(self) -> int:
        return 0 if self.from_data else self.lowest

    @property
    def parts(self) -> int:
        return 1

    @property
    def order(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return self.name if self.unit == 1 else f"{self.name}/{self.unit}"


@dataclass(frozen=True)
class Floor(Compound):
    """floor(numerator / denominator), where neither divides the other.

    One that ``is_float`` is computed in float64 (``rounded.py``), where rounding errors change it.
    """

    numerator: Size
    denominator: Size

    @property
    def is_never_negative(self) -> bool:
        return False

    @property
    def sizes(self) -> tuple[Size, ...]:
        return self.numerator, self.denominator

    @cached_property
    def text(self) -> str:
        from tmconvert.ir.symbolic.text import grouped

        return f"floor({grouped(self.numerator)}/{grouped(self.denominator)})"


@dataclass(frozen=True)
class Positive(Compound):
    """max(size, 0), for a size that may be negative or positive."""

    size: Dim

    @property
    def sizes(self) -> tuple[Size, ...]:
        return (self.size,)

    @cached_property
    def text(self) -> str:
        return f"max({self.size},0)"


Atom = Symbol | Floor | Positive
Monomial = tuple[Atom, ...]  # a product, in the order of names
Terms = dict[Monomial, int]
Size = Union[int, "Dim"]


class Dim:
    """An integer expression of at least one symbol."""

    __slots__ = ("__weakref__", "_hash", "_symbols", "terms")
    __array_ufunc__ = None  # NumPy's scalars leave arithmetic to the operators below
    terms: tuple[tuple[Monomial, int], ...]
    _hash: int
    _symbols: dict[str, Symbol] | None

    def __new__(cls, terms: tuple[tuple[Monomial, int], ...]) -> Dim:
        """Returns the expression of these terms: there is one, so that comparisons are of identities."""
        known = _DIMS.get(terms)
        if known is None:
            known = _DIMS[terms] = object.__new__(cls)
            known.terms, known._hash, known._symbols = terms, hash(terms), None
        return known

    def __reduce__(self) -> tuple[Any, ...]:
        return Dim, (self.terms,)

    def __deepcopy__(self, memo: object) -> Dim:
        return self

    # ---- arithmetic

    def __add__(self, other: object) -> Any:
        return self._with(other, lambda a, b: made_of(sum_of(a, b)), lambda a, b: a + b)

    def __sub__(self, other: object) -> Any:
        return self._with(other, lambda a, b: made_of(sum_of(a, b, -1)), lambda a, b: a - b)

    def __rsub__(self, other: object) -> Any:
        return self._with(other, lambda a, b: made_of(sum_of(b, a, -1)), lambda a, b: b - a)

    def __mul__(self, other: object) -> Any:
        return self._with(other, lambda a, b: made_of(product_of(a, b)), lambda a, b: a * b)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Dim:
        return Dim(tuple((monomial, -factor) for monomial, factor in self.terms))

    def __pos__(self) -> Dim:
        return self

    def __abs__(self) -> Dim:
        return -self if self < 0 else self

    def __pow__(self, exponent: int) -> Size:
        return math.prod([self] * exponent)

    def __floordiv__(self, other: object) -> Any:
        return self._with(other, lambda a, b: _quotient(made_of(a), made_of(b)), lambda a, b: a // b)

    def __rfloordiv__(self, other: object) -> Any:
        return self._with(other, lambda a, b: _quotient(made_of(b), made_of(a)), lambda a, b: b // a)

    def __mod__(self, other: object) -> Any:
        return self - (self // other) * other

    def __rmod__(self, other: object) -> Any:
        return other - (other // self) * self

    def __divmod__(self, other: object) -> Any:
        return self // other, self % other

    def __truediv__(self, other: Any) -> Any:
        return float(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / float(self)

    def __floor__(self) -> Dim:
        return self

    __ceil__ = __trunc__ = __round__ = __floor__

    def _with(self, other: object, exact: Callable[[Terms, Terms], Size], rounded: Callable[..., Any]) -> Any:
        if isinstance(other, (int, np.integer, Dim)):
            return exact(dict(self.terms), terms_of(other))
        if isinstance(other, (float, np.floating)):
            return rounded(float(self), float(other))
        return NotImplemented

    # ---- comparison

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (int, np.integer, Dim)):
            return NotImplemented
        if self is other:
            return True
        difference = self - other
        if not isinstance(difference, Dim):
            return bool(difference == 0)
        if self._hash == hash(other):
            return False
        possible = _signs(difference)
        if possible == {0} or 0 not in possible:
            return 0 in possible
        return current_journal().equal(difference)

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        return self != 0

    def __lt__(self, other: object) -> bool:
        return self._compared(other, math.ceil, {-1})

    def __le__(self, other: object) -> bool:
        return self._compared(other, math.floor, {-1, 0})

    def __gt__(self, other: object) -> bool:
        return self._compared(other, math.floor, {1})

    def __ge__(self, other: object) -> bool:
        return self._compared(other, math.ceil, {0, 1})

    def _compared(self, other: object, rounded: Callable[[float], int], wanted: set[int]) -> bool:
        if isinstance(other, (float, np.floating)):
            if not math.isfinite(other):
                return (-1 if other > 0 else 1) in wanted
            other = rounded(float(other))
        difference = self - other
        possible = _signs(difference)
        if possible <= wanted or not possible & wanted:
            return possible <= wanted
        return current_journal().holds(difference, wanted)

    # ---- numbers

    def __index__(self) -> int:
        return current_journal().number(self)

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    @property
    def example(self) -> int:
        """Returns the value for the sizes of the example."""
        value: int = self.at(lambda symbol: symbol.example)
        return value

    @property
    def symbols(self) -> dict[str, Symbol]:
        """Returns the symbols by name, in order of appearance."""
        if self._symbols is None:
            self._symbols = {
                name: symbol
                for monomial, _ in self.terms
                for atom in monomial
                for name, symbol in _symbols_of_atom(atom).items()
            }
        return dict(self._symbols)

    def at(self, value: Callable[[Symbol], Any], known: dict[int, Any] | None = None) -> Any:
        """Evaluates the expression with ``value(symbol)`` for each symbol.

        ``known`` has the values of parts, by their ids: a part that occurs often is evaluated once.
        """
        known = {} if known is None else known
        total: Size = 0
        for monomial, factor in self.terms:
            for atom in monomial:
                if id(atom) not in known:
                    known[id(atom)] = _atom_at(atom, value, known)
                factor = factor * known[id(atom)]
            total = total + factor
        return total

    def __str__(self) -> str:
        from tmconvert.ir.symbolic.text import printed

        return printed(self)

    __repr__ = __str__


# ---- what shape arithmetic asks


def example(value: object) -> Any:
    """Returns the value for the sizes of the example; plain values unchanged."""
    return value.example if isinstance(value, Dim) else value


def example_count(shape: Iterable[object]) -> int:
    """Returns the number of elements for the sizes of the example."""
    return math.prod(map(example, shape))


def is_symbolic(tree: object) -> bool:
    """Whether a leaf is a Dim."""
    if type(tree) is tuple and _PLAIN.issuperset(map(type, tree)):  # most are shapes
        return False
    return bool(leaves_of(Dim, tree))


_PLAIN = frozenset({int})


def symbols_of(tree: object) -> dict[str, Symbol]:
    """Returns the symbols of all leaves by name."""
    return {name: symbol for leaf in leaves_of(Dim, tree) for name, symbol in leaf.symbols.items()}


def substituted(tree: object, sizes: Mapping[str, Size]) -> Any:
    """Returns the tree with the symbols of these names replaced by sizes."""

    def part(symbol: Symbol) -> Size:
        return sizes[symbol.name] // symbol.unit if symbol.name in sizes else of(symbol)

    known: dict[int, Any] = {}

    def leaf(value: object) -> Any:
        return value.at(part, known) if isinstance(value, Dim) else value

    return map_leaves(leaf, tree)


def sole_symbol(size: object) -> Symbol | None:
    """Returns the symbol if ``size`` is a single symbol, else None."""
    if isinstance(size, Dim) and len(size.terms) == 1:
        monomial, factor = size.terms[0]
        if len(monomial) == 1 and isinstance(monomial[0], Symbol) and factor == monomial[0].unit:
            return monomial[0]
    return None


def same_size(first: Size, second: Size) -> bool:
    """Whether both are the same expression."""
    return terms_of(first) == terms_of(second)


def of(atom: Atom) -> Dim:
    """Returns the atom as a size."""
    return Dim((((atom,), 1),))


def dim(name: str, example: int, unit: int = 1, lowest: int = LEAST, most: int | None = None) -> Dim:
    """Returns a new symbol as a size, a multiple of ``unit``; bounds are in units."""
    size: Dim = of(Symbol(name, example // unit, unit, lowest=lowest, most=most)) * unit
    return size


# ---- canonical form


def terms_of(value: Any) -> Terms:
    return dict(value.terms) if isinstance(value, Dim) else {(): int(value)}


def made_of(terms: Terms) -> Size:
    kept = {monomial: factor for monomial, factor in terms.items() if factor}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Dim(tuple(sorted(kept.items(), key=lambda term: key_of(term[0]))))


def _quotient(numerator: Size, denominator: Size) -> Size:
    """Returns floor(numerator / denominator) in canonical form."""
    if isinstance(denominator, int):
        return _quotient_by_number(numerator, denominator)
    from tmconvert.ir.symbolic.factors import long_division, without_shared_symbols

    whole, rest = long_division(terms_of(numerator), terms_of(denominator))
    remainder = made_of(rest)
    if isinstance(remainder, int) and remainder == 0:
        return made_of(whole)
    if _is_between(remainder, denominator):
        return made_of(whole)
    if _is_between(remainder + denominator, denominator):
        return made_of(whole) - 1
    top, bottom = without_shared_symbols(remainder, denominator)
    if bottom is not denominator:
        return made_of(whole) + _quotient(top, bottom)
    return made_of(sum_of(whole, {(Floor(top, bottom),): 1}))


def _is_between(remainder: Size, denominator: Size) -> bool:
    """Whether 0 <= remainder < denominator for all sizes."""
    return _signs(remainder) <= {0, 1} and _signs(denominator - remainder) == {1}


def _quotient_by_number(numerator: Size, denominator: int) -> Size:
    if denominator == 0:
        raise ZeroDivisionError("a size is divided by zero")
    if denominator < 0:
        numerator, denominator = -numerator, -denominator
    if isinstance(numerator, int):
        return numerator // denominator
    whole = {
        monomial: factor // denominator for monomial, factor in numerator.terms if factor % denominator == 0
    }
    rest = {monomial: factor for monomial, factor in numerator.terms if factor % denominator}
    open_ = [monomial for monomial in rest if monomial]
    if open_ and rest[open_[0]] < 0:  # floor(-a / d) = -floor((a + d - 1) / d): one form for rounding up
        flipped = sum_of({(): denominator - 1}, rest, -1)
        return made_of(sum_of(whole, terms_of(_quotient_by_number(made_of(flipped), denominator)), -1))
    for monomial, factor in rest.items():
        whole[monomial] = whole.get(monomial, 0) + factor // denominator
    rest = {monomial: factor % denominator for monomial, factor in rest.items()}
    if not open_:
        return made_of(whole)
    shared = math.gcd(denominator, *(rest[monomial] for monomial in open_))
    constant = rest.pop((), 0)
    rest = {monomial: factor // shared for monomial, factor in rest.items()}
    return made_of(sum_of(whole, {(_floor(rest, constant // shared, denominator // shared),): 1}))


def _floor(terms: Terms, constant: int, denominator: int) -> Floor:
    """Returns the atom; nested quotients are merged."""
    (monomial, factor), *others = terms.items()
    inner = monomial[0] if len(monomial) == 1 else None
    divisor = inner.denominator if isinstance(inner, Floor) and not inner.is_float else None
    if not others and factor == 1 and isinstance(inner, Floor) and isinstance(divisor, int):
        return Floor(inner.numerator + constant * divisor, denominator * divisor)
    numerator = made_of({**terms, (): constant})
    assert isinstance(numerator, Dim)
    return Floor(numerator, denominator)


def _signs(value: Size) -> set[int]:
    from tmconvert.ir.symbolic.signs import signs

    return signs(value)


# ---- walking


def _symbols_of_atom(atom: Atom) -> dict[str, Symbol]:
    if isinstance(atom, Symbol):
        return {atom.name: atom}
    return symbols_of(atom.sizes)


def _atom_at(atom: Atom, value: Callable[[Symbol], Size], known: dict[int, Any]) -> Any:
    if isinstance(atom, Symbol):
        return value(atom)
    if isinstance(atom, Positive):
        from tmconvert.ir.symbolic.clamps import positive

        size = atom.size.at(value, known)
        return np.maximum(size, 0) if isinstance(size, np.ndarray) else positive(size)
    if atom.is_float:
        return atom.at(value, known)  # type: ignore[attr-defined]
    numerator, denominator = (
        part.at(value, known) if isinstance(part, Dim) else part
        for part in (atom.numerator, atom.denominator)
    )
    return numerator // denominator
