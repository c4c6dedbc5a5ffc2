"""Fourier transforms of dynamic sizes: matrices of cosines and sines that the graph computes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.clamps import minimum
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.results import normalized_axis


def _factor(g: Emitter, n: Any, norm: str, inverse: bool, dtype: np.dtype) -> Term | None:
    """Returns what a transform is multiplied by; None for 1."""
    count = Term(g, g.constant(n, dtype))
    if norm == "ortho":
        return 1 / count.call("sqrt")
    return 1 / count if inverse == (norm == "backward") else None


def _angles(g: Emitter, rows: Any, columns: Any, n: Any, dtype: np.dtype) -> tuple[Term, Term]:
    """Cosines and sines of 2 pi i j / n, with i j reduced modulo n first; their zeros are exact."""
    first = Term(g, g.call("aten::reshape", g.call("aten::arange", 0, rows), [rows, 1]))
    steps = (first * Term(g, g.call("aten::arange", 0, columns))).call("remainder", n)
    halves = (steps * 2).to(dtype) / Term(g, g.constant(n, dtype))
    return _sine_of_halves(halves + 0.5), _sine_of_halves(halves)


def _sine_of_halves(halves: Term) -> Term:
    """The sine of pi times a number from 0 to 2.5, exactly 0 where that is whole."""
    whole = halves.call("round")
    return ((halves - whole) * math.pi).call("sin") * (1 - whole.eq(1).to(whole.dtype) * 2)


def _multiplied(g: Emitter, parts: Sequence[Any], matrices: Sequence[Sequence[Term]], dim: int) -> list[Any]:
    """Multiplies each part along ``dim`` by its row of matrices: one sum per column."""
    rank = g.type(parts[0]).rank
    axis = normalized_axis(dim, rank)
    order = [*(i for i in range(rank) if i != axis), axis]
    back = list(np.argsort(order).tolist())
    rows = [Term(g, g.call("aten::permute", part, order)) for part in parts]
    results = []
    for column in zip(*matrices, strict=True):
        products = [row.call("matmul", matrix) for row, matrix in zip(rows, column, strict=True)]
        total = products[0] if len(products) == 1 else products[0] + products[1]
        results.append(g.call("aten::permute", total.value, back))
    return results


def _cropped(g: Emitter, parts: Sequence[Any], count: Any, dim: int) -> tuple[list[Any], Any]:
    """Returns the first ``count`` elements of an axis, or all if there are fewer, and their number."""
    extent = g.type(parts[0]).shape[normalized_axis(dim, g.type(parts[0]).rank)]
    used = minimum(count, extent)
    if used == extent:
        return list(parts), used
    return [g.call("aten::slice", part, dim, 0, used) for part in parts], used


def transformed(
    g: Emitter, real: Any, imag: Any, n: Any, dim: int, norm: str, inverse: bool, onesided: bool
) -> list[Any]:
    """The transform of ``n`` elements of an axis: real and imaginary part."""
    dtype = g.type(real).dtype
    parts, used = _cropped(g, [real] if imag is None else [real, imag], n, dim)
    cosines, sines = _angles(g, used, n // 2 + 1 if onesided else n, n, dtype)
    factor = _factor(g, n, norm, inverse, dtype)
    if factor is not None:
        cosines, sines = cosines * factor, sines * factor
    sines = sines if inverse else -sines
    return _multiplied(g, parts, [[cosines, sines], [-sines, cosines]][: len(parts)], dim)


def real_signal(g: Emitter, real: Any, imag: Any, n: Any, dim: int, norm: str) -> Any:
    """The real signal of ``n`` elements of the non-negative frequencies along an axis."""
    dtype = g.type(real).dtype
    parts, used = _cropped(g, [real, imag], n // 2 + 1, dim)
    cosines, sines = _angles(g, used, n, n, dtype)
    index = Term(g, g.call("aten::reshape", g.call("aten::arange", 0, used), [used, 1]))
    weights = (index.eq(0) | (index * 2).eq(n)).to(dtype) * -1 + 2  # 1 for those that are their own mirror
    factor = _factor(g, n, norm, True, dtype)
    weights = weights if factor is None else weights * factor
    return _multiplied(g, parts, [[cosines * weights], [-(sines * weights)]], dim)[0]


def frequencies(g: Emitter, n: Any, spacing: float, *, onesided: bool) -> Any:
    """The frequencies of a transform of ``n`` elements in float32, as torch.fft.fftfreq and rfftfreq."""
    index = Term(g, g.call("aten::arange", 0, n // 2 + 1 if onesided else n))
    if not onesided:
        index = index - (index > (n - 1) // 2).to(np.int64) * n
    return (index.to(np.float32) / (Term(g, g.constant(n, np.float32)) * spacing)).value
