"""The error for ranges of sizes beyond which the source computes something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tmconvert.errors import UnsupportedError
from tmconvert.errors.source import Source
from tmconvert.ir.symbolic.dims import Symbol
from tmconvert.ir.symbolic.journal import MAX_COUNTED, Guard, summarized

MOST_SHOWN = 8  # further conditions in an error


def refused_ranges(
    broken: Sequence[tuple[Guard, Mapping[str, int]]], symbols: Mapping[str, Symbol]
) -> UnsupportedError:
    """Returns the error TM2030 for guards, each with sizes beyond it where the source runs."""
    guard, sizes = max(broken, key=lambda each: _excluded(each[0], symbols))
    (first,) = summarized([guard])
    names = [name for name in guard.difference.symbols if name in symbols]
    at = ", ".join(f"{name} = {sizes[name]}" for name in names)
    fixed = ", ".join(f"{name} at {symbols[name].example * symbols[name].unit}" for name in names)
    also = [("also", text) for text in summarized([each for each, _ in broken]) if text != first]
    also[MOST_SHOWN:] = [("also", f"{len(also) - MOST_SHOWN} more conditions")] * (len(also) > MOST_SHOWN)
    return UnsupportedError(
        "TM2030",
        f"the file would be valid for {first} only: the model computes something else at {at}",
        source=guard.source if isinstance(guard.source, Source) else None,
        notes=[
            *also,
            (
                "help",
                "accept that with --accept-range (accept_range=True), which writes the range into the "
                f"file; leaving the size out of --dynamic fixes {fixed}",
            ),
        ],
    )


def _excluded(guard: Guard, symbols: Mapping[str, Symbol]) -> int:
    """Returns how many of the tried sizes do not satisfy a guard: the strictest one is shown first."""
    sizes = {name: symbol.example * symbol.unit for name, symbol in symbols.items()}
    names, numbers = [name for name in guard.difference.symbols if name in sizes], np.arange(1, MAX_COUNTED)
    return sum(int(guard.broken_at({**sizes, name: numbers}).sum()) for name in names)
