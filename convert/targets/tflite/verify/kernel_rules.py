"""Rules for the operands that integer TFLite files store for a kernel."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tmconvert.ir import CallFunction, TensorNode
from tmconvert.lowering.target_graph import Value
from tmconvert.passes.patterns.matching import integer_weights
from tmconvert.targets.tflite.integer.qparams import dequantize_weight, weight_qparams
from tmconvert.targets.tflite.verify.kernel_error import slack_of
from tmconvert.verification.integer_rules import IntegerRules, Slack


class TfliteRules(IntegerRules):
    """Constants are rounded for integer kernels alone; weights without parameters have those of the file."""

    depends_on_kernel: ClassVar[bool] = True

    def constant(self, node: TensorNode, value: np.ndarray, call: CallFunction) -> np.ndarray:
        weights = integer_weights(call)
        if value.dtype == np.float32 and weights is not None and node is call.args[1]:
            return dequantize_weight(_stored(node, value), weights.output_axis)
        return super().constant(node, value, call)

    def weight_scales(self, weight: TensorNode, value: np.ndarray, axis: int) -> tuple[float, ...]:
        return weight_qparams(_stored(weight, value), axis).scale

    def slack(self, call: CallFunction, kind: str) -> Slack | None:
        return slack_of(call, kind)


def _stored(node: TensorNode, value: np.ndarray) -> Value:
    return Value(node.name, value.dtype, value.shape, value, qparams=node.qparams)
