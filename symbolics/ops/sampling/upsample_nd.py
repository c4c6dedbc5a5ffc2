"""Upsampling of one and three axes, bicubic, antialiased and nearest-exact.

Each mode that interpolates is a product with a matrix along each axis; ONNX has an operator for bicubic, too.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.dynamic_resizing import cubic
from tmconvert.symbolics.op import ANY_DTYPE, FLOATS, Argument, Op, Tensor, boolean, integers
from tmconvert.symbolics.ops.sampling.upsample import (
    SCALES,
    each,
    resized,
    scales_matter,
    upsample_bilinear2d_ref,
    upsample_nearest2d_ref,
)
from tmconvert.symbolics.resizing import (
    CUBIC,
    Matrix,
    antialiased_cubic,
    antialiased_linear,
    cubic_matrix,
    exact_places,
    multiplied,
    resized_onnx,
)

Array = np.ndarray
Scales = list[float] | None


def _op(name: str, axes: int, *, mixes: bool, dtypes: tuple[str, ...] = FLOATS) -> Op:
    """``mixes`` is whether the op interpolates and takes align_corners."""
    corners = [boolean("align_corners", False)] if mixes else []
    x = Tensor("x", dtypes, ranks=(axes + 2,))
    args: list[Argument] = [x, integers("output_size", length=axes), *corners, SCALES]
    return Op(f"aten::{name}", args=args, result=resized)


nearest1d, nearest3d = (_op(f"upsample_nearest{axes}d", axes, mixes=False) for axes in (1, 3))
exact = [_op(f"_upsample_nearest_exact{axes}d", axes, mixes=False, dtypes=ANY_DTYPE) for axes in (1, 2, 3)]
linear1d = _op("upsample_linear1d", 1, mixes=True)
trilinear3d = _op("upsample_trilinear3d", 3, mixes=True)
bicubic2d = _op("upsample_bicubic2d", 2, mixes=True)
bilinear2d_aa = _op("_upsample_bilinear2d_aa", 2, mixes=True)
bicubic2d_aa = _op("_upsample_bicubic2d_aa", 2, mixes=True)
OPS = [nearest1d, nearest3d, *exact, linear1d, trilinear3d, bicubic2d, bilinear2d_aa, bicubic2d_aa]


# ---- elements by their number


def _places(spatial: Any, output_size: list[int], scales: Scales) -> list[Array]:
    """Returns the indices of the copied elements by axis; they require static sizes."""
    sizes = (map(operator.index, extents) for extents in (spatial, output_size))
    return list(map(exact_places, *sizes, each(scales, len(output_size))))


def _taken(x: Array, output_size: list[int], scales: Scales) -> Array:
    for axis, places in enumerate(_places(x.shape[2:], output_size, scales), 2):
        x = x.take(places, axis)
    return x


def _selected(g: Any, x: Any, output_size: list[int], scales: Scales) -> Any:
    for axis, places in enumerate(_places(g.type(x).shape[2:], output_size, scales), 2):
        x = g.call("aten::index_select", x, axis, g.constant(places))
    return x


for _exact in exact:
    _exact.reference(lambda x, output_size, scales: _taken(x, output_size, scales))
    _exact.decompose(lambda g, x, output_size, scales: _selected(g, x, output_size, scales))


# ---- one axis and three, by two at a time


def _stretched(g: Any, op: str, x: Any, output_size: list[int], scales: Scales, **options: Any) -> Any:
    """Resizes ``x`` [N, C, ...] by an op of two axes."""
    shape = g.type(x).shape
    if len(output_size) == 1:
        x = g.call("aten::reshape", x, [*shape, 1])
        x = g.call(op, x, [*output_size, 1], scales=scales and [*scales, 1], **options)
        return g.call("aten::reshape", x, [*shape[:2], *output_size])
    depth, height, width = output_size
    x = g.call("aten::reshape", x, [shape[0], shape[1] * shape[2], *shape[3:]])
    x = g.call(op, x, [height, width], scales=scales and scales[1:], **options)
    x = g.call("aten::reshape", x, [*shape[:3], height * width])
    x = g.call(op, x, [depth, height * width], scales=scales and [scales[0], 1], **options)
    return g.call("aten::reshape", x, [*shape[:2], *output_size])


for _nearest in (nearest1d, nearest3d):
    _nearest.reference(lambda x, output_size, scales: upsample_nearest2d_ref(x, output_size, scales))
    _nearest.decompose(
        lambda g, x, output_size, scales: _stretched(g, "aten::upsample_nearest2d", x, output_size, scales)
    )
for _linear in (linear1d, trilinear3d):
    _linear.reference(
        lambda x, output_size, align_corners, scales: upsample_bilinear2d_ref(
            x, output_size, align_corners, scales
        )
    )
    _linear.decompose(
        lambda g, x, output_size, align_corners, scales: _stretched(
            g, "aten::upsample_bilinear2d", x, output_size, scales, align_corners=align_corners
        )
    )


# ---- neighbours mixed by matrices

MATRICES: dict[str, Matrix] = {
    bicubic2d.name: cubic_matrix,
    bilinear2d_aa.name: antialiased_linear,
    bicubic2d_aa.name: antialiased_cubic,
}


def _mixing(op: Op) -> None:
    def matrices(spatial: Any, output_size: list[int], align_corners: bool, scales: Scales) -> list[Array]:
        sizes = (map(operator.index, extents) for extents in (spatial, output_size))
        pairs = zip(*sizes, each(scales), strict=True)
        return [MATRICES[op.name](extent, size, align_corners, scale) for extent, size, scale in pairs]

    def ref(x: Array, output_size: list[int], align_corners: bool, scales: Scales) -> Array:
        wide = x.astype(np.promote_types(x.dtype, np.float32), copy=False)
        down, across = matrices(x.shape[2:], output_size, align_corners, scales)
        return (down.astype(wide.dtype) @ (wide @ across.T.astype(wide.dtype))).astype(x.dtype)

    def mixed_onnx7(g: Any, x: Any, output_size: list[int], align_corners: bool, scales: Scales) -> Any:
        return multiplied(g, x, matrices(x.shape[2:], output_size, align_corners, scales))

    @op.decompose
    def mixed_products(g: Any, x: Any, output_size: list[int], align_corners: bool, scales: Scales) -> Any:
        """Emits one matrix product per axis; taps that the graph computes between dynamic sizes."""
        type_ = g.type(x)
        is_dynamic = is_symbolic((type_.shape[2:], output_size))
        if op is bicubic2d and is_dynamic:
            pairs = zip(output_size, each(scales), strict=True)
            for axis, (size, scale) in enumerate(pairs, 2):
                x = cubic(g, x, axis, size, scale, align_corners)
            return x
        down, across = (
            m.astype(type_.dtype) for m in matrices(type_.shape[2:], output_size, align_corners, scales)
        )
        x = g.call("aten::matmul", x, g.constant(np.ascontiguousarray(across.T)))
        return g.call("aten::matmul", g.constant(down), x)

    def mixed_caffe(g: Any, x: Any, output_size: list[int], align_corners: bool, scales: Scales) -> Any:
        down, across = matrices(x.shape[2:], output_size, align_corners, scales)
        return idioms.caffe.mapped(g, x, down.astype(np.float32), across.astype(np.float32))

    op.reference(ref)
    op.onnx(since=1)(mixed_onnx7)
    op.caffe()(mixed_caffe)


for _mixed in (bicubic2d, bilinear2d_aa, bicubic2d_aa):
    _mixing(_mixed)


@bicubic2d.onnx(since=11)
def upsample_bicubic2d_onnx11(g, x, output_size, align_corners, scales):
    if not align_corners and scales_matter(x.shape[2:], output_size, scales):
        return bicubic2d.symbolics["onnx"][1](g, x, output_size, align_corners, scales)
    transformation = "align_corners" if align_corners else "half_pixel"
    return resized_onnx(
        g, x, output_size, mode="cubic", cubic_coeff_a=CUBIC, coordinate_transformation_mode=transformation
    )
