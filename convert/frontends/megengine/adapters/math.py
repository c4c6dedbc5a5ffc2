"""megengine.functional.math, and the reductions of Tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.emitter import Emitter
from .table import Table
from .values import axes_of, axis_of, cast, reshaped

FUNCTIONS = Table("megengine.functional.math.")
METHODS = Table()

REDUCTIONS = {"mean": "mean", "sum": "sum", "max": "amax", "min": "amin"}


def _reduction(op: str) -> Callable[..., Any]:
    def adapter(g: Emitter, inp: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if op == "mean":  # of float16, too
            inp = cast(g, inp, np.float32)
        return g.call(f"aten::{op}", inp, axes_of(g, inp, axis), bool(keepdims))

    return adapter


def _arg_reduction(op: str) -> Callable[..., Any]:
    def adapter(g: Emitter, inp: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if axis is None:
            return g.call(f"aten::{op}", reshaped(g, inp, [-1]), 0, False)
        return g.call(f"aten::{op}", inp, axis_of(g, inp, axis), bool(keepdims))

    return adapter


for _name, _op in REDUCTIONS.items():
    METHODS.add(_name)(FUNCTIONS.add(_name)(_reduction(_op)))
for _name in ("argmax", "argmin"):
    FUNCTIONS.add(_name)(_arg_reduction(_name))
