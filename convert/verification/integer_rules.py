"""Rules for the operands that an integer file stores for a kernel; targets refine them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tmconvert.ir import CallFunction, TensorNode
from tmconvert.ir.fake_quant import fake_quantize

# Of a call, its operands, what it gives for them and the step of the first: how far off elements may be.
Slack = Callable[[CallFunction, list[Any], np.ndarray, float], Any]


class IntegerRules:
    """The rules of files that store all tensors with quantization parameters rounded, such as Q/DQ files.

    ``depends_on_kernel`` says that a file has a tensor in several element types, of which a kernel takes that
    of its result, and that constants are rounded where an integer kernel takes them alone.
    """

    depends_on_kernel: ClassVar[bool] = False

    def constant(self, node: TensorNode, value: np.ndarray, call: CallFunction) -> np.ndarray:
        """The values of a constant as an operand of ``call``: rounded by the source's parameters."""
        if value.dtype != np.float32 or node.qparams is None or node.qparams.dtype == "int32":
            return value
        return fake_quantize(value, node.qparams)

    def weight_scales(self, weight: TensorNode, value: np.ndarray, axis: int) -> tuple[float, ...]:
        """The scales of a constant weight with channels along ``axis``; none if a bias has others."""
        qparams = weight.qparams
        return () if qparams is None or any(qparams.zero_point) else qparams.scale

    def slack(self, call: CallFunction, kind: str) -> Slack | None:
        """How to bound the error of the kernel in integers of ``kind`` beyond rounding; None: it has none."""
        return None
