"""ONNX Runtime's com.microsoft::MatMulNBits: products with weights of 4 or 8 bits in blocks."""

from __future__ import annotations

import numpy as np

from tmconvert.lowering.target_graph import Operator, Value

TYPE = "com.microsoft::MatMulNBits"
_LEAST_BLOCK = 16


def n_bits_product(
    operator: Operator, values: np.ndarray, scale: np.ndarray, zero_point: np.ndarray | None
) -> list[Operator]:
    """Returns the operators in place of a MatMul or Gemm of x [..., K] with a weight of N rows.

    ``values`` are integers [N, K], ``scale`` and ``zero_point`` [N, blocks]. The result is empty for a
    product that the operator does not compute: of other types, or in blocks that are no power of two.
    """
    rows, columns = values.shape
    scale = np.broadcast_to(scale, (rows, scale.shape[1]))
    block = columns // scale.shape[1]
    x, weight, *bias = operator.inputs
    if block < _LEAST_BLOCK or block & (block - 1) or x is None or weight is None or x.dtype != np.float32:
        return []
    if operator.type == "Gemm":
        settings = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0, **operator.attributes}
        is_plain = settings["alpha"] == settings["beta"] == 1 and not settings["transA"]
        if not is_plain or bool(settings["transB"]) != (weight.shape == (rows, columns)):
            return []
    elif operator.type != "MatMul" or weight.shape != (columns, rows):
        return []
    inputs = [x, *_constants(weight.name, values, scale, zero_point)]
    bits = _bits(values, zero_point)
    attributes = {"K": columns, "N": rows, "bits": bits, "block_size": block}
    (result,) = operator.outputs
    if not bias or bias[0] is None:
        return [Operator(TYPE, [*inputs], [result], dict(attributes), operator.name, operator.source)]
    product = Value(f"{result.name}_product", result.dtype, result.shape)
    name = f"{operator.name}/add"
    return [
        Operator(TYPE, [*inputs], [product], dict(attributes), operator.name, operator.source),
        Operator("Add", [product, bias[0]], [result], {}, name, operator.source),
    ]


def _bits(values: np.ndarray, zero_point: np.ndarray | None) -> int:
    least = -8 if values.dtype == np.int8 else 0
    parts = [values] if zero_point is None else [values, zero_point]
    return 4 if all(part.min() >= least and part.max() < least + 16 for part in parts) else 8


def _constants(
    name: str, values: np.ndarray, scale: np.ndarray, zero_point: np.ndarray | None
) -> list[Value]:
    """Returns weights [N, blocks, bytes], scales [N * blocks] and packed zero points, all unsigned.

    Without zero points the operator takes 2^(bits - 1), which signed integers have after the shift.
    """
    rows, bits = len(values), _bits(values, zero_point)
    shift = 1 << (bits - 1) if values.dtype == np.int8 else 0
    blocks = (values.astype(np.int16) + shift).astype(np.uint8).reshape(rows, scale.shape[1], -1)
    made = [_packed(blocks, bits), np.ascontiguousarray(scale, np.float32).reshape(-1)]
    zeros = zero_point if zero_point is not None or shift else np.zeros(scale.shape, values.dtype)
    if zeros is not None:
        shifted = (np.broadcast_to(zeros, scale.shape).astype(np.int16) + shift).astype(np.uint8)
        made.append(_packed(shifted, bits).reshape(-1))
    names = ("weight", "scale", "zero_point")
    return [
        Value(f"{name}_{part}", data.dtype, data.shape, data) for part, data in zip(names, made, strict=False)
    ]


def _packed(values: np.ndarray, bits: int) -> np.ndarray:
    """Returns values along the last axis, two of four bits in a byte, the first in the lower half."""
    if bits == 8:
        return np.ascontiguousarray(values)
    if values.shape[-1] % 2:
        values = np.concatenate([values, np.zeros((*values.shape[:-1], 1), np.uint8)], axis=-1)
    return np.ascontiguousarray(values[..., ::2] | values[..., 1::2] << 4)
