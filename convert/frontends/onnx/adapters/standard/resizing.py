"""Resize and Upsample.

Where the coordinates are those of PyTorch, they become aten::upsample ops; else elements are selected by
index, or mixed by one matrix for each axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import axis_of, cast, known_numbers, like, rank, static_ints
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import example, is_symbolic, same_size
from tmconvert.symbolics import onnx_resizing as interpolation
from tmconvert.symbolics.onnx_resizing import Axis, Mode
from tmconvert.symbolics.resizing import (
    antialiased_cubic,
    antialiased_linear,
    cubic_matrix,
    linear_matrix,
    nearest_places,
)

OPERATORS = OperatorTable()
POLICIES = {"not_larger": min, "not_smaller": max}
LARGEST, LARGEST_MATRIX = 1 << 20, 1 << 26  # elements of an axis, and of the matrix that mixes them
LARGEST_FACTORED = 1 << 14  # elements of an open axis at which products with a factor are compared
TRIED = ((7, 20), (9, 4), (5, 1), (1, 6), (64, 64), (30, 45))  # extents and outputs that stand for open sizes
CLOSE = 1e-6  # of the weights of two matrices that count as equal
OLD = Mode("nearest", "asymmetric", "simple")  # before opset 11


@OPERATORS.add("Resize", since=11)
def resize(
    g, X, roi=None, scales=None, sizes=None,
    *, antialias=0, axes=None, coordinate_transformation_mode="half_pixel", cubic_coeff_a=-0.75,
    exclude_outside=0, extrapolation_value=0.0, keep_aspect_ratio_policy="stretch", mode="nearest",
    nearest_mode="round_prefer_floor", opened=None,
):  # fmt: skip
    places = list(range(rank(g, X))) if axes is None else [axis_of(g, X, axis) for axis in axes]
    how = Mode(
        mode,
        coordinate_transformation_mode,
        nearest_mode,
        cubic_coeff_a,
        bool(exclude_outside),
        bool(antialias) and mode != "nearest",
    )
    regions = _regions(g, roi, places, how)
    if scales is not None and g.type(scales).size:
        factors = _factors(g, scales, "a scale of Resize")
        found = _by_factors(g, X, places, factors, regions)
    elif sizes is not None:
        wanted = static_ints(g, sizes, "the sizes of Resize")
        if opened and axes is None:
            from tmconvert.frontends.shared.opened_sizes import with_opened_batch

            wanted = with_opened_batch(g, X, wanted, opened)
        found = _by_sizes(g, X, places, wanted, keep_aspect_ratio_policy)
    else:
        raise Refusal("Resize has neither scales nor sizes")
    for axis, region in zip(places, regions, strict=True):
        found[axis] = found[axis]._replace(region=region)
    return _resized(g, X, found, how, extrapolation_value)


def _regions(g: Emitter, roi, places: list[int], how: Mode) -> list[tuple[float, float]]:
    """Returns where the region of interest starts and ends along each axis."""
    if how.coordinates != "tf_crop_and_resize":
        return [(0.0, 1.0)] * len(places)
    if roi is None:
        raise Refusal("tf_crop_and_resize needs the input roi")
    ends = known_numbers(g, roi, "the region of Resize").reshape(2, -1).astype(np.float64)
    if ends.shape[1] != len(places):
        raise Refusal(f"the region of Resize has {ends.shape[1]} axes, not {len(places)}")
    return [(first, last) for first, last in ends.T.tolist()]


def _factors(g: Emitter, scales, what: str) -> list[Any]:
    """Returns scales: numbers, and quotients of open sizes."""
    known = g.known(scales)
    if known is not None:
        return list(known.reshape(-1).tolist())
    from tmconvert.frontends.onnx.adapters.standard.computed_scales import scales_of

    return scales_of(g, scales, what)


def _by_factors(
    g: Emitter, x, places: list[int], factors: list[Any], regions: Sequence[tuple[float, float]]
) -> list[Axis]:
    if len(factors) != len(places) or any(isinstance(s, (int, float)) and not s > 0 for s in factors):
        raise Refusal(f"the scales {factors} do not fit {g.type(x)}")
    found = [Axis(extent, extent, 1.0) for extent in g.type(x).shape]
    for axis, factor, (first, last) in zip(places, factors, regions, strict=True):
        extent = g.type(x).shape[axis]
        if not isinstance(factor, (int, float)):
            from tmconvert.frontends.onnx.adapters.standard.computed_scales import axis_of_quotient

            found[axis] = axis_of_quotient(extent, factor)
            continue
        found[axis] = Axis(extent, _grown(extent, factor * (last - first)), factor)
    return found


def _grown(extent: Any, factor: float) -> Any:
    """floor(extent factor), in float32."""
    if factor == int(factor):
        return extent * int(factor)
    if is_symbolic(extent):
        top, bottom = _fraction(float(np.float32(factor)))
        return extent * top // bottom
    return int(np.floor(np.float32(extent) * np.float32(factor)))


def _fraction(factor: float) -> tuple[int, int]:
    """Returns a fraction with which all sizes are rounded as by the product in float32.

    0.7 is less than 7/10 in float32, but 10 times that is rounded to 7.
    """
    sizes = np.arange(1, LARGEST_FACTORED, dtype=np.int64)
    wanted = np.floor(sizes.astype(np.float32) * np.float32(factor))
    exact = Fraction(factor)
    for fraction in (exact, *(exact.limit_denominator(most) for most in (1 << 4, 1 << 8, 1 << 12))):
        if np.array_equal(sizes * fraction.numerator // fraction.denominator, wanted):
            return fraction.numerator, fraction.denominator
    raise Refusal(f"the sizes times {factor:g} are rounded in float32", "give Resize sizes instead of scales")


def _by_sizes(g: Emitter, x, places: list[int], sizes: Sequence[Any], policy: str) -> list[Axis]:
    shape = g.type(x).shape
    if len(sizes) != len(places):
        raise Refusal(f"the sizes {sizes} do not fit {g.type(x)}")
    found = [Axis(extent, extent, 1.0) for extent in shape]
    if policy in POLICIES:
        if is_symbolic((shape, sizes)):
            raise Refusal(
                f"keep_aspect_ratio_policy {policy} needs static sizes", "make the sizes of the input static"
            )
        factor = POLICIES[policy](size / shape[axis] for axis, size in zip(places, sizes, strict=True))
        for axis in places:
            found[axis] = Axis(shape[axis], int(np.floor(shape[axis] * factor + 0.5)), factor)
        return found
    if policy != "stretch":
        raise Refusal(f"the policy {policy!r} is unknown")
    for axis, size in zip(places, sizes, strict=True):
        found[axis] = Axis(shape[axis], size, None)
    return found


@OPERATORS.add("Resize", since=10)
def resize10(g, X, scales, *, mode="nearest", opened=None):
    return _upsampled(g, X, _factors(g, scales, "a scale of Resize"), mode)


@OPERATORS.add("Upsample", since=9)
def upsample9(g, X, scales, *, mode="nearest"):
    return _upsampled(g, X, _factors(g, scales, "a scale of Upsample"), mode)


@OPERATORS.add("Upsample", since=7)
def upsample7(g, X, *, scales, mode="nearest"):
    return _upsampled(g, X, list(scales), mode)


@OPERATORS.add("Upsample")
def upsample1(g, X, *, height_scale, width_scale, mode="nearest"):
    return _upsampled(g, X, [1.0, 1.0, height_scale, width_scale], mode)


def _upsampled(g: Emitter, x, factors: list[float], mode: str) -> Any:
    places = list(range(rank(g, x)))
    found = _by_factors(g, x, places, factors, [(0.0, 1.0)] * len(places))
    return _resized(g, x, found, OLD._replace(kind="linear" if mode == "bilinear" else mode), 0.0)


# ---- all of them


def _resized(g: Emitter, x, axes: list[Axis], how: Mode, outside: float) -> Any:
    changed = [axis for axis, each in enumerate(axes) if not _is_identity(each, how)]
    if any(example(axes[axis].extent) < 1 for axis in changed):
        raise Refusal(f"Resize of an axis without elements, of {g.type(x)}")
    for extent, outputs in ((example(axes[axis].extent), example(axes[axis].outputs)) for axis in changed):
        if outputs > LARGEST or extent * outputs > LARGEST_MATRIX:
            raise Refusal(f"Resize of an axis of {extent} elements to {outputs} is too large")
    if not changed:
        return x
    if how.kind != "nearest" and g.type(x).dtype.kind != "f":
        if how.antialias:
            raise Refusal(
                "antialiasing of integers is not supported: runtimes round it differently",
                "resize in float32",
            )
        return cast(g, _resized(g, cast(g, x, np.float32), axes, how, outside), g.type(x).dtype)
    made = _by_aten(g, x, axes, changed, how)
    if made is None and is_symbolic([axes[axis][:2] for axis in changed]):
        made = _open(g, x, axes, changed, how)
    elif made is None:
        made = x
        for axis in changed:
            made = _along(g, made, axis, axes[axis], how)
    return _extrapolated(g, made, axes, outside) if how.coordinates == "tf_crop_and_resize" else made


def _is_identity(axis: Axis, how: Mode) -> bool:
    if how.coordinates == "tf_crop_and_resize" and axis.region != (0.0, 1.0):
        return False
    return bool(axis.outputs == axis.extent and (axis.factor is None or axis.factor == 1.0))


def _open(g: Emitter, x, axes: list[Axis], changed: list[int], how: Mode) -> Any:
    """Resizes axes of open sizes by the operator of ONNX itself."""
    if how.coordinates == "tf_crop_and_resize":
        raise Refusal(f"Resize with {how.coordinates} coordinates needs static sizes")
    rounding = "floor" if how.rounding == "simple" else how.rounding
    sizes = [axes[axis].outputs for axis in changed]
    factors = [factor for axis in changed if (factor := axes[axis].factor) is not None]
    if how.rounding == "simple" and any(axes[axis].outputs < axes[axis].extent for axis in changed):
        raise Refusal("Resize that reduces before opset 11 needs static sizes")
    scales = factors if len(factors) == len(changed) else None
    if how.coordinates == "align_corners" and scales is not None and any(each % 1 for each in scales):
        raise interpolation.differing_corners(f"{scales}")
    options = how.coordinates, rounding, how.coefficient, how.excludes_outside, how.antialias
    if g.type(x).dtype.kind == "f":
        return g.call("tm::resize", x, sizes, changed, scales, how.kind, *options)
    from tmconvert.symbolics.ops.sampling.resize import resized_by_indices

    return resized_by_indices(g, x, sizes, changed, scales, how.kind, *options)


def _along(g: Emitter, x, axis: int, each: Axis, how: Mode) -> Any:
    """Resizes one axis by index or by a matrix."""
    if how.kind == "nearest":
        return g.call("aten::index_select", x, axis, g.constant(interpolation.places(each, how)))
    matrix = interpolation.matrix(each, how).astype(g.type(x).dtype)
    last = rank(g, x) - 1
    if axis == last:
        return g.call("aten::matmul", x, g.constant(np.ascontiguousarray(matrix.T)))
    if axis == last - 1:
        return g.call("aten::matmul", g.constant(matrix), x)
    order = [*(place for place in range(last + 1) if place != axis), axis]
    mixed = g.call(
        "aten::matmul", g.call("aten::permute", x, order), g.constant(np.ascontiguousarray(matrix.T))
    )
    return g.call("aten::permute", mixed, np.argsort(order).tolist())


def _extrapolated(g: Emitter, x, axes: list[Axis], value: float) -> Any:
    """Replaces what lies outside of the tensor by a number."""
    for axis, each in enumerate(axes):
        if is_symbolic((each.extent, each.outputs)):
            continue
        is_outside = interpolation.is_outside(each)
        if is_outside.any():
            column = is_outside.reshape([-1 if place == axis else 1 for place in range(len(axes))])
            x = g.call("aten::where", g.constant(column), like(g, x, value), x)
    return x


# ---- coordinates of PyTorch


class _Counterpart(NamedTuple):
    """A family of aten ops, and the indices or the matrix of one axis that they compute with."""

    names: dict[int, str]  # by the number of axes
    has_corners: bool
    compute: Any


def _nearest(extent: int, outputs: int, corners: bool, scale: float | None) -> Any:
    return nearest_places(extent, outputs, scale)


_COUNTERPARTS = {
    ("nearest", False): _Counterpart({n: f"upsample_nearest{n}d" for n in (1, 2, 3)}, False, _nearest),
    ("linear", False): _Counterpart(
        {1: "upsample_linear1d", 2: "upsample_bilinear2d", 3: "upsample_trilinear3d"}, True, linear_matrix
    ),
    ("cubic", False): _Counterpart({2: "upsample_bicubic2d"}, True, cubic_matrix),
    ("linear", True): _Counterpart({2: "_upsample_bilinear2d_aa"}, True, antialiased_linear),
    ("cubic", True): _Counterpart({2: "_upsample_bicubic2d_aa"}, True, antialiased_cubic),
}


def _by_aten(g: Emitter, x, axes: list[Axis], changed: list[int], how: Mode) -> Any:
    """Resizes by an op of PyTorch; None where there is none with these coordinates."""
    count = len(axes) - 2
    counterpart = _COUNTERPARTS.get((how.kind, how.antialias))
    if counterpart is None or count not in counterpart.names or g.type(x).dtype.kind != "f":
        return None
    spatial = list(range(2, len(axes)))
    if not set(changed) <= set(spatial):
        return _channels_last(g, x, axes, changed, how)
    for corners in (False, True) if counterpart.has_corners else (False,):
        for factors in (None, [axes[axis].factor or 1.0 for axis in spatial]):
            scales = [None] * count if factors is None else factors
            if all(
                _agrees(axes[axis], how, counterpart, corners, s)
                for axis, s in zip(spatial, scales, strict=True)
            ):
                options = {"align_corners": corners} if counterpart.has_corners else {}
                sizes = [axes[axis].outputs for axis in spatial]
                return g.call(f"aten::{counterpart.names[count]}", x, sizes, scales=factors, **options)
    return None


def _agrees(axis: Axis, how: Mode, counterpart: _Counterpart, corners: bool, scale: float | None) -> bool:
    """Whether an op of PyTorch takes the same elements; open sizes are compared at several."""
    if scale is not None and axis.factor is None:
        return False
    if is_symbolic((axis.extent, axis.outputs)):
        tried = [] if scale is not None or how.antialias else _tried(axis, how)
        return bool(tried) and all(_agrees(each, how, counterpart, corners, None) for each in tried)
    theirs = counterpart.compute(axis.extent, axis.outputs, corners, scale)
    if how.kind == "nearest":
        return bool(np.array_equal(theirs, interpolation.places(axis, how)))
    return bool(np.allclose(theirs, interpolation.matrix(axis, how), rtol=0, atol=CLOSE))


def _tried(axis: Axis, how: Mode) -> list[Axis]:
    """Returns axes of static sizes that stand for an open one; none where each size is rounded otherwise."""
    factor: Any = axis.factor
    if factor is None:
        ratio = axis.outputs // axis.extent
        factor = ratio if same_size(axis.outputs, ratio * axis.extent) else None
    if isinstance(factor, (int, float)) and factor == int(factor):
        given = None if axis.factor is None else factor
        return [Axis(extent, extent * int(factor), given) for extent, _ in TRIED]
    if axis.factor is not None or how.kind == "nearest":
        return []
    return [Axis(extent, outputs) for extent, outputs in TRIED]


def _channels_last(g: Emitter, x, axes: list[Axis], changed: list[int], how: Mode) -> Any:
    """Resizes [N, ..., C] with its channels moved to the front; None where they are resized, too."""
    last = len(axes) - 1
    if not set(changed) <= set(range(1, last)):
        return None
    order = [0, last, *range(1, last)]
    moved = g.call("aten::permute", x, order)
    made = _by_aten(g, moved, [axes[axis] for axis in order], [axis + 1 for axis in changed], how)
    return None if made is None else g.call("aten::permute", made, [0, *range(2, last + 1), 1])
