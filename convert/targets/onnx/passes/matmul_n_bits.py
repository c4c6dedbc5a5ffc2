"""ONNX Runtime's operators for matrices of 4 or 8 bits in blocks: com.microsoft::MatMulNBits multiplies with
them, com.microsoft::GatherBlockQuantized selects their rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tmconvert.ir.lazy_constants import Array
from tmconvert.lowering.block_scales import Steps
from tmconvert.lowering.rounded_constants import Packed, Rounded
from tmconvert.lowering.target_graph import Operator, Value

TYPE = "com.microsoft::MatMulNBits"
ROWS = "com.microsoft::GatherBlockQuantized"
_LEAST_BLOCK = 16


class Blocks(NamedTuple):
    """A matrix of unsigned integers of ``bits``: ``values`` [N, blocks, elements], ``scale`` [N, blocks].

    ``zero_point`` [N, blocks] may be None, for 2^(bits - 1).
    """

    values: Array
    scale: np.ndarray
    zero_point: np.ndarray | None
    bits: int

    @classmethod
    def of(cls, rows: Array, steps: Steps) -> Blocks:
        """Returns ``rows`` in blocks, rounded with ``steps`` when they are read."""
        scale, zero_point, low, high = steps
        shift = 0 if zero_point is not None else 8
        zero = np.uint8(shift) if zero_point is None else zero_point
        views = (np.broadcast_to(each, rows.shape) for each in (scale, zero))
        scales, zeros = views
        values = Rounded(rows, scales, (low + shift, high + shift), np.dtype(np.uint8), zeros)
        return cls(values, scale[..., 0], None if zero_point is None else zero_point[..., 0], 4)

    @classmethod
    def of_integers(cls, values: np.ndarray, scale: np.ndarray, zero_point: np.ndarray | None) -> Blocks:
        """Returns integers [N, K] with ``scale`` and ``zero_point`` [N, blocks], or what broadcasts to it."""
        rows, is_signed = len(values), values.dtype == np.int8
        least = -8 if is_signed else 0
        is_exact = zero_point is not None and zero_point.dtype.kind == "f"  # no integer is nearer than that
        parts = [values] if zero_point is None or is_exact else [values, zero_point]
        bits = 4 if all(part.min() >= least and part.max() < least + 16 for part in parts) else 8
        shift = 1 << (bits - 1) if is_signed else 0
        scale = np.ascontiguousarray(np.broadcast_to(scale, (rows, scale.shape[1])), np.float32)
        zeros = zero_point if zero_point is not None or shift else np.zeros(scale.shape, values.dtype)
        if zeros is not None:
            zeros = np.broadcast_to(zeros, scale.shape) + (np.float32(shift) if is_exact else np.int16(shift))
            zeros = zeros.astype(np.float32 if is_exact else np.uint8)
            zeros = None if np.all(zeros == 1 << (bits - 1)) else zeros
        blocks = (values.astype(np.int16) + shift).astype(np.uint8).reshape(rows, scale.shape[1], -1)
        return cls(blocks, scale, zeros, bits)

    @property
    def is_exact(self) -> bool:
        """Whether zero points are floats."""
        return self.zero_point is not None and self.zero_point.dtype.kind == "f"

    @property
    def shape(self) -> tuple[int, int]:
        rows, blocks, size = self.values.shape
        return rows, blocks * size

    @property
    def block_size(self) -> int:
        return self.values.shape[2]

    def constants(self, name: str) -> list[Value]:
        """Returns weights [N, blocks, bytes], scales [N, blocks] and packed zero points."""
        made: list[tuple[str, Array, tuple[int, ...]]] = [
            ("weight", values := _packed(self.values, self.bits), values.shape),
            ("scale", self.scale, self.scale.shape),
        ]
        if self.zero_point is not None:
            zeros = self.zero_point
            if self.is_exact:
                return [
                    *(Value(f"{name}_{part}", data.dtype, shape, data) for part, data, shape in made),
                    Value(f"{name}_zero_point", zeros.dtype, zeros.shape, zeros),
                ]
            if self.bits == 4 and zeros.shape[-1] % 2:
                zeros = np.concatenate([zeros, np.zeros((len(zeros), 1), zeros.dtype)], axis=-1)
            packed = _packed(zeros, self.bits)
            made.append(("zero_point", packed, packed.shape))
        return [Value(f"{name}_{part}", data.dtype, shape, data) for part, data, shape in made]


def takes(operator: Operator, index: int, blocks: Blocks, shape: tuple[int, ...]) -> bool:
    """Whether an operator of ONNX Runtime computes what ``operator`` does with its input ``index``, of
    ``shape``.

    It does not with blocks that are no power of two, in other types, and as other operands.
    """
    size, inputs = blocks.block_size, operator.inputs
    if size < _LEAST_BLOCK or size & (size - 1) or (blocks.is_exact and blocks.bits == 8):
        return False
    if operator.type == "Gather":
        is_table = not index and not operator.attributes.get("axis", 0)
        return is_table and shape == blocks.shape and not blocks.is_exact
    x = inputs[0]
    if index != 1 or x is None or x.dtype != np.float32:
        return False
    if operator.type == "Gemm":
        settings = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0, **operator.attributes}
        is_plain = settings["alpha"] == settings["beta"] == 1 and not settings["transA"]
        return is_plain and shape == (blocks.shape if settings["transB"] else blocks.shape[::-1])
    return operator.type == "MatMul" and shape == blocks.shape[::-1]


def n_bits_operators(operator: Operator, blocks: Blocks, constants: list[Value]) -> list[Operator]:
    """Returns the operators in place of a MatMul or Gemm of x [..., K] with a matrix of N rows, or of a
    Gather of its rows, which ``takes`` accepts.
    """
    (result,), (rows, columns) = operator.outputs, blocks.shape
    bits = {"bits": blocks.bits, "block_size": blocks.block_size}
    name, source = operator.name, operator.source
    if operator.type == "Gather":
        weight, *others = constants
        flat = Value(f"{weight.name}_rows", weight.dtype, (rows, columns * blocks.bits // 8))
        sizes = np.array(flat.shape, np.int64)
        shape = Value(f"{weight.name}_shape", sizes.dtype, sizes.shape, sizes)
        inputs = [flat, operator.inputs[1], *others]
        settings = {"gather_axis": 0, "quantize_axis": 1, **bits}
        return [
            Operator("Reshape", [weight, shape], [flat], {}, f"{name}/reshape", source),
            Operator(ROWS, inputs, [result], {**settings}, name, source),
        ]
    x, _, *bias = operator.inputs
    attributes = {"K": columns, "N": rows, **bits}
    if not bias or bias[0] is None:
        return [Operator(TYPE, [x, *constants], [result], {**attributes}, name, source)]
    product = Value(f"{result.name}_product", result.dtype, result.shape)
    return [
        Operator(TYPE, [x, *constants], [product], {**attributes}, name, source),
        Operator("Add", [product, bias[0]], [result], {}, f"{name}/add", source),
    ]


def _packed(values: Array, bits: int) -> Array:
    """Returns values in bytes, two of four bits in one, the first in the lower half."""
    return Packed(values) if bits == 4 else values
