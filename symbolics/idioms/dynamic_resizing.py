"""Resizing between dynamic sizes along an axis: the graph computes which elements are copied or mixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.resizing import CUBIC, PILLOW

# factors may be quotients of sizes: tensors of rank 0 then
Scales = Sequence[Any] | None


def averaged(g: Emitter, x: Any, sizes: Sequence[Any]) -> Any:
    """Adaptive average pooling to ``sizes``: each output is the mean of the elements that it covers."""
    for axis, size in enumerate(sizes, 2):
        extent = g.type(x).shape[axis]
        places, outputs = (Term(g, g.call("aten::arange", 0, count)) for count in (extent, size))
        places = Term(g, g.call("aten::reshape", places.value, [extent, 1]))
        first = (outputs * extent).call("floor_divide", size)
        last = ((outputs + 1) * extent + size - 1).call("floor_divide", size)
        dtype = g.type(x).dtype
        weights = ((first <= places) & (places < last)).to(dtype)
        x = _mixed(g, x, axis, weights / (last - first).to(dtype))
    return x


def _ratio(g: Emitter, extent: Any, size: Any, scale: Any, *, copies: bool = False) -> Term:
    """Returns the ratio of the sizes, or the inverse of ``scale``, rounded to float32 as in torch.

    With ``copies`` it is 1 where the sizes are equal, whatever the scale.
    """
    sizes = [Term(g, g.constant(each, np.float32)) for each in (extent, size)]
    if scale is None:
        return sizes[0] / sizes[1]
    ratio = Term(g, g.constant(np.float32(1 / scale))) if isinstance(scale, float) else 1 / Term(g, scale)
    return sizes[0].eq(sizes[1]).where(1.0, ratio) if copies else ratio


def size_outputs(g: Emitter, size: Any) -> Term:
    return Term(g, g.call("aten::arange", 0, size)).to(np.float32)


def _index(place: Term, extent: Any) -> Term:
    """Returns float positions as indices within the axis."""
    last = Term(place.g, place.g.constant(extent - 1, np.int64))
    return place.call("floor").to(np.int64).call("minimum", last)


def _copied(offset: float) -> Callable[..., Any]:
    """Returns the function that copies the elements at floor((i + offset) ratio) along an axis."""

    def along(g: Emitter, x: Any, axis: int, size: Any, scale: Any) -> Any:
        extent = g.type(x).shape[axis]
        places = size_outputs(g, size)
        centre = (places + offset if offset else places) * _ratio(g, extent, size, scale)
        return g.call("aten::index_select", x, axis, _index(centre, extent).value)

    return along


def _centre(g: Emitter, size: Any, ratio: Term) -> Term:
    return (size_outputs(g, size) + 0.5) * ratio - 0.5


def _linear(g: Emitter, x: Any, axis: int, size: Any, scale: Any) -> Any:
    extent = g.type(x).shape[axis]
    ratio = _ratio(g, extent, size, scale, copies=True)
    centre = _centre(g, size, ratio).call("maximum", Term(g, g.constant(np.float32(0))))
    centre = centre.call("minimum", Term(g, g.constant(extent - 1, np.float32)))
    first = centre.call("floor")
    return weighted(g, x, axis, [(first, 1 - (centre - first)), (first + 1, centre - first)])


def cubic(g: Emitter, x: Any, axis: int, size: Any, scale: Any, align_corners: bool = False) -> Any:
    """Bicubic resizing along one axis."""
    extent = g.type(x).shape[axis]
    if align_corners:
        steps = Term(g, g.constant(size - 1, np.float32)).call("maximum", 1)
        centre = size_outputs(g, size) * (Term(g, g.constant(extent - 1, np.float32)) / steps)
    else:
        centre = _centre(g, size, _ratio(g, extent, size, scale))
    first = centre.call("floor")
    taps = [(first + tap, cubic_weight(centre - first - tap)) for tap in (-1, 0, 1, 2)]
    return weighted(g, x, axis, taps)


def weighted(g: Emitter, x: Any, axis: int, taps: list[tuple[Term, Term]]) -> Any:
    """Returns the sum of elements at positions times weights, along an axis."""
    extent, rank, dtype = g.type(x).shape[axis], g.type(x).rank, g.type(x).dtype
    zero = Term(g, g.constant(np.int64(0)))
    total = None
    for place, weight in taps:
        index = _index(place, extent).call("maximum", zero)
        part = Term(g, g.call("aten::index_select", x, axis, index.value))
        shape = [g.type(weight.value).shape[0], *[1] * (rank - 1 - axis)]
        part = part * Term(g, g.call("aten::reshape", weight.value, shape)).to(dtype)
        total = part if total is None else total + part
    assert total is not None
    return total.value


def _mixed(g: Emitter, x: Any, axis: int, matrix: Term) -> Any:
    """Multiplies an axis of ``x`` by a matrix [extent, outputs]."""
    order = list(range(g.type(x).rank))
    order[axis], order[-1] = order[-1], order[axis]  # its own inverse
    made = g.call("aten::matmul", g.call("aten::permute", x, order), matrix.value)
    return g.call("aten::permute", made, order)


def _antialiased(kernel: Callable[[Term], Term]) -> Callable[..., Any]:
    """Returns a function that resizes by a kernel widened by the reduction ratio. Source: Pillow, resize."""

    def along(g: Emitter, x: Any, axis: int, size: Any, scale: Any) -> Any:
        extent, dtype = g.type(x).shape[axis], g.type(x).dtype
        ratio = _ratio(g, extent, size, scale, copies=True)
        width = ratio.call("maximum", Term(g, g.constant(np.float32(1))))
        places = Term(g, g.call("aten::reshape", size_outputs(g, extent).value, [extent, 1]))
        weights = kernel((places + 0.5 - (size_outputs(g, size) + 0.5) * ratio) / width)
        total = Term(g, g.call("aten::sum", weights.value, [0], True))
        return _mixed(g, x, axis, (weights / total).to(dtype))

    return along


def _linear_weight(distance: Term) -> Term:
    return (1 - distance.call("abs")).call("relu")


def cubic_weight(distance: Term, a: float = CUBIC) -> Term:
    """The kernel of cubic convolution. Source: Keys 1981."""
    t = distance.call("abs")
    near = ((t * (a + 2) - (a + 3)) * t) * t + 1
    far = ((t * a - 5 * a) * t + 8 * a) * t - 4 * a
    return (t <= 1).where(near, (t < 2).where(far, 0.0))


# by the name of the aten op: (g, x, axis, size, scale) -> what x becomes
ALONG: dict[str, Callable[..., Any]] = {
    **{f"upsample_nearest{axes}d": _copied(0) for axes in (1, 2, 3)},
    **{f"_upsample_nearest_exact{axes}d": _copied(0.5) for axes in (1, 2, 3)},
    **dict.fromkeys(("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"), _linear),
    "upsample_bicubic2d": cubic,
    "_upsample_bilinear2d_aa": _antialiased(_linear_weight),
    "_upsample_bicubic2d_aa": _antialiased(lambda distance: cubic_weight(distance, PILLOW)),
}
