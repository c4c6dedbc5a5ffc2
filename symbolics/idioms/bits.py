"""Bits of int64 by arithmetic: bit i, at its value, is x mod 2 ** (i + 1) - x mod 2 ** i."""

from __future__ import annotations

import numpy as np

from tmconvert.symbolics.idioms.formulas import Term

MOST = 62  # 2 ** 62 is the largest power in int64


def masked(x: Term, mask: int) -> Term:
    """Returns the bits of int64 ``x`` that are set in a constant, one term a run of bits."""
    ones = [mask >> i & 1 for i in range(MOST + 1)]
    total = x if mask < 0 else None
    is_start = True
    for i in range(MOST + 1):  # runs of ones start and end where two bits differ
        if ones[i] == (ones[i - 1] if i else 0):
            continue
        if i:
            rest = x.remainder(1 << i)
            signed = -rest if is_start else rest
            total = signed if total is None else total + signed
        is_start = not is_start
    return x * 0 if total is None else total


def bits(x: Term, count: int) -> tuple[list[Term], Term, Term]:
    """Returns the lower bits at their values, along new last axes, the bit after them, and the sign.

    An axis has half of the bits, since ONNX Runtime sums int64 in float64.
    """
    g = x.g
    column = Term(g, g.call("aten::reshape", x.value, [*x.type.shape, 1]))
    low = []
    for first, end in ((0, count // 2), (count // 2, count)):
        powers = 1 << np.arange(first, end + 1)
        rests = [column.remainder(Term(g, g.constant(part))) for part in (powers[1:], powers[:-1])]
        low.append(rests[0] - rests[1])
    sign = (x < 0).to(np.int64) * (-(1 << 63) if count == MOST else -(1 << count))
    return low, x - x.remainder(1 << count) - sign, sign
