"""The parts of formulas of sizes: how they are kept, ordered, added and multiplied."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from tmconvert.ir.symbolic.dims import Atom, Monomial, Size, Terms

_ATOMS: WeakValueDictionary[Any, Any] = WeakValueDictionary()
MOST_PARTS = 1000  # of an atom that is sorted and printed by its text, which is readable up to here


class Compound:
    """An atom that is made of ``sizes``. Atoms are sorted by ``order``: the text, or a digest of very many
    parts, whose text grows without bound where formulas share parts.
    """

    is_float = False

    def __new__(cls, *parts: object, **_: object) -> Any:
        """Returns the atom of these parts: there is one, so that equal formulas share their parts."""
        known = _ATOMS.get((cls, parts)) if parts else None
        if known is None:
            known = object.__new__(cls)
            if parts:
                _ATOMS[cls, parts] = known
        return known

    @property
    def sizes(self) -> tuple[Size, ...]:
        raise NotImplementedError

    @cached_property
    def text(self) -> str:
        raise NotImplementedError

    @cached_property
    def parts(self) -> int:
        atoms = [
            a for size in self.sizes if not isinstance(size, int) for term, _ in size.terms for a in term
        ]
        return 1 + sum(atom.parts for atom in atoms)

    @cached_property
    def order(self) -> str:
        if self.parts <= MOST_PARTS or self.is_float:
            return self.text
        from hashlib import sha256

        keys = [
            size if isinstance(size, int) else [(*key_of(term), factor) for term, factor in size.terms]
            for size in self.sizes
        ]
        return sha256(f"{type(self).__name__}{keys}".encode()).hexdigest()

    def __str__(self) -> str:
        return self.text if self.parts <= MOST_PARTS or self.is_float else f"size_{self.order[:12]}"


def order_of(atom: Atom) -> str:
    """Returns what atoms are sorted by."""
    return atom.order


def key_of(monomial: Monomial) -> tuple[str, ...]:
    """Returns what terms are sorted by."""
    return tuple(map(order_of, monomial))


def sum_of(first: Terms, second: Terms, sign: int = 1) -> Terms:
    result = dict(first)
    for monomial, factor in second.items():
        result[monomial] = result.get(monomial, 0) + sign * factor
    return result


def product_of(first: Terms, second: Terms) -> Terms:
    result: Terms = {}
    for left, a in first.items():
        for right, b in second.items():
            monomial = tuple(sorted((*left, *right), key=order_of))
            result[monomial] = result.get(monomial, 0) + a * b
    return result
