"""Scales of weights that are so large that biases fit into their integers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tmconvert.ir.types import QParams


def widen_scales(weight: QParams, step: float, bias: np.ndarray | None, most: float, least: float) -> QParams:
    """Returns the QParams of weights with larger scales where a bias needs them, or where they are too small.

    A bias has the scale of its operand, ``step``, times that of the weights, and at most ``most`` of these
    steps. ``least`` is the smallest scale. Weights that need a smaller scale are too small to change a result
    that has this bias.

    >>> given = QParams("int8", (1e-9,), (0,), -127, 127)
    >>> widen_scales(given, 0.5, np.array([3.0]), 2.0**31, 0.0).scale[0] > 1e-9
    True
    """
    smallest = np.float64(least)
    if bias is not None:
        largest = np.abs(bias.reshape(-1).astype(np.float64))
        largest = largest if len(weight.scale) > 1 else largest.max(initial=0)
        smallest = np.maximum(smallest, largest / (most * step))
    given = np.array(weight.scale)
    if np.all(given >= smallest):
        return weight
    wide = np.nextafter(np.maximum(given, smallest).astype(np.float32), np.float32(np.inf))
    return replace(weight, scale=tuple(map(float, np.where(given >= smallest, given, wide))))
