"""Average pooling of images with dynamic sizes, whose last windows may extend beyond them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.symbolics.idioms.formulas import Term

Ints = Sequence[Any]


def is_dynamic(extents: Ints, kernel: Ints, steps: Ints, around: Ints) -> bool:
    """Whether ``averaged_beyond`` serves these windows: none of them starts after the end."""
    rows = zip(kernel, steps, around, strict=True)
    return is_symbolic(tuple(extents)) and all(step + margin <= size for size, step, margin in rows)


def averaged_beyond(
    g: Emitter, x, kernel: Ints, steps: Ints, around: Ints, count_include_pad: bool, divisor: int | None
) -> Any:
    """Average pooling with ``ceil_mode``: pads to whole windows, then divides by the elements of each window.

    ``divisor`` divides the sum of a window in place of the number of its elements.
    """
    axes = len(kernel)
    rows = list(zip(g.type(x).shape[-axes:], kernel, steps, around, strict=True))
    counts = [(extent + 2 * margin - size + step - 1) // step + 1 for extent, size, step, margin in rows]
    pairs = [
        (margin, (count - 1) * step + size - extent - margin)
        for (extent, size, step, margin), count in zip(rows, counts, strict=True)
    ]
    x = g.call("aten::pad", x, [0, 0, 0, 0, *(amount for pair in pairs for amount in pair)], "constant", 0.0)
    pooled = g.call(f"aten::avg_pool{axes}d", x, list(kernel), list(steps), [0] * axes, False, True, divisor)
    if divisor is not None:
        return pooled
    result = Term(g, pooled)
    for number, ((extent, size, step, margin), count) in enumerate(zip(rows, counts, strict=True)):
        end = extent + (2 if count_include_pad else 1) * margin
        start = Term(g, g.call("aten::arange", 0, count)) * step
        limit = Term(g, g.constant(end, np.int64))
        first = start if count_include_pad else start.call("maximum", margin)
        elements = ((start + size).call("minimum", limit) - first).to(result.dtype)
        factor = g.call("aten::reshape", (size / elements).value, [count, *[1] * (axes - 1 - number)])
        result = result * Term(g, factor)
    return result.value
