"""Annotations, and integers of tensors."""

from .common import Sample, rows

EIGHT = {"quant_min": -128, "quant_max": 127}
SAMPLES: dict[str, list[Sample]] = rows(__file__, "SAMPLES", globals())
