"""Emits a graph with trainable parameters: calls on them are not folded, and rounding is explicit."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir import Constant, QParams, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.fake_quant import Rounding, fake_quantize
from tmconvert.symbolics.op import FLOATS, Op, Tensor, integer, number
from tmconvert.symbolics.results import same_as

_RANGE = (integer("quant_min"), integer("quant_max"))
FAKE_QUANTIZE = (
    Op(
        "tm::fake_quantize",
        args=[Tensor("x", FLOATS), number("scale"), integer("zero_point"), *_RANGE],
        result=same_as("x"),
    ),
    Op(
        "tm::fake_quantize_channels",
        args=[Tensor("x", FLOATS), Tensor("scale"), Tensor("zero_point"), integer("axis"), *_RANGE],
        result=same_as("x"),
    ),
)


class TrainingEmitter(GraphEmitter):
    """Keeps calls on parameters in the graph, and emits quantization as calls.

    The calls are those of PyTorch, which round halves to even: a value that MegEngine rounds away from zero
    may differ by one step.
    """

    def may_fold(self, value: TensorNode) -> bool:
        is_parameter = isinstance(value.expr, Constant) and value.expr.name is not None
        return not (is_parameter and value.type.dtype.kind == "f")

    def quantized(
        self, value: TensorNode, qparams: QParams, rounded: Rounding | None = fake_quantize
    ) -> TensorNode:
        if rounded is None or value.qparams == qparams or value.type.dtype != np.float32:
            return super().quantized(value, qparams, rounded)
        bounds = {"quant_min": qparams.quant_min, "quant_max": qparams.quant_max}
        made: Any
        if qparams.channel_axis is None:
            scale = np.float32(qparams.scale[0])
            zero = qparams.zero_point[0]
            made = self.call("tm::fake_quantize", value, scale=float(str(scale)), zero_point=zero, **bounds)
        else:
            scales = self.constant(np.array(qparams.scale, np.float32))
            zeros = self.constant(np.array(qparams.zero_point, np.int32))
            axis = qparams.channel_axis
            made = self.call("tm::fake_quantize_channels", value, scales, zeros, axis=axis, **bounds)
        assert isinstance(made, TensorNode)
        made.qparams = qparams
        return made
