"""What is known of TFLite's operators: one record each, in a file for each family.

docs/development/add-a-tflite-operator.md shows how to add one.
"""

from __future__ import annotations

from tmconvert.targets.tflite.operators import (
    activations,
    arithmetic,
    comparisons,
    conversions,
    indexing,
    layers,
    recurrent,
    reductions,
    shapes,
)
from tmconvert.targets.tflite.operators.record import OperatorSpec

_FAMILIES = (
    arithmetic,
    activations,
    comparisons,
    conversions,
    indexing,
    layers,
    recurrent,
    reductions,
    shapes,
)
SPECS: dict[str, OperatorSpec] = {each.name: each for family in _FAMILIES for each in family.SPECS}
_CUSTOM = OperatorSpec("CUSTOM", code=32)


def spec(name: str) -> OperatorSpec:
    """The record of a builtin operator; for other names that of a custom operator, of which nothing is known.

    >>> spec("CONV_2D").code
    3
    """
    return SPECS.get(name, _CUSTOM)
