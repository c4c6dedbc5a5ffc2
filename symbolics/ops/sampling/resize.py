"""tm::resize: Resize of ONNX along axes of open sizes, in coordinates that no op of PyTorch has.

ONNX keeps its operator. Elsewhere the graph computes the elements that are copied or mixed. Coordinates are
computed in float32, as ONNX Runtime does. Source: the page of Resize in onnx/docs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir.node import TensorNode
from tmconvert.ir.symbolic.dims import example, is_symbolic
from tmconvert.ir.types import Ints, TensorType
from tmconvert.symbolics.idioms.dynamic_resizing import cubic_weight, size_outputs, weighted
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.onnx_resizing import Axis, Mode, matrix, places
from tmconvert.symbolics.op import FLOATS, Op, Tensor, boolean, choice, integers, number
from tmconvert.symbolics.ops.sampling.upsample import SCALES
from tmconvert.symbolics.resizing import CUBIC, absent_input

COORDINATES = [
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_half_pixel_for_nn",
]  # fmt: skip
ROUNDINGS: dict[str, Callable[[Term], Term]] = {
    "floor": lambda centre: centre.floor(),
    "ceil": lambda centre: centre.ceil(),
    "round_prefer_floor": lambda centre: (centre - 0.5).ceil(),
    "round_prefer_ceil": lambda centre: (centre + 0.5).floor(),
}
_NOT_IN_ALL_OPSETS = ("half_pixel_symmetric", "tf_half_pixel_for_nn")


def _result(x: TensorType, output_size: Ints, dims: Ints, **options: Any) -> TensorType:
    if len(dims) != len(output_size) or not all(0 <= axis < x.rank for axis in dims):
        raise ValueError(f"the axes {dims} do not fit x {x} and the sizes {output_size}")
    sizes = dict(zip(dims, output_size, strict=True))
    return TensorType(x.dtype, tuple(sizes.get(axis, extent) for axis, extent in enumerate(x.shape)))


resize = Op(
    "tm::resize",
    args=[
        Tensor("x", FLOATS), integers("output_size"), integers("dims"), SCALES,
        choice("mode", ["nearest", "linear", "cubic"], "nearest"),
        choice("coordinates", COORDINATES, "half_pixel"),
        choice("rounding", list(ROUNDINGS), "round_prefer_floor"), number("coefficient", CUBIC),
        boolean("excludes_outside", False), boolean("antialias", False),
    ],
    result=_result,
)  # fmt: skip
OPS = [resize]


@resize.onnx(since=18)
def resize_onnx18(
    g, x, output_size, dims, scales, mode, coordinates, rounding, coefficient, excludes_outside, antialias
):
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        attributes["nearest_mode"] = rounding
    elif mode == "cubic":
        attributes["cubic_coeff_a"] = float(coefficient)
    flags = {"exclude_outside": excludes_outside, "antialias": antialias}
    attributes |= {name: 1 for name, is_set in flags.items() if is_set}
    shape, absent = g.result_types[0].shape, absent_input(g)
    if scales is None:
        return g.op("Resize", x, absent, absent, g.ints(list(shape)), shape=shape, **attributes)
    factors = dict(zip(dims, scales, strict=True))
    growth = np.array([factors.get(axis, 1.0) for axis in range(len(shape))], np.float32)
    return g.op("Resize", x, absent, g.const(growth), shape=shape, **attributes)


@resize.onnx(since=11)
def resize_onnx11(g, antialias, **options):
    if antialias:
        g.refuse("antialiasing of a dynamic axis needs opset 18 (--opset 18)")
    return resize_onnx18(g, antialias=False, **options)


@resize.native_where("onnx")
def is_resize(
    x: TensorNode, output_size: Ints, dims: Ints, scales: list[float] | None, coordinates: str, **_: Any
) -> bool:
    """Whether all opsets have the coordinates, and the scales make the sizes."""
    if coordinates in _NOT_IN_ALL_OPSETS:
        return False
    return scales is None or all(
        is_symbolic(x.type.shape[axis]) == is_symbolic(size)
        and int(np.float32(example(x.type.shape[axis])) * np.float32(scale)) == example(size)
        for axis, size, scale in zip(dims, output_size, scales, strict=True)
    )


@resize.decompose
def resized_by_indices(
    g, x, output_size, dims, scales, mode, coordinates, rounding, coefficient, excludes_outside, antialias
):
    if antialias:
        raise Refusal("antialiasing of a dynamic axis: only ONNX has an operator, from opset 18 on")
    for axis, size, factor in zip(dims, output_size, scales or [None] * len(dims), strict=True):
        extent = g.type(x).shape[axis]
        last = _as_float(g, extent - 1)
        centre = _centre(g, extent, size, factor, coordinates)
        if mode == "nearest":
            chosen = ROUNDINGS[rounding](centre).call("maximum", 0.0).call("minimum", last).to(np.int64)
            x = g.call("aten::index_select", x, axis, chosen.value)
            continue
        if mode == "linear":
            centre = centre.call("maximum", 0.0).call("minimum", last)
            first = centre.floor()
            taps = [(first, 1 - (centre - first)), (first + 1, centre - first)]
        else:
            first = centre.floor()
            taps = [(first + tap, cubic_weight(centre - first - tap, coefficient)) for tap in (-1, 0, 1, 2)]
        x = weighted(g, x, axis, _inside(taps, last) if excludes_outside and mode == "cubic" else taps)
    return x


def _inside(taps: list[tuple[Term, Term]], last: Term) -> list[tuple[Term, Term]]:
    """Returns taps without those outside of the image; the weights of the others are scaled to 1."""
    kept = [(place, weight * ((place >= 0) & (place <= last)).to(np.float32)) for place, weight in taps]
    total = kept[0][1]
    for _, weight in kept[1:]:
        total = total + weight
    return [(place, weight / total) for place, weight in kept]


def _as_float(g: Any, size: Any) -> Term:
    return Term(g, g.constant(size, np.int64)).to(np.float32)


def _centre(g: Any, extent: Any, size: Any, factor: float | None, coordinates: str) -> Term:
    """Returns where each output is on the axis, a vector of float32."""
    steps = size_outputs(g, size)
    count, made = _as_float(g, extent), _as_float(g, size)
    if coordinates == "align_corners":
        return steps * (count - 1) / (made - 1).call("maximum", 1.0)
    scale = made / count if factor is None else Term(g, g.constant(np.float32(factor)))
    if coordinates == "asymmetric":
        return steps / scale
    if coordinates == "tf_half_pixel_for_nn":
        return (steps + 0.5) / scale
    centre = (steps + 0.5) / scale - 0.5
    if coordinates == "half_pixel_symmetric":
        return centre + (count / 2) * (1 - made / (scale * count))
    if coordinates == "pytorch_half_pixel":
        return (made > 1).where(centre, 0.0)
    return centre


@resize.reference
def resize_ref(
    x: np.ndarray, output_size: Ints, dims: Ints, scales: list[float] | None, mode: str, coordinates: str,
    rounding: str, coefficient: float, excludes_outside: bool, antialias: bool,
) -> np.ndarray:  # fmt: skip
    """Shapes: x [...] -> the same with ``output_size`` along the axes ``dims``."""
    how = Mode(mode, coordinates, rounding, coefficient, excludes_outside, antialias)
    factors: list[float | None] = [None] * len(dims) if scales is None else list(scales)
    for axis, size, factor in zip(dims, output_size, factors, strict=True):
        each = Axis(x.shape[axis], size, factor)
        if mode == "nearest":
            x = x.take(places(each, how), axis)
        else:
            mixed = x.swapaxes(axis, -1).astype(np.float64) @ matrix(each, how).T
            x = mixed.swapaxes(axis, -1).astype(x.dtype)
    return x
