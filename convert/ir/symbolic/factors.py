"""Common factors of the terms of a size, and units of its symbols."""

from __future__ import annotations

from collections import Counter

from tmconvert.ir.symbolic.dims import Dim, Monomial, Size, Symbol, of


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
    rest = Dim(tuple(sorted(terms.items(), key=lambda term: tuple(map(str, term[0])))))
    return rest if rest.example == 0 and size.example == 0 else size


def in_elements(size: Size) -> Size:
    """Returns the size in symbols without units and bounds, as before a conversion learned of them."""
    if not isinstance(size, Dim):
        return size
    made: Size = size.at(lambda each: of(Symbol(each.name, each.example * each.unit)) // each.unit)
    return made
