"""Torch's quantized types, shared by tracer and adapters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tmconvert.frontends.shared.recorded_qparams import integers_of_range
from tmconvert.ir import QParams
from tmconvert.ir.fake_quant import PYTORCH
from tmconvert.ir.types import Shape


def float32(scale: float) -> float:
    """Rounds a scale to float32, as torch's kernels do."""
    return float(np.float32(scale))


class Integers(NamedTuple):
    """The integers of a quantized type: name, range and storage type."""

    name: str
    quant_min: int
    quant_max: int
    stored: str

    def qparams(self, scale: tuple[float, ...], zero_point: Shape, axis: int | None = None) -> QParams:
        symmetric = self.name != "uint8" and not any(zero_point)
        return QParams(
            self.name,
            tuple(map(float32, scale)),
            zero_point,
            self.quant_min,
            self.quant_max,
            axis,
            symmetric,
            PYTORCH,
        )


def fake_quant_qparams(
    scales: Iterable[float], zero_points: Iterable[float], low: int, high: int, axis: int | None
) -> QParams:
    """Returns the QParams of a call of ``torch.fake_quantize_per_*_affine``; zero points are integers."""
    zeros = tuple(map(int, zero_points))
    return QParams(
        integers_of_range(low, high),
        tuple(map(float32, scales)),
        zeros,
        low,
        high,
        axis,
        low < 0 and not any(zeros),
        PYTORCH,
    )


INTEGERS = {
    "qint8": Integers("int8", -128, 127, "int8"),
    "quint8": Integers("uint8", 0, 255, "uint8"),
    "qint32": Integers("int32", -(2**31), 2**31 - 1, "int32"),
    "quint4x2": Integers("uint4", 0, 15, "uint8"),
}
