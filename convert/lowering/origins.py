"""Provenance: the node of the lowered graph and the role of each tensor of a written file.

One node may have several tensors in a file: quantized, requantized for some of its users, dequantized for
operators in float. Lowering and each rewriting record it for the tensors that they make, so that it is never
derived from names.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from tmconvert.ir.types import QParams

if TYPE_CHECKING:
    from tmconvert.ir import TensorNode
    from tmconvert.lowering.target_graph import Value


class Role(Enum):
    """The relation of a tensor of the file to the tensor that it represents."""

    TENSOR = "the tensor itself, with the same name"
    COPY = "a copy, for an output of the model"
    QUANTIZED = "quantized for integer operators, or from int16 to int8"
    REQUANTIZED = "with other quantization parameters, for some of its users"
    DEQUANTIZED = "dequantized for float operators"
    COMPUTED = "the operator's result before it is requantized or rounded"
    UNCLAMPED = "before it is clamped to the quantized range that the source allows"
    INTERNAL = "in the type of the activations, where an input or output of the file has another type"
    CONSTANT = "a constant"
    PART = "an intermediate result or an operand of the operators that compute it"


class Origin(NamedTuple):
    """The ``node`` of the lowered graph that a tensor of the file represents, and its ``role``.

    ``is_inner`` is True for tensors that no node names: intermediate results of the operators that compute
    ``node``, and the forms of these. ``qparams`` are the quantization parameters in the file.
    ``plain`` is the tensor of the float graph that this is a form of; None in the float graph itself.
    """

    node: TensorNode
    role: Role
    qparams: QParams | None = None
    is_inner: bool = False
    plain: Value | None = None
