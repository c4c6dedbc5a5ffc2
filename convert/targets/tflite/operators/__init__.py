"""TFLite's operators, a file per family; docs/development/add-a-tflite-operator.md shows how to add one."""

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
    variables,
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
    variables,
)
SPECS: dict[str, OperatorSpec] = {each.name: each for family in _FAMILIES for each in family.SPECS}
_CUSTOM = OperatorSpec("CUSTOM")


def spec(name: str) -> OperatorSpec:
    """Returns the record of a builtin operator, or an empty one for a custom operator.

    >>> spec("CONV_2D").code
    3
    """
    return SPECS.get(name, _CUSTOM)
