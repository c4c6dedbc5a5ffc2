"""Quantization parameters for inputs of models without quantization stubs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tmconvert.errors import UsageError
from tmconvert.ir import QParams, TensorNode

RANGES = {
    **dict.fromkeys(("qint8", "int8"), (-128, 127)),
    **dict.fromkeys(("quint8", "uint8"), (0, 255)),
    "qint8_narrow": (-127, 127),
}


def give_qparams(nodes: Mapping[str, TensorNode], all_qparams: Mapping[str, tuple[str, float, int]]) -> None:
    """Assigns type, scale and zero point to inputs; ``*`` applies to float32 inputs that are not named.

    Raises UsageError TM6014 for values that are no quantization parameters, and for an input that has one
    already.
    """
    named = {name: _qparams(name, *qparams) for name, qparams in all_qparams.items()}
    for name, node in nodes.items():
        is_float = node.dtype == np.float32
        qparams = named.get(name, named.get("*") if is_float else None)
        if qparams is None:
            continue
        if node.qparams is not None or not is_float:
            why = "already has a scale in the model" if is_float else f"is of {node.dtype}"
            raise UsageError("TM6014", f"the input {name!r} {why}: its quantization cannot be set")
        node.qparams = qparams


def _qparams(name: str, dtype: str, scale: float, zero_point: int) -> QParams:
    of = "" if name == "*" else f" of {name!r}"
    if dtype not in RANGES:
        known = ", ".join(RANGES)
        raise UsageError("TM6014", f"the type{of} is {dtype!r}", notes=[("help", f"use one of {known}")])
    low, high = RANGES[dtype]
    if not (math.isfinite(scale) and scale > 0):
        raise UsageError("TM6014", f"the scale{of} is {scale}, and must be above 0")
    if not low <= zero_point <= high:
        raise UsageError("TM6014", f"the zero point{of} is {zero_point}, and {dtype} has {low} to {high}")
    symmetric = zero_point == 0 and low < 0
    step = float(np.float32(scale))
    return QParams(
        dtype.removeprefix("q"), (step,), (zero_point,), low, high, symmetric=symmetric, source="given"
    )
