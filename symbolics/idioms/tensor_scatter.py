"""ONNX, opset 24: TensorScatter writes neighbouring slices, as steps of decoding do to their caches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.symbolic.signs import may_be_zero


def slices_written(g: Any, x: Any, axis: int, index: Any, source: Any) -> Any | None:
    """Returns ``x`` with the slices of ``source`` at ``index``; None where they may not be neighbours.

    TensorScatter has one position for each element of the first axis, along which it does not write.
    """
    if axis == 0 or any(map(may_be_zero, source.shape)):
        return None
    start = _start(g, index, x.shape[axis])
    if start is None:
        return None
    if start.data is not None and not is_symbolic(x.shape[0]):
        start = g.const(np.repeat(start.data, x.shape[0]))
    elif x.shape[0] != 1:
        start = g.op("Expand", start, g.ints(x.shape[:1]), shape=x.shape[:1])
    return g.op("TensorScatter", x, source, start, axis=axis, shape=x.shape)


def _start(g: Any, index: Any, extent: Any) -> Any | None:
    """int64 [1]: the first index, counted from the front; None where more than one is not known."""
    if index.data is not None and not is_symbolic(extent):
        places = index.data.astype(np.int64) % extent
        return g.const(places[:1]) if (np.diff(places) == 1).all() else None
    if index.shape[0] != 1:
        return None
    return g.op("Mod", g.cast(index, "int64"), g.ints([extent]), shape=(1,))
