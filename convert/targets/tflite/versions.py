"""Versions of TFLite operators: the oldest with the features in use (operators/version_rules.py)."""

from __future__ import annotations

from collections.abc import Iterable

from tmconvert.lowering.target_graph import Operator
from tmconvert.targets.tflite.operators import spec


def operator_version(operator: Operator) -> int:
    """Returns the oldest version of the operator with the features in use."""
    return next((version for version, test in spec(operator.type).versions if test(operator)), 1)


def model_versions(operators: Iterable[Operator]) -> dict[str, int]:
    """For each operator type, in the order of first use, the newest version that a use needs."""
    versions: dict[str, int] = {}
    for operator in operators:
        versions[operator.type] = max(versions.get(operator.type, 1), operator_version(operator))
    return versions
