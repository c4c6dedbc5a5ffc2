"""Estimates how large the tensors of a run at another size are.

A run at a size that the code of a module names may need far more memory than the example: scores of attention
have as many elements as the square of the number of tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from tmconvert.frontends.torch.tracing.recording.tape import Tape

MOST_ELEMENTS = 1 << 22  # of a tensor, in a run that only looks for differences


def results_fit(tape: Tape, size: int, other: Tape, second: int) -> Callable[[int], bool]:
    """Returns whether each result of a run at a size has at most ``MOST_ELEMENTS``.

    ``tape`` and ``other`` are runs at ``size`` and at ``second`` with the same calls. Each axis is assumed to
    be linear in the size.
    """
    pairs = {
        (tuple(map(int, one.shape)), tuple(map(int, two.shape)))
        for first, last in zip(tape.top.records(), other.top.records(), strict=False)
        for one, two in zip(first.results(), last.results(), strict=False)
        if one.shape and two.shape and one.shape != two.shape and len(one.shape) == len(two.shape)
    }

    def fit(number: int) -> bool:
        steps = Fraction(number - size, second - size)
        return all(
            math.prod(start + (end - start) * steps for start, end in zip(*shapes, strict=True))
            <= MOST_ELEMENTS
            for shapes in pairs
        )

    return fit
