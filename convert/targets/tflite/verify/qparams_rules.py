"""Verifies the QParams that TFLite's operators require, which runtimes do not check."""

from __future__ import annotations

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.lowering.target_graph import Operator, Quantization, TargetGraph
from tmconvert.targets.tflite.integer.qparams import operands
from tmconvert.targets.tflite.operators import spec
from tmconvert.targets.tflite.operators.record import IntegerKernel, Weights


def check_rules(graph: TargetGraph) -> None:
    """Raises VerificationError TM4001 where a tensor does not have the QParams that its operator requires.

    Operands and results of an operator that moves elements have the same QParams, the result of a "fixed"
    kernel has the QParams of the kernel, and a bias has the scale of the products.
    """
    for operator in graph.all_operators():
        kernel = spec(operator.type).integer
        if kernel is not None and not _is_fit(operator, kernel):
            message = (
                f"the tensors of {operator.name} do not have the quantization parameters that "
                f"{operator.type} requires"
            )
            raise VerificationError("TM4001", message)


def _is_fit(operator: Operator, kernel: IntegerKernel) -> bool:
    numbers = operands(operator)
    if kernel.relation != "compared":
        numbers += [operator.outputs[i] for i in kernel.outputs(len(operator.outputs))]
    all_qparams = [value.quantization for value in numbers if value.quantization is not None]
    if len(all_qparams) != len(numbers):
        return not all_qparams  # in float
    if kernel.relation == "same":
        return len({_step(qparams) for qparams in all_qparams}) == 1
    if kernel.relation == "fixed":
        return _step(all_qparams[-1]) == kernel.fixed[operator.outputs[0].dtype.name]
    weights = spec(operator.type).weights
    return weights is None or _is_product(operator, weights, all_qparams[0])


def _step(qparams: Quantization) -> tuple[float, int]:
    return float(qparams.scale[0]), int(zero_points(qparams)[0])


def _is_product(operator: Operator, place: Weights, x: Quantization) -> bool:
    """Whether weights have zero points of 0, and a bias the scales of products."""
    count = len(operator.inputs)
    weight, bias = (operator.inputs[i] if i < count else None for i in (place.weight, place.bias))
    if weight is None or weight.quantization is None or zero_points(weight.quantization).any():
        return False
    if bias is None:
        return True
    products, given = float(x.scale[0]) * weight.quantization.scale.astype(np.float64), bias.quantization
    if given is None or zero_points(given).any() or given.scale.shape != products.shape:
        return False
    return bool(np.allclose(given.scale, products, rtol=1e-6, atol=0))


def zero_points(quantization: Quantization) -> np.ndarray:
    if quantization.zero_point is None:
        return np.zeros(len(quantization.scale), np.int64)
    return quantization.zero_point
