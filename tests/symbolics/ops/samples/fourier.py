"""Fourier transforms."""

from tests.symbolics.ops.harness import normal

from .common import Sample, rows

ONNX = ("onnx",)
REAL, IMAG = normal(0, 2, 5, 6), normal(1, 2, 5, 6)
SIGNAL = normal(2, 2, 23)

SAMPLES: dict[str, list[Sample]] = rows(__file__, "SAMPLES", globals())
