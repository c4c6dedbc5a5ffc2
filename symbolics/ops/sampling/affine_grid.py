"""aten::affine_grid_generator: sampling positions of an affine map, for grid_sampler."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.ir.node import TensorNode
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.indices import numbers
from tmconvert.symbolics.op import FLOATS, Op, Tensor, boolean, integers

Array = np.ndarray


def _result(theta: TensorType, size: list[int], align_corners: bool) -> TensorType:
    axes = len(size) - 2
    if axes not in (2, 3) or theta.shape != (size[0], axes, axes + 1):
        raise ValueError(f"theta {theta} does not fit images of {size}")
    return TensorType(theta.dtype, (size[0], *size[2:], axes))


affine_grid = Op(
    "aten::affine_grid_generator",
    args=[Tensor("theta", FLOATS, ranks=(3,)), integers("size"), boolean("align_corners")],
    result=_result,
)


def _pixels(extents: list[int], align_corners: bool, dtype: Any) -> Array:
    """[pixels, axes + 1]: homogeneous pixel coordinates, the last axis first.

    From -1 to 1, which are the centres of the outermost pixels, or their outer edges. A single one is at 0.
    """
    lines = []
    for extent in extents:
        line = np.linspace(-1, 1, extent) if extent > 1 else np.zeros(1)
        lines.append(line if align_corners else line * ((extent - 1) / extent))
    places = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(extents)], -1)
    return places.reshape(-1, len(extents) + 1).astype(dtype)


def _symbolic_pixels(g: Any, extents: list[int], align_corners: bool, dtype: np.dtype) -> Any:
    """[1, pixels, axes + 1]: the same for symbolic sizes."""
    columns = []
    for axis, extent in enumerate(extents):
        line = Term(g, numbers(g, 0, extent)).to(dtype)
        last = Term(g, g.constant([extent - 1], np.int64)).to(dtype)
        count = last.maximum(last.like(1)) if align_corners else last + 1
        alone = [extent if i == axis else 1 for i in range(len(extents))]
        line = ((line * 2 - last) / count).call("reshape", shape=alone)
        columns.append(
            g.call("aten::reshape", g.call("aten::expand", line.value, extents), [math.prod(extents), 1])
        )
    rows = g.type(columns[0]).shape[0]
    ones = g.call("aten::expand", g.constant([[1]], dtype), [rows, 1])
    pixels = g.call("aten::cat", [*columns[::-1], ones], 1)
    return g.call("aten::reshape", pixels, [1, rows, len(extents) + 1])


@affine_grid.reference
def affine_grid_ref(theta: Array, size: list[int], align_corners: bool) -> Array:
    """Shapes: theta [N, 2, 3] or [N, 3, 4], size of images [N, C, ...] -> [N, ..., 2 or 3], x first.

    Source: torch.nn.functional.affine_grid.
    """
    places = _pixels(size[2:], align_corners, theta.dtype) @ theta.swapaxes(1, 2)
    return places.reshape(size[0], *size[2:], -1)


@affine_grid.native_where("onnx")
def has_rows_and_columns(theta: TensorNode, size: list[int], align_corners: bool) -> bool:
    """With aligned corners, AffineGrid has the only position of an axis at its end, PyTorch in the middle."""
    return not align_corners or all(isinstance(extent, int) and extent > 1 for extent in size[2:])


@affine_grid.onnx(since=20)
def affine_grid_onnx20(g, theta, size, align_corners):
    return g.op("AffineGrid", theta, g.ints(size), align_corners=int(align_corners))


@affine_grid.decompose
def affine_grid_product(g, theta, size, align_corners):
    dtype = g.type(theta).dtype
    if is_symbolic(size[2:]):
        places = _symbolic_pixels(g, size[2:], align_corners, dtype)
    else:
        places = g.constant(_pixels(size[2:], align_corners, dtype)[None])
    maps = g.call("aten::permute", theta, [0, 2, 1])
    result = g.call("aten::matmul", places, maps)
    return g.call("aten::reshape", result, [size[0], *size[2:], len(size) - 2])
