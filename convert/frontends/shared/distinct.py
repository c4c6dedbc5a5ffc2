"""Distinct elements in the order in which they occur first."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.frontends.shared.arguments import cast
from tmconvert.ir.emitter import Emitter


def first_places(g: Emitter, inverse: object, count: object) -> Any:
    """Returns the first place of each number in ``inverse``; TFLite has such minima of int32 alone."""
    total = g.type(inverse).size
    numbers = cast(g, g.call("aten::arange", 0, total, 1), np.int32)
    start = g.call("aten::expand", cast(g, g.constant(total, np.int64), np.int32), [count])
    return cast(g, g.call("aten::scatter_reduce", start, 0, inverse, numbers, "amin"), np.int64)


def order_of(g: Emitter, x: object) -> Any:
    """Returns the int64 indices that sort a vector."""
    return cast(g, g.call("aten::sort", x, 0, False, False)[1], np.int64)
