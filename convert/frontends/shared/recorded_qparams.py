"""QParams of tensors that the source model stores as integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tmconvert.ir import Expr, TensorNode
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.tree import leaves

if TYPE_CHECKING:
    from tmconvert.ir.fake_quant import Rounding


NAMES = {
    (-128, 127): "int8",
    (-127, 127): "int8_narrow",
    (0, 255): "uint8",
    (-8, 7): "int4",
    (0, 15): "uint4",
    (-2, 1): "int2",
    (0, 3): "uint2",
    (0, 1): "int1",
    (-(2**15), 2**15 - 1): "int16",
    (-(2**31), 2**31 - 1): "int32",
}


def integers_of_range(low: int, high: int) -> str:
    """Returns the name of an integer type from its range."""
    return NAMES.get((low, high), f"{'u' if low >= 0 else ''}int{(high - low).bit_length()}")


def with_recorded_qparams(
    g: Emitter, expr: Expr, args: tuple[object, ...], result: object, rounded: Rounding
) -> Any:
    """Attaches QParams to results of a call that the source stores as integers.

    The result has the QParams of the operand if the source recorded equal ones for both, as for pooling: a
    module may be called again with an operand of other QParams.
    """
    if not any(isinstance(node, TensorNode) and node.holds_integers for node in expr.outputs):
        return result
    operands = {
        node.qparams: value.qparams
        for node, value in zip(leaves(expr.args), leaves(args), strict=True)
        if isinstance(node, TensorNode) and getattr(value, "qparams", None) is not None
    }

    def resolved(structure: Any, value: object) -> Any:
        if isinstance(structure, (tuple, list)) and isinstance(value, (tuple, list)):
            return [resolved(*pair) for pair in zip(structure, value, strict=True)]
        if not isinstance(structure, TensorNode) or not structure.holds_integers:
            return value
        qparams = structure.qparams
        if qparams is None:
            return value
        if getattr(value, "qparams", None) is not None:  # the adapter knew
            return value
        qparams = operands.get(qparams) or qparams
        return g.quantized(value, qparams, rounded)

    return resolved(expr.result, result)
