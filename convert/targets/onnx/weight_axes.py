"""The axes of weights: those along which ONNX operators sum products, and those of channels."""

from __future__ import annotations

from typing import NamedTuple

from tmconvert.lowering.target_graph import Operator


class WeightAxes(NamedTuple):
    """``channel`` is the axis with a scale for each element; ``block`` the one that is summed over, or the
    columns of a table. Neither is negative.
    """

    channel: int
    block: int


def weight_axes(operator: Operator, index: int) -> WeightAxes | None:
    """Returns the axes of the weight that is the input ``index``; None for other inputs."""
    value = operator.inputs[index]
    rank = 0 if value is None else len(value.shape)
    if rank < 2:
        return None
    if operator.type == "Conv" and index == 1:
        return WeightAxes(0, 1)
    if operator.type == "ConvTranspose" and index == 1:
        return WeightAxes(1, 0)
    if operator.type in ("GRU", "LSTM", "RNN") and index in (1, 2):
        return WeightAxes(1, 2)
    if operator.type == "Gather" and index == 0:
        return None if operator.attributes.get("axis", 0) else WeightAxes(0, rank - 1)
    if operator.type == "Gemm" and index < 2:
        is_transposed = bool(operator.attributes.get("transB" if index else "transA", 0))
        rows, columns = (1, 0) if is_transposed else (0, 1)
    elif operator.type == "MatMul":
        rows, columns = rank - 2, rank - 1
    else:
        return None
    return WeightAxes(rows, columns) if index == 0 else WeightAxes(columns, rows)
