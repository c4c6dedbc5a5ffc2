"""What several TFLite symbolics share. All shapes here are channels-last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ...lower.builder import Builder
    from ...lower.target_graph import Value


def transposed(g: Builder, x: Value, order: Sequence[int]) -> Value:
    """``x`` with permuted axes: a view where it is constant, else a TRANSPOSE."""
    if x.data is not None:
        return g.const(x.data.transpose(order), name=f"{x.name}_{''.join(map(str, order))}")
    shape = [x.shape[axis] for axis in order]
    return g.op("TRANSPOSE", x, g.ints(order), shape=shape)


def reshaped(g: Builder, x: Value, shape: Sequence[int]) -> Value:
    """``x`` with another shape: a view where it is constant, else a RESHAPE."""
    if tuple(shape) == x.shape:
        return x
    if x.data is not None:
        return g.const(x.data.reshape(shape), name=x.name)
    return g.op("RESHAPE", x, g.ints(shape), new_shape=list(shape), shape=shape)


def expanded(g: Builder, x: Value, shape: Sequence[int]) -> Value:
    """``x`` repeated to ``shape``: a view where it is constant, else a BROADCAST_TO."""
    if tuple(shape) == x.shape:
        return x
    if x.data is not None:
        return g.const(np.broadcast_to(x.data, shape), name=x.name)
    return g.op("BROADCAST_TO", x, g.ints(shape), shape=shape)


def padding_scheme(
    extent: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] = (1, 1),
) -> str | None:
    """ "VALID" or "SAME" where TFLite's scheme equals this symmetric padding, else None.

    SAME pads max((ceil(extent / stride) - 1) stride + (kernel - 1) dilation + 1 - extent, 0) in
    all, the odd element behind.
    """
    if not any(padding):
        return "VALID"
    for axis, amount in enumerate(padding):
        reach = (kernel[axis] - 1) * dilation[axis] + 1
        outputs = -(-extent[axis] // stride[axis])
        if max((outputs - 1) * stride[axis] + reach - extent[axis], 0) != 2 * amount:
            return None
    return "SAME"


def padded(g: Builder, x: Value, before: Sequence[int], after: Sequence[int], value: float = 0.0) -> Value:
    """``x`` [N, H, W, C] padded in H and W; PADV2 where ``value`` is not zero."""
    amounts = [[0, 0], [before[0], after[0]], [before[1], after[1]], [0, 0]]
    if not np.any(amounts):
        return x
    shape = [extent + sum(pair) for extent, pair in zip(x.shape, amounts, strict=True)]
    widths = g.const(np.array(amounts, g.index_dtype))
    if value == 0:
        return g.op("PAD", x, widths, shape=shape)
    return g.op("PADV2", x, widths, g.const(np.array(value, x.dtype)), shape=shape)


def pooling_scheme(
    extent: Sequence[int],
    outputs: Sequence[int],
    stride: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
) -> str | None:
    """The name of TFLite's scheme where its windows are these ("VALID" or "SAME"), else None.

    ``before`` and ``after`` are what the windows reach beyond the ends, after may be negative.
    """
    if not any(before) and max(after) <= 0:
        return "VALID"
    for i, padding in enumerate(before):
        if outputs[i] != -(-extent[i] // stride[i]) or padding != max(padding + after[i], 0) // 2:
            return None
    return "SAME"
