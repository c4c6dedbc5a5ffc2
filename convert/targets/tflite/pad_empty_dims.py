"""Pads possibly empty dimensions, since LiteRT rejects extents of 0.

The operand of such an operator is padded by one slice, and its result is sliced to the requested shape.
Measured with LiteRT 2.3 for each operator: SOFTMAX of an empty axis ends the process, XNNPACK rejects
products of empty matrices, and returns wrong heights and widths for windows of an empty batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.ir.symbolic.clamps import may_be_empty
from tmconvert.targets.tflite.operators import spec

if TYPE_CHECKING:
    from tmconvert.lowering.target_graph import Value
    from tmconvert.targets.tflite.builder import TfliteBuilder


def without_empty_parts(
    g: TfliteBuilder, type: str, inputs: Sequence[Value | None], options: dict[str, Any]
) -> Value | None:
    """Emits the operator on padded operands; None where this is not needed."""
    rule = spec(type).not_empty
    if rule is None:
        return None
    operands = [value for value in inputs[: rule.operands] if value is not None]
    filled = [_filled(g, value, rule.axes, rule.filled_with) for value in operands]
    if filled == operands:
        return None
    shape = options.get("shape") or operands[0].shape
    options = options | {"shape": _sizes(shape, rule.axes), "has_elements": True}
    made = g.op(type, *filled, *inputs[rule.operands :], **options)
    return g.op("SLICE", made, g.ints([0] * len(shape)), g.ints(shape), shape=shape)


def _filled(g: TfliteBuilder, x: Value, axes: slice, number: float) -> Value:
    sizes = _sizes(x.shape, axes)
    if sizes == list(x.shape):
        return x
    grown = [size is not extent for size, extent in zip(sizes, x.shape, strict=True)]
    widths = g.ints(np.array([[0, int(more)] for more in grown]))
    if number == 0:
        return g.op("PAD", x, widths, shape=sizes)
    return g.op("PADV2", x, widths, g.const(np.array(number, x.dtype)), shape=sizes)


def _sizes(shape: Sequence[Any], axes: slice) -> list[Any]:
    chosen = range(len(shape))[axes]
    return [
        extent + 1 if axis in chosen and may_be_empty(extent) else extent for axis, extent in enumerate(shape)
    ]
