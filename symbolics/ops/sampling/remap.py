"""tm::remap: images sampled at given positions.

A place between pixels is a weighted mean of its neighbours, the taps. The border rule says which pixel
stands for a tap outside of the image.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.op import FLOATS, INDICES, Op, Tensor, choice, number

Array = np.ndarray

CUBIC = -0.75  # of cubic convolution, in OpenCV and torch

# Where a tap that is outside of n pixels is found: OpenCV's names for abcd as of -4 ... 7.
BORDERS = (
    "replicate",  # aaaa|abcd|dddd
    "reflect",  # dcba|abcd|dcba
    "reflect_101",  # cbdc... the edge not twice: dcb|abcd|cba
    "wrap",  # abcd|abcd|abcd
    "constant",
)


def remap_result(x: TensorType, places: TensorType, batch: TensorType | None, **_: Any) -> TensorType:
    if places.shape[3] != 2 or not all(x.shape[2:]):
        raise ValueError(f"the positions {places} must be (x, y) for {x}")
    count = x.shape[0] if batch is None else batch.shape[0]
    if places.shape[0] != count:
        raise ValueError(f"the positions {places} do not fit {count} images")
    return TensorType(x.dtype, (count, x.shape[1], *places.shape[1:3]))


remap = Op(
    "tm::remap",
    args=[
        Tensor("x", FLOATS, ranks=(4,)), Tensor("places", FLOATS, ranks=(4,)),
        Tensor("batch", INDICES, optional=True, ranks=(1,)), choice("border", BORDERS, "constant"),
        number("value", 0), choice("mode", ("nearest", "linear", "cubic"), "linear"),
    ],
    result=remap_result,
)  # fmt: skip

# ---- the reference, by NumPy


def _cubic_weights(t: Any) -> list[Any]:
    """Returns the weights of taps -1, 0, 1, 2 at the fraction ``t`` after tap 0."""
    a = CUBIC
    far, near = t + 1, t
    opposite, last = 1 - t, 2 - t
    return [
        ((far * a - 5 * a) * far + 8 * a) * far - 4 * a,
        (near * (a + 2) - (a + 3)) * near * near + 1,
        (opposite * (a + 2) - (a + 3)) * opposite * opposite + 1,
        ((last * a - 5 * a) * last + 8 * a) * last - 4 * a,
    ]


def _taps_ref(place: Array, mode: str) -> list[tuple[Array, Array]]:
    """Returns (tap, weight) of each neighbour along one axis."""
    if mode == "nearest":
        return [(np.rint(place), np.ones_like(place))]
    first = np.floor(place)
    t = place - first
    if mode == "linear":
        return [(first, 1 - t), (first + 1, t)]
    return [(first + i - 1, weight) for i, weight in enumerate(_cubic_weights(t))]


_FOLDS_REF: dict[str, Callable[[Array, int], Array]] = {
    "replicate": lambda tap, n: tap.clip(0, n - 1),
    "reflect": lambda tap, n: np.minimum(tap % (2 * n), 2 * n - 1 - tap % (2 * n)),
    "reflect_101": lambda tap, n: (
        np.minimum(tap % (2 * n - 2), 2 * n - 2 - tap % (2 * n - 2)) if n > 1 else tap * 0
    ),
    "wrap": lambda tap, n: tap % n,
    "constant": lambda tap, n: tap,
}


@remap.reference
def remap_ref(x: Array, places: Array, batch: Array | None, border: str, value: float, mode: str) -> Array:
    """Samples ``x``: result[k, c, i, j] is image batch[k] at the position (x, y) with the index [k, i, j].

    Shapes: x [N, C, H, W], places [K, h, w, 2] -> [K, C, h, w]; without ``batch``, K is N.
    Units: pixels, whole numbers at their centres.
    Source: OpenCV remap; megengine.functional.vision.remap, which rounds halves to even.
    """
    height, width = x.shape[2:]
    image = np.arange(len(places)) if batch is None else batch
    image = image.reshape(-1, 1, 1)
    pixels = x.transpose(0, 2, 3, 1)
    total = np.zeros((*places.shape[:3], x.shape[1]), np.result_type(x, places))
    for column, across in _taps_ref(places[..., 0], mode):
        for row, down in _taps_ref(places[..., 1], mode):
            i, j = _FOLDS_REF[border](row, height), _FOLDS_REF[border](column, width)
            is_inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
            inner = [np.nan_to_num(tap).clip(0, n - 1).astype(int) for tap, n in ((i, height), (j, width))]
            pixel = np.where(is_inside[..., None], pixels[image, inner[0], inner[1]], value)
            total = total + (across * down)[..., None] * pixel
    return np.ascontiguousarray(total.transpose(0, 3, 1, 2).astype(x.dtype))


# ---- the same in aten-style ops


def _folded(tap: Term, n: int, border: str) -> Term:
    if border == "replicate":
        return tap.clamp(min=0, max=n - 1)
    if border == "constant":
        return tap
    period = {"reflect": 2 * n, "reflect_101": max(2 * n - 2, 1), "wrap": n}[border]
    inner = tap - (tap / period).floor() * period
    if border == "wrap":
        return inner
    return inner.minimum(period - (1 if border == "reflect" else 0) - inner)


def _taps(place: Term, mode: str) -> list[tuple[Term, Term | None]]:
    """Like ``_taps_ref``; None for a weight of 1."""
    if mode == "nearest":
        return [(place.round(), None)]
    first = place.floor()
    t = place - first
    if mode == "linear":
        return [(first, 1 - t), (first + 1, t)]
    return [(first + (i - 1), weight) for i, weight in enumerate(_cubic_weights(t))]


@remap.decompose
def remap_gathered(g, x, places, batch, border, value, mode):
    (images, channels, height, width), (count, *coordinates, _) = g.type(x).shape, g.type(places).shape
    rows = g.call("aten::permute", x, [0, 2, 3, 1])
    rows = g.call("aten::reshape", rows, [images * height * width, channels])
    if batch is None:
        batch = g.call("aten::arange", 0, images)
    batch = g.call("aten::reshape", g.call("aten::to", batch, "int64"), [count, 1, 1])
    start = Term(g, batch) * (height * width)
    column, row = (Term(g, g.call("aten::select", places, 3, i)) for i in (0, 1))
    total = None
    for j, across in _taps(column, mode):
        for i, down in _taps(row, mode):
            y, x_ = _folded(i, height, border), _folded(j, width, border)
            inner = [tap.clamp(min=0, max=n - 1) for tap, n in ((y, height), (x_, width))]
            place = start + inner[0].to("int64") * width + inner[1].to("int64")
            number_ = g.call("aten::reshape", place.value, [g.type(place.value).size])
            pixel = Term(g, g.call("aten::index_select", rows, 0, number_))
            if border == "constant":
                is_inside = inner[0].eq(y) & inner[1].eq(x_)
                pixel = _column(is_inside).where(pixel, float(value))
            if across is not None and down is not None:
                pixel = pixel.to(column.dtype) * _column(across * down)
            total = pixel if total is None else total + pixel
    assert total is not None
    result = g.call("aten::reshape", total.to(g.type(x).dtype).value, [count, *coordinates, channels])
    return g.call("aten::permute", result, [0, 3, 1, 2])


def _column(term: Term) -> Term:
    return Term(term.g, term.g.call("aten::reshape", term.value, [term.type.size, 1]))
