"""Sizes at which rounding errors of floats show: ``int(n * (32 / n))`` is 31 for 49, and else mostly 32."""

from __future__ import annotations

import operator
from typing import Any

from tmconvert.frontends.torch.tracing.recording.tape import Tape
from tmconvert.frontends.torch.tracing.sizes.integers import TRACED, TracedFloat, untraced
from tmconvert.ir.symbolic.dims import Symbol, of
from tmconvert.ir.symbolic.rounded import ROUNDINGS, Steps, differing_sizes, rounded

LARGEST = 4096  # a run at a larger size would take long
FEW = 2


def differing_conversions(tape: Tape, number: int) -> list[int]:
    """Returns sizes at which rounding errors of floats change what the module converts to a plain number.

    Sizes of ``number`` are taken for the one that changes.
    """
    open_size = of(Symbol("n", number))

    def followed(value: Any) -> Any:
        if not isinstance(value, TRACED):
            return value
        kind, *operands = value.origin
        if kind == "size":
            return open_size if untraced(value) == number else untraced(value)
        values = list(map(followed, operands))
        if isinstance(value, TracedFloat):
            return Steps(kind, *values)
        return rounded(kind, *values) if kind in ROUNDINGS else getattr(operator, kind)(*values)

    found: dict[int, None] = {}
    for size in tape.conversions:
        kind, *operands = size.origin
        if kind not in ROUNDINGS or number < 2:
            continue
        try:
            sizes = differing_sizes(kind, followed(operands[0]))
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
        ):  # other functions of sizes
            continue
        found |= dict.fromkeys(each["n"] for each in sizes if each["n"] <= LARGEST)
    return list(found)[:FEW]
