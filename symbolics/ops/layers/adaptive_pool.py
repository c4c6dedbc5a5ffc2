"""aten::adaptive_avg_pool1d, 2d, 3d and adaptive_max_pool1d, 2d, 3d.

Output i of n covers [floor(i extent / n), ceil((i + 1) extent / n)): windows of unequal sizes where n does
not divide the extent. The ops for maxima return values only, without indices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import FLOATS, Op, Tensor, integers
from tmconvert.symbolics.traits import Average, Homogeneous, Spatial

Array = np.ndarray


def pooled_to(x: TensorType, output_size: list[int]) -> TensorType:
    if any(size < 1 for size in (*output_size, *x.shape[2:])):
        raise ValueError(f"cannot pool {x} to {output_size}")
    return TensorType(x.dtype, (*x.shape[:2], *output_size))


def adaptive_windows(extent: int, outputs: int) -> list[tuple[int, int]]:
    """Returns [start, end) of each window.

    >>> adaptive_windows(5, 2)
    [(0, 3), (2, 5)]
    """
    return [(i * extent // outputs, -(-(i + 1) * extent // outputs)) for i in range(outputs)]


def _op(kind: str, axes: int, dtypes: tuple[str, ...], reduce: Callable[..., Array], over: str) -> Op:
    op = Op(
        f"aten::adaptive_{kind}_pool{axes}d",
        args=[Tensor("x", dtypes, ranks=(2 + axes,)), integers("output_size", length=axes)],
        result=pooled_to,
        traits=[Spatial(), Homogeneous(), *([Average()] if kind == "avg" else [])],
    )

    @op.reference
    def adaptive_pool_ref(x: Array, output_size: list[int]) -> Array:
        """Pools one axis after the other. Source: torch.nn.functional.adaptive_avg_pool2d."""
        wide = x if kind == "max" else x.astype(np.promote_types(x.dtype, np.float32), copy=False)
        for axis, outputs in enumerate(output_size, 2):
            parts = [
                wide.take(range(*window), axis) for window in adaptive_windows(wide.shape[axis], outputs)
            ]
            wide = np.concatenate([reduce(part, axis, keepdims=True) for part in parts], axis)
        return wide.astype(x.dtype)

    @op.decompose
    def adaptive_pool_windows(g: Any, x: Any, output_size: list[int]) -> Any:
        """Divisible axes become one pooling, the others are pooled window by window.

        Axes of an open size are reduced to one element; only a mean over all axes has operators of its own.
        """
        extents = g.type(x).shape[2:]
        whole = [axis for axis, size in enumerate(output_size) if size == 1 and is_symbolic(extents[axis])]
        if whole and not (kind == "avg" and set(output_size) == {1}):
            x = g.call(over, x, [axis + 2 for axis in whole], True)
            extents = g.type(x).shape[2:]
        even = [extent % outputs == 0 for extent, outputs in zip(extents, output_size, strict=True)]
        if any(even):
            steps = [
                extent // outputs if is_even else 1
                for extent, outputs, is_even in zip(extents, output_size, even, strict=True)
            ]
            x = g.call(f"aten::{kind}_pool{axes}d", x, steps, steps)
        for axis, (outputs, is_even) in enumerate(zip(output_size, even, strict=True), 2):
            if not is_even:
                windows = adaptive_windows(extents[axis - 2], outputs)
                parts = [g.call("aten::slice", x, axis, *window) for window in windows]
                x = g.call("aten::cat", [g.call(over, part, [axis], True) for part in parts], axis)
        return x

    return op


OPS = [
    *(_op("avg", axes, FLOATS, np.mean, "aten::mean") for axes in (1, 2, 3)),
    *(_op("max", axes, (*FLOATS, "int8", "uint8"), np.max, "aten::amax") for axes in (1, 2, 3)),
]
