"""The axes of weights: those along which ONNX operators sum products, and those of channels.

Each function is a rule of the operators that name it in their records: it takes the index of the weight among
the inputs, its rank and the attributes of the operator, and returns None for other inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class WeightAxes(NamedTuple):
    """``channel`` is the axis with a scale for each element; ``block`` the one that is summed over, or the
    columns of a table. Neither is negative.
    """

    channel: int
    block: int


def of_convolution(index: int, rank: int, attributes: Mapping[str, Any]) -> WeightAxes | None:
    return WeightAxes(0, 1) if index == 1 else None


def of_transposed(index: int, rank: int, attributes: Mapping[str, Any]) -> WeightAxes | None:
    return WeightAxes(1, 0) if index == 1 else None


def of_recurrent(index: int, rank: int, attributes: Mapping[str, Any]) -> WeightAxes | None:
    return WeightAxes(1, 2) if index in (1, 2) else None


def of_table(index: int, rank: int, attributes: Mapping[str, Any]) -> WeightAxes | None:
    """Rows that are gathered."""
    return None if index or attributes.get("axis", 0) else WeightAxes(0, rank - 1)


def of_gemm(index: int, rank: int, attributes: Mapping[str, Any]) -> WeightAxes | None:
    if index > 1:
        return None
    is_transposed = bool(attributes.get("transB" if index else "transA", 0))
    rows, columns = (1, 0) if is_transposed else (0, 1)
    return WeightAxes(rows, columns) if index == 0 else WeightAxes(columns, rows)


def of_product(index: int, rank: int, attributes: Mapping[str, Any]) -> WeightAxes | None:
    rows, columns = rank - 2, rank - 1
    return WeightAxes(rows, columns) if index == 0 else WeightAxes(columns, rows)
