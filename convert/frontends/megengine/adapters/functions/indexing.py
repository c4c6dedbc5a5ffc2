"""``x[...]`` and ``x[...] = value`` in MegEngine: NumPy's rules with 32-bit integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.values import is_tensor
from tmconvert.frontends.shared import indexing
from tmconvert.ir.emitter import Emitter


def getitem(g, x, index):
    return indexing.getitem(g, x, _checked(indexing.unlisted(index)))


def setitem(g, x, index, value):
    """``x`` after ``x[index] = value``. The index ``...`` alone replaces the tensor by the value."""
    return _tensor(g, value) if index is Ellipsis else written(g, x, index, value)


def written(g: Emitter, x, index, value, *, adds: bool = False) -> Any:
    return indexing.written(g, x, _checked(index), _tensor(g, value), adds=adds)


def _checked(index):
    if any(item is False for item in (index if isinstance(index, tuple) else (index,))):
        raise Refusal(
            "False is not supported as an index", "use integers, slices and integer tensors as indices"
        )
    return index


def _tensor(g, value):
    """Returns ``value`` as a tensor."""
    if is_tensor(value) and indexing.belongs(g, value):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise Refusal(f"{value!r} is neither a tensor nor a number")
    narrow = {"float64": np.float32, "int64": np.int32}
    return g.constant(array, narrow.get(array.dtype.name, array.dtype))
