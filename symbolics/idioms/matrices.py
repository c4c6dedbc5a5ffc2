"""Building blocks of matrix decompositions: one step per column, in a loop or unrolled.

A step is a function of Terms. Its first, ``k``, is the number of the step, int32 of one element, by which
``line`` reads a row or a column and ``numbers`` tells which elements are before and after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tmconvert.ir.emitter import empty_body
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.indices import numbers as counted_on

# so many steps are cheaper as operators of the graph than as a loop, and need no loops of the target
WRITTEN_OUT = 4

Step = Callable[..., Sequence[Term]]


def repeated(
    g: Any, count: int, step: Step, state: Sequence[Term], around: Sequence[Term] = ()
) -> list[Term]:
    """Iterates ``state = step(k, *state, *around)`` for all k below ``count``."""
    if isinstance(count, int) and count <= WRITTEN_OUT:
        for k in range(count):
            state = step(Term(g, g.constant([k], np.int32)), *state, *around)
        return list(state)

    def counted(k: Term, *values: Term) -> list[Term]:
        *others, end = values
        after = k + 1
        return [(after < end).reshape(shape=[]), after, *step(k, *others)]

    first, end = (Term(g, g.constant([number], np.int32)) for number in (0, count))
    return looped(g, Term(g, g.constant(True, bool)), counted, [first, *state], [*around, end])[1:]


def looped(
    g: Any, goes_on: Term, step: Step, state: Sequence[Term], around: Sequence[Term] = ()
) -> list[Term]:
    """Iterates ``goes_on, *state = step(*state, *around)`` while ``goes_on``."""
    inputs = [*state, *around]
    inner, formal = empty_body("step", [term.type for term in inputs], g.catalogue)
    after = step(*(Term(inner, node) for node in formal))
    inner.graph.set_result(tuple(term.value for term in after))
    values = [term.value for term in inputs]
    results = g.call("tm::loop", goes_on.value, values, len(state), inner.graph)
    return [Term(g, value) for value in (results if len(state) > 1 else [results])]


def numbers(x: Term, axis: int) -> Term:
    """Returns 0, 1, ... along ``axis``, -1 or -2, of matrices, for comparison with a step's index."""
    return _counted(x.g, x.type.shape[axis], axis)


def _counted(g: Any, count: int, axis: int) -> Term:
    along = Term(g, counted_on(g, 0, count)).to(np.int32)
    return along if axis == -1 else along.reshape(shape=[count, 1])


def line(x: Term, axis: int, k: Term) -> Term:
    """Selects row (``axis`` -2) or column (-1) ``k`` of matrices, and keeps the axis."""
    return Term(x.g, x.g.call("aten::index_select", x.value, axis, k.value))


def chosen(x: Term, axis: int, place: Term) -> Term:
    """Selects row (``axis`` -2) or column (-1) ``place`` of each matrix; zeros where it is out of range."""
    return total(numbers(x, axis).eq(place).where(x, 0), axis)


def exchanged(x: Term, axis: int, first: Term, second: Term) -> Term:
    """Exchanges two rows or columns of each matrix."""
    count = numbers(x, axis)
    others = count.eq(second).where(chosen(x, axis, first), x)
    return count.eq(first).where(chosen(x, axis, second), others)


def total(x: Term, axis: int) -> Term:
    return x.sum(dim=[axis], keepdim=True)


def part(x: Term, axis: int, end: int) -> Term:
    """Selects the first rows or columns."""
    return x if x.type.shape[axis] == end else x.slice(dim=axis, start=0, end=end)


def transposed(x: Term) -> Term:
    """Transposes the last two axes."""
    rank = x.type.rank
    return x.permute(dims=[*range(rank - 2), rank - 1, rank - 2])


def spread(x: Term, batch: Sequence[Any]) -> Term:
    """Broadcasts matrices to a batch."""
    shape = [*batch, *x.type.shape[-2:]]
    return x if list(x.type.shape) == shape else x.expand(size=shape)


def full(g: Any, shape: Sequence[Any], value: Any, dtype: Any) -> Term:
    return Term(g, g.constant(value, dtype)).expand(size=list(shape))


def unit(g: Any, batch: Sequence[Any], rows: int, columns: int, dtype: Any) -> Term:
    """Returns identity matrices."""
    return spread(_counted(g, rows, -2).eq(_counted(g, columns, -1)).to(dtype), batch)
