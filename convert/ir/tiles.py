"""Copies arrays whose elements lie in another order in memory."""

from __future__ import annotations

import numpy as np

# Elements of the last axis that are copied at a time, of all rows: the lines of the processor's cache that
# these touch are still there for the next row. NumPy copies a row of a transposed matrix as a whole, and
# reads each line as often as it has elements: a sixth of the speed.
_TILE = 64
_CACHE_LINE = 64  # bytes


def copy_elements(out: np.ndarray, source: np.ndarray) -> None:
    """Copies ``source`` to ``out``, a contiguous array of the same shape; the dtype may be wider.

    >>> out = np.empty((3, 2), np.float32)
    >>> copy_elements(out, np.arange(6, dtype=np.float32).reshape(2, 3).T)
    >>> out[:, 1].tolist()
    [3.0, 4.0, 5.0]
    """
    is_far = source.ndim > 1 and abs(source.strides[-1]) >= _CACHE_LINE
    if not is_far or source.shape[-1] <= _TILE:
        np.copyto(out, source, casting="same_kind")
        return
    for first in range(0, source.shape[-1], _TILE):
        part = np.s_[..., first : first + _TILE]
        np.copyto(out[part], source[part], casting="same_kind")
