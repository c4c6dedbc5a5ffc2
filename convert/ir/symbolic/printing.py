"""The text of sizes, which ``text.py`` parses."""

from __future__ import annotations

import math
from dataclasses import replace

from tmconvert.ir.symbolic.clamps import as_minimum
from tmconvert.ir.symbolic.dims import Dim, Floor, Monomial, Size, Symbol, of, same_size


def printed(size: Dim) -> str:
    """Returns the text of a size; a first term below zero would read as an operator.

    >>> printed(2 - dim("n", 4) + dim("h", 8))
    'h+2-n'
    """
    clamped = as_minimum(size)
    if clamped is not None:
        return f"min({clamped[0]},{clamped[1]})"
    terms = sorted(size.terms, key=lambda term: (term[1] < 0, -len(term[0]), tuple(map(str, term[0]))))
    return "".join(_term(monomial, factor) for monomial, factor in terms).removeprefix("+")


def as_remainder(size: Size) -> str | None:
    """Returns ``height % 8`` for height - 8 floor(height / 8); None for other sizes."""
    for monomial, _ in size.terms if isinstance(size, Dim) else ():
        for atom in monomial:
            if (
                isinstance(atom, Floor)
                and not atom.is_float
                and same_size(size, atom.numerator - of(atom) * atom.denominator)
            ):
                return f"{grouped(atom.numerator)} % {grouped(atom.denominator)}"
    return None


def _term(monomial: Monomial, factor: int) -> str:
    """Prints a term with its sign. A symbol with units takes them from the factor: 16 (height/32) is
    height/2.
    """
    sign, factor, words = "-" if factor < 0 else "+", abs(factor), []
    for atom in monomial:
        if isinstance(atom, Symbol):
            shared = math.gcd(factor, atom.unit)
            factor, atom = factor // shared, replace(atom, unit=atom.unit // shared)
        words.append(str(atom))
    number = [str(factor)] if factor != 1 or not words else []
    return sign + "*".join(number + words)


def grouped(value: Size) -> str:
    """Returns the text of an operand, in parentheses where it needs them."""
    text = str(value)
    # height/32 is a part of a size, not a quotient
    has_unit = isinstance(value, Dim) and any(symbol.unit > 1 for symbol in value.symbols.values())
    return text if (text.isidentifier() and not has_unit) or text.isdigit() else f"({text})"
