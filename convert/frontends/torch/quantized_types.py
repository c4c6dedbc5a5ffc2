"""Torch's quantized types, shared by tracer and adapters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tmconvert.ir import QParams


def float32(scale: float) -> float:
    """Rounds a scale to float32, as torch's kernels do."""
    return float(np.float32(scale))


class Integers(NamedTuple):
    """The integers of a quantized type: name, range and storage type."""

    name: str
    quant_min: int
    quant_max: int
    stored: str

    def qparams(
        self, scale: tuple[float, ...], zero_point: tuple[int, ...], axis: int | None = None
    ) -> QParams:
        symmetric = self.name != "uint8" and not any(zero_point)
        return QParams(
            self.name,
            tuple(map(float32, scale)),
            zero_point,
            self.quant_min,
            self.quant_max,
            axis,
            symmetric,
            "PyTorch",
        )


INTEGERS = {
    "qint8": Integers("int8", -128, 127, "int8"),
    "quint8": Integers("uint8", 0, 255, "uint8"),
    "qint32": Integers("int32", -(2**31), 2**31 - 1, "int32"),
    "quint4x2": Integers("uint4", 0, 15, "uint8"),
}
