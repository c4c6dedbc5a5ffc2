"""Raw operators (``Apply`` in MegEngine)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.emitter import Emitter
from .table import Table
from .values import axis_of

FUNCTIONS = Table("opdef.")

NO_AXIS = 7  # MegEngine's marker for "the shape of all axes"


@FUNCTIONS.add("GetVarShape")
def get_var_shape(g: Emitter, inp: Any, axis: int = NO_AXIS, **attributes: Any) -> Any:
    """The shape as an int32 vector; with ``axis``, a vector of that one extent."""
    shape = g.type(inp).shape
    if axis != NO_AXIS:
        shape = (shape[axis_of(g, inp, axis)],)
    return g.constant(list(shape), np.int32)
