"""Which operators run in integer kernels, in which type, and with which QParams of their operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tmconvert.ir.types import QParams
from tmconvert.lowering.target_graph import Operator, Value
from tmconvert.targets.options import IntegerType
from tmconvert.targets.tflite.integer.qparams import (
    activation_qparams,
    align_qparams,
    constant_qparams,
    is_zero,
    operands,
)
from tmconvert.targets.tflite.integer.resolve import ResolvedGraph
from tmconvert.targets.tflite.operators import spec
from tmconvert.targets.tflite.operators.activations import TABLES
from tmconvert.targets.tflite.operators.record import IntegerKernel


@dataclass(frozen=True)
class KernelChoice:
    """Chooses kernels by the QParams of the tensors; activations are of the type ``activations``."""

    all_qparams: Mapping[Value, QParams]
    activations: IntegerType

    def kernel_of(self, operator: Operator) -> IntegerKernel | None:
        """Returns the integer kernel that computes ``operator``; None for an operator that stays in float."""
        kernel = spec(operator.type).integer
        return kernel if kernel is not None and self._supports(operator, kernel) else None

    def type_of(self, operator: Operator, kernel: IntegerKernel) -> IntegerType:
        """Returns the type in which the kernel computes: the widest of its tensors' types; for products with
        weights and lookup tables that of the result, for comparisons that of the operands.

        What the source does not round is not rounded to eight bits in front of a product, either.
        """
        values = [operator.outputs[i] for i in kernel.outputs(len(operator.outputs))]
        if kernel.relation == "compared":
            values = []
        if kernel.relation in ("compared", "free", "fixed") and operator.type not in TABLES:
            values += [value for value in operands(operator) if not value.is_constant]
        kinds = [self.all_qparams[value].dtype for value in values if value in self.all_qparams]
        if kernel.relation == "weights":
            given = [self.all_qparams.get(value) for value in operands(operator)]
            kinds += [qparams.dtype for qparams in given if qparams is not None and qparams.inferred]
        if not kinds:
            return self.activations
        return "int16" if "int16" in kinds else "int8"

    def _supports(self, operator: Operator, kernel: IntegerKernel) -> bool:
        values = operands(operator)
        if self.type_of(operator, kernel) not in kernel.types:
            return False
        if any(value.dtype != np.float32 for value in values):
            return False
        if all(value is None or value.is_constant for value in operator.inputs):
            return False
        weights = spec(operator.type).weights
        if weights is not None:
            others = [operator.inputs[i] for i in (weights.weight, weights.bias) if i < len(operator.inputs)]
            if any(value is not None and value.data is None for value in others):
                return False
        if kernel.relation != "compared":
            values += [operator.outputs[i] for i in kernel.outputs(len(operator.outputs))]
        if not all(value.is_constant or value in self.all_qparams for value in values):
            return False
        # comparisons of two tensors in LiteRT abort at a scale of 1 and more
        is_comparison = kernel.relation == "compared" and len(values) > 1
        kind = self.type_of(operator, kernel)
        return not is_comparison or all(self.operand_qparams(value, kind).scale[0] < 1 for value in values)

    def operand_qparams(self, value: Value, kind: str) -> QParams:
        """Returns the QParams of an operand, for a kernel that computes in ``kind``."""
        if not value.is_constant:
            return align_qparams(self.all_qparams[value], kind)
        assert value.data is not None
        qparams = None if value.qparams is None else activation_qparams(value.qparams, kind)
        return qparams or constant_qparams(value.data, kind)

    def common_qparams(
        self, operator: Operator, kernel: IntegerKernel, positions: Sequence[int]
    ) -> QParams | None:
        """Returns the QParams that a kernel requires of all operands at ``positions``: those of the operand,
        or, of several, of the result; None where each operand has its own.

        Numbers in int16 are compared as they are; the QParams of the widest range, which are symmetric, hold
        them all.
        """
        values = [operator.inputs[i] for i in positions]
        if kernel.relation == "compared":
            if self.type_of(operator, kernel) != "int16":
                return None
            wide = [value for value in values if value is not None and not is_zero(value)]
            return max((self.operand_qparams(value, "int16") for value in wide), key=lambda each: each.scale)
        result = self.all_qparams[operator.outputs[0]]
        if kernel.is_within and result.inferred:
            return result
        if kernel.relation != "same":
            return None
        computed = [value for value in values if value is not None and not value.is_constant]
        if len(computed) != 1 or len(values) != 1:
            return result
        qparams = self.all_qparams[computed[0]]
        is_wider = (result.dtype, qparams.dtype) == ("int16", "int8")
        can_keep = qparams.dtype in kernel.types and not is_wider
        return qparams if can_keep else align_qparams(qparams, result.dtype)


def used_qparams(resolved: ResolvedGraph) -> dict[Value, QParams]:
    """Returns the QParams without the inferred ones of tensors that only float operators use."""
    found = dict(resolved.all_qparams)
    choice = KernelChoice(found, resolved.activations)
    wanted = set[Value | None](resolved.graph.outputs)
    for operator in reversed(resolved.graph.operators):
        kernel = spec(operator.type).integer
        kept = [_is_own(value, operator) or value in wanted for value in operator.outputs]
        # a kernel needs the QParams of all its results, of unused ones too, as of elements beside indices
        has_others = kernel is not None and len(kernel.outputs(len(kept))) < len(kept)
        if not any(kept) and not has_others:
            for value in operator.outputs:
                found.pop(value, None)
        if choice.kernel_of(operator) is not None:
            wanted.update(operator.inputs)
    return found


def _is_own(value: Value, operator: Operator) -> bool:
    """Whether a result has QParams of the source, or is a lookup table's."""
    return (value.qparams is not None and not value.qparams.inferred) or operator.type in TABLES
