"""Annotations."""

from tests.ops.harness import normal

from .common import Sample, X

SAMPLES: dict[str, list[Sample]] = {"tm::requantize": [Sample([X]), Sample([normal(1, 4)])]}
