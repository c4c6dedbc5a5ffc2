"""Division of sizes, common factors of their terms, and units of their symbols."""

from __future__ import annotations

from collections import Counter

from tmconvert.ir.symbolic.atoms import key_of, product_of, sum_of
from tmconvert.ir.symbolic.dims import Dim, Monomial, Size, Symbol, Terms, made_of, of, terms_of


def without_common_factor(size: Dim) -> Dim:
    """Returns ``size`` without the atoms that are factors of all of its terms.

    What is left is zero in the example if ``size`` is, else ``size`` is returned; where it is zero, so is
    ``size``.

    >>> batch, height = dim("batch", 2), dim("height", 64)
    >>> without_common_factor(batch * height - batch * 64)
    height-64
    """
    common = Counter(size.terms[0][0])
    for monomial, _ in size.terms[1:]:
        common &= Counter(monomial)
    if not common:
        return size
    terms: dict[Monomial, int] = {}
    for monomial, factor in size.terms:
        left = Counter(monomial) - common
        terms[tuple(atom for atom in monomial if left[atom] > 0 and not left.subtract({atom: 1}))] = factor
    if len(terms) < 2:
        return size
    rest = Dim(tuple(sorted(terms.items(), key=lambda term: key_of(term[0]))))
    return rest if rest.example == 0 and size.example == 0 else size


def in_elements(size: Size) -> Size:
    """Returns the size in symbols without units and bounds, as before a conversion learned of them."""
    if not isinstance(size, Dim):
        return size
    made: Size = size.at(lambda each: of(Symbol(each.name, each.example * each.unit)) // each.unit)
    return made


def without_shared_symbols(top: Size, bottom: Size) -> tuple[Size, Size]:
    """Cancels the symbols that are factors of all terms of both."""
    monomials = [*terms_of(top), *terms_of(bottom)]
    for atom in monomials[0]:
        if isinstance(atom, Symbol) and all(atom in monomial for monomial in monomials):
            shared = of(atom)
            return without_shared_symbols(
                *(made_of(long_division(terms_of(x), terms_of(shared))[0]) for x in (top, bottom))
            )
    return top, bottom


def exact_quotient(value: Dim, symbol: Symbol) -> Size:
    """Divides each term of ``value`` by one factor ``symbol``."""
    return made_of(long_division(terms_of(value), {(symbol,): 1})[0])


def long_division(numerator: Terms, denominator: Terms) -> tuple[Terms, Terms]:
    """(quotient, remainder) as polynomials with integer factors, by the denominator's leading term."""
    leading = max(denominator, key=lambda monomial: (len(monomial), key_of(monomial)))
    quotient: Terms = {}
    rest, kept = dict(numerator), Terms()
    while rest:
        monomial = max(rest, key=lambda each: (len(each), key_of(each)))
        factor, part = rest[monomial], _without(monomial, leading)
        if part is None or factor % denominator[leading]:
            kept[monomial] = rest.pop(monomial)
            continue
        step = {part: factor // denominator[leading]}
        quotient = sum_of(quotient, step)
        rest = {key: value for key, value in sum_of(rest, product_of(step, denominator), -1).items() if value}
    return quotient, kept


def _without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """Divides a product by the factors ``divisor``; None if it does not have all of them."""
    left = list(monomial)
    for atom in divisor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)
