"""Shared by decompositions of normalizations."""

from __future__ import annotations

from typing import Any

import numpy as np


def precise(g: Any, x: Any) -> Any:
    """Casts float16 ``x`` to float32, since squares above 255 overflow."""
    return g.call("aten::to", x, dtype="float32") if g.type(x).dtype == np.float16 else x


def standardized(g: Any, x: Any, axes: list[int], eps: float) -> Any:
    """Normalizes to mean 0 and variance 1 over ``axes``."""
    centred = g.call("aten::sub", x, g.call("aten::mean", x, axes, True))
    return over_root(g, centred, centred, axes, eps)


def over_root(g: Any, x: Any, of: Any, axes: list[int], eps: float) -> Any:
    squares = g.call("aten::mean", g.call("aten::mul", of, of), axes, True)
    root = g.call("aten::sqrt", g.call("aten::add", squares, g.constant(eps, g.type(x).dtype)))
    return g.call("aten::div", x, root)


def scaled(g: Any, x: Any, weight: Any, bias: Any, dtype: np.dtype) -> Any:
    """x * weight + bias as ``dtype``."""
    for op, parameter in (("aten::mul", weight), ("aten::add", bias)):
        if parameter is not None:
            x = g.call(op, x, precise(g, parameter))
    return x if g.type(x).dtype == dtype else g.call("aten::to", x, dtype=dtype.name)
