"""The other ways to resize: of one and of three axes, bicubic, with antialiasing, to the exact nearest.

What mixes neighbours is a matrix for each axis; bicubic is an operator of ONNX, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.types import TensorType
from ..op import ANY_DTYPE, FLOATS, Op, Tensor, boolean, integers
from .upsample import upsample_bilinear2d_ref, upsample_nearest2d_ref

Array = np.ndarray
Matrix = Callable[[int, int, bool], Array]

CUBIC = -0.75  # the coefficient of bicubic convolution; Pillow, whose antialiasing is copied, has -0.5
PILLOW = -0.5


def _result(x: TensorType, output_size: list[int], align_corners: bool = False) -> TensorType:
    if x.rank != len(output_size) + 2 or any(extent < 1 for extent in x.shape[2:]):
        raise ValueError(f"x {x} must have rank {len(output_size) + 2}, with an image in the last axes")
    if any(size < 1 for size in output_size):
        raise ValueError(f"{output_size} is no size of an image")
    return TensorType(x.dtype, (*x.shape[:2], *output_size))


def _op(name: str, axes: int, *, mixes: bool, dtypes: tuple[str, ...] = FLOATS) -> Op:
    """``mixes`` for weighted means, which take align_corners."""
    corners = [boolean("align_corners", False)] if mixes else []
    x = Tensor("x", dtypes, ranks=(axes + 2,))
    op = Op(f"aten::{name}", args=[x, integers("output_size", length=axes), *corners], result=_result)
    op.unsupported("caffe", "not written yet for Caffe")
    return op


nearest1d, nearest3d = (_op(f"upsample_nearest{axes}d", axes, mixes=False) for axes in (1, 3))
exact = [_op(f"_upsample_nearest_exact{axes}d", axes, mixes=False, dtypes=ANY_DTYPE) for axes in (1, 2, 3)]
linear1d = _op("upsample_linear1d", 1, mixes=True)
trilinear3d = _op("upsample_trilinear3d", 3, mixes=True)
bicubic2d = _op("upsample_bicubic2d", 2, mixes=True)
bilinear2d_aa = _op("_upsample_bilinear2d_aa", 2, mixes=True)
bicubic2d_aa = _op("_upsample_bicubic2d_aa", 2, mixes=True)
OPS = [nearest1d, nearest3d, *exact, linear1d, trilinear3d, bicubic2d, bilinear2d_aa, bicubic2d_aa]


# ---- elements by their number


def _nearest_exact(extent: int, outputs: int) -> Array:
    """floor((i + 1/2) extent / outputs). Source: torch.nn.functional.interpolate, "nearest-exact"."""
    ratio = np.float32(extent) / np.float32(outputs)
    places = np.floor((np.arange(outputs, dtype=np.float32) + np.float32(0.5)) * ratio)
    return np.minimum(places.astype(np.int64), extent - 1)


def _taken(x: Array, output_size: list[int]) -> Array:
    for axis, outputs in enumerate(output_size, 2):
        x = x.take(_nearest_exact(x.shape[axis], outputs), axis)
    return x


def _selected(g: Any, x: Any, output_size: list[int]) -> Any:
    for axis, outputs in enumerate(output_size, 2):
        places = g.constant(_nearest_exact(g.type(x).shape[axis], outputs))
        x = g.call("aten::index_select", x, axis, places)
    return x


for _exact in exact:
    _exact.reference(lambda x, output_size: _taken(x, output_size))
    _exact.decompose(lambda g, x, output_size: _selected(g, x, output_size))


# ---- one axis and three, by two at a time


def _stretched(g: Any, op: str, x: Any, output_size: Sequence[int], **options: Any) -> Any:
    """``x`` [N, C, ...] resized by an op of two axes."""
    shape = g.type(x).shape
    if len(output_size) == 1:
        x = g.call("aten::reshape", x, [*shape, 1])
        x = g.call(op, x, [*output_size, 1], **options)
        return g.call("aten::reshape", x, [*shape[:2], *output_size])
    depth, height, width = output_size
    x = g.call("aten::reshape", x, [shape[0], shape[1] * shape[2], *shape[3:]])
    x = g.call(op, x, [height, width], **options)
    x = g.call("aten::reshape", x, [*shape[:3], height * width])
    x = g.call(op, x, [depth, height * width], **options)
    return g.call("aten::reshape", x, [*shape[:2], *output_size])


for _stretch in (nearest1d, nearest3d, linear1d, trilinear3d):
    _stretch.unsupported("tflite", "not written yet for TFLite")
for _nearest in (nearest1d, nearest3d):
    _nearest.reference(lambda x, output_size: upsample_nearest2d_ref(x, output_size))
    _nearest.decompose(lambda g, x, output_size: _stretched(g, "aten::upsample_nearest2d", x, output_size))
for _linear in (linear1d, trilinear3d):
    _linear.reference(
        lambda x, output_size, align_corners: upsample_bilinear2d_ref(x, output_size, align_corners)
    )
    _linear.decompose(
        lambda g, x, output_size, align_corners: _stretched(
            g, "aten::upsample_bilinear2d", x, output_size, align_corners=align_corners
        )
    )


# ---- neighbours mixed by matrices


def _cubic(distance: Array, a: float) -> Array:
    """The kernel of cubic convolution. Source: Keys 1981; torch upsample_bicubic2d."""
    t = np.abs(distance)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def _cubic_matrix(extent: int, outputs: int, align_corners: bool) -> Array:
    """[outputs, extent]; what lies outside is the edge's."""
    places = np.arange(outputs)
    if align_corners:
        centre = places * ((extent - 1) / max(outputs - 1, 1))
    else:
        centre = (places + 0.5) * (extent / outputs) - 0.5
    matrix, first = np.zeros((outputs, extent)), np.floor(centre)
    for tap in (-1, 0, 1, 2):
        source = (first + tap).clip(0, extent - 1).astype(np.int64)
        np.add.at(matrix, (places, source), _cubic(centre - first - tap, CUBIC))
    return matrix


def _antialiased(kernel: Callable[[Array], Array], support: float) -> Matrix:
    """The kernel widened by the ratio of a reduction, and normalized. Source: Pillow, resize."""

    def matrix(extent: int, outputs: int, align_corners: bool) -> Array:
        if align_corners and outputs > 1:
            ratio = (extent - 1) / (outputs - 1)
            centre = np.arange(outputs) * ratio + 0.5
        else:
            ratio = extent / outputs
            centre = (np.arange(outputs) + 0.5) * ratio
        scale = max(ratio, 1.0)
        distance = (np.arange(extent) + 0.5 - centre[:, None]) / scale
        low = np.maximum(np.trunc(centre - support * scale + 0.5), 0)[:, None]
        high = np.minimum(np.trunc(centre + support * scale + 0.5), extent)[:, None]
        places = np.arange(extent)
        weights = np.where((places >= low) & (places < high), kernel(distance), 0)
        return weights / weights.sum(1, keepdims=True)

    return matrix


MATRICES: dict[str, Matrix] = {
    bicubic2d.name: _cubic_matrix,
    bilinear2d_aa.name: _antialiased(lambda distance: np.maximum(1 - np.abs(distance), 0), 1),
    bicubic2d_aa.name: _antialiased(lambda distance: _cubic(distance, PILLOW), 2),
}


def _mixing(op: Op) -> None:
    matrix = MATRICES[op.name]

    def ref(x: Array, output_size: list[int], align_corners: bool) -> Array:
        rows, columns = (
            matrix(extent, outputs, align_corners).astype(x.dtype)
            for extent, outputs in zip(x.shape[2:], output_size, strict=True)
        )
        return rows @ (x @ columns.T)

    def mixed_onnx7(g: Any, x: Any, output_size: list[int], align_corners: bool) -> Any:
        (height, width), (rows, columns) = x.shape[2:], output_size
        if width != columns:
            right = g.const(matrix(width, columns, align_corners).T.astype(x.dtype))
            x = g.op("MatMul", x, right, shape=(*x.shape[:3], columns))
        if height != rows:
            left = g.const(matrix(height, rows, align_corners).astype(x.dtype))
            x = g.op("MatMul", left, x, shape=(*x.shape[:2], rows, columns))
        return x

    op.reference(ref)
    op.onnx(since=1)(mixed_onnx7)
    op.unsupported("tflite", "not written yet for TFLite")


for _mixed in (bicubic2d, bilinear2d_aa, bicubic2d_aa):
    _mixing(_mixed)


@bicubic2d.onnx(since=11)
def upsample_bicubic2d_onnx11(g, x, output_size, align_corners):
    nothing = g.const(np.zeros(0, np.float32))
    return g.op(
        "Resize",
        x,
        nothing,
        nothing,
        g.ints([*x.shape[:2], *output_size]),
        mode="cubic",
        cubic_coeff_a=CUBIC,
        coordinate_transformation_mode="align_corners" if align_corners else "half_pixel",
        shape=g.result_types[0].shape,
    )
