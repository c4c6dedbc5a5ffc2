"""Index and weight computations of image resizing along one axis.

``scale`` is the requested factor of an axis, None if its size was requested: the ratio of input to output
steps is then extent / outputs. Source: torch.nn.functional.interpolate.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic

Array = np.ndarray
Matrix = Callable[[int, int, bool, float | None], Array]

CUBIC = -0.75  # the coefficient of bicubic convolution; Pillow, whose antialiasing is copied, has -0.5
PILLOW = -0.5
# stands for a symbolic extent: in an image that is smaller and grows as much, all is rounded alike
LARGEST = 1 << 12


def _ratio(extent: int, outputs: int, align_corners: bool, scale: float | None) -> float:
    if align_corners:
        return (extent - 1) / (outputs - 1) if outputs > 1 else 0.0
    return 1 / scale if scale else extent / outputs


def nearest_ratio(extent: int, outputs: int, scale: float | None = None) -> np.float32:
    return np.float32(1 / scale) if scale else np.float32(extent) / np.float32(outputs or 1)


def nearest_places(extent: int, outputs: int, scale: float | None = None) -> Array:
    """Source index of each output: floor(i ratio), with the ratio and the product rounded to float32."""
    places = np.arange(outputs, dtype=np.float32) * nearest_ratio(extent, outputs, scale)
    return np.minimum(places.astype(np.int64), extent - 1)


def survives_rounding(extent: int, outputs: int, scale: float | None) -> bool:
    """Whether dividing by outputs / extent, or multiplying by its inverse, gives the same indices."""
    if is_symbolic((extent, outputs)):
        extent, outputs, scale = LARGEST, LARGEST * (outputs // extent), None
    places, steps = nearest_places(extent, outputs, scale), np.arange(outputs, dtype=np.float32)
    ratio, factor = nearest_ratio(extent, outputs), np.float32(outputs) / np.float32(extent)
    return all(np.array_equal(places, np.floor(found)) for found in (steps * ratio, steps / factor))


def exact_places(extent: int, outputs: int, scale: float | None = None) -> Array:
    """Source indices of "nearest-exact", floor((i + 1/2) ratio), with sum and product rounded to float32."""
    ratio = nearest_ratio(extent, outputs, scale)
    places = ((np.arange(outputs) + 0.5) * ratio.astype(np.float64)).astype(np.float32)
    return np.minimum(places.astype(np.int64), extent - 1)


def linear_taps(
    extent: int, outputs: int, align_corners: bool, scale: float | None = None
) -> tuple[Array, Array, Array]:
    """(lower, upper, fraction): output i is x[lower] (1 - fraction) + x[upper] fraction."""
    extent, outputs = operator.index(extent), operator.index(outputs)  # the taps are numbers of the file
    ratio = _ratio(extent, outputs, align_corners, scale)
    position = np.arange(outputs) * ratio if align_corners else (np.arange(outputs) + 0.5) * ratio - 0.5
    if extent == outputs:  # whatever the scale
        position = np.arange(outputs, dtype=np.float64)
    position = position.clip(0, extent - 1)
    lower = position.astype(np.int64)
    return lower, np.minimum(lower + 1, extent - 1), position - lower


def linear_matrix(extent: int, outputs: int, align_corners: bool, scale: float | None = None) -> Array:
    """[outputs, extent]: bilinear resizing along one axis as a matrix."""
    lower, upper, fraction = linear_taps(extent, outputs, align_corners, scale)
    matrix, rows = np.zeros((len(lower), operator.index(extent))), np.arange(len(lower))
    matrix[rows, upper] = fraction
    matrix[rows, lower] += 1 - fraction
    return matrix


def cubic(distance: Array, a: float) -> Array:
    """The kernel of cubic convolution. Source: Keys 1981; torch upsample_bicubic2d."""
    t = np.abs(distance)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def cubic_matrix(extent: int, outputs: int, align_corners: bool, scale: float | None = None) -> Array:
    """[outputs, extent]: bicubic resizing; positions outside use the edge."""
    places, ratio = np.arange(outputs), _ratio(extent, outputs, align_corners, scale)
    centre = places * ratio if align_corners else (places + 0.5) * ratio - 0.5
    matrix, first = np.zeros((outputs, extent)), np.floor(centre)
    for tap in (-1, 0, 1, 2):
        source = (first + tap).clip(0, extent - 1).astype(np.int64)
        np.add.at(matrix, (places, source), cubic(centre - first - tap, CUBIC))
    return matrix


def _antialiased(kernel: Callable[[Array], Array], support: float) -> Matrix:
    """The kernel widened by the reduction ratio, and normalized. Source: Pillow, resize.

    With align_corners torch has another ratio, but the same centres in it.
    """

    def matrix(extent: int, outputs: int, align_corners: bool, scale: float | None = None) -> Array:
        ratio, places = _ratio(extent, outputs, align_corners, scale), np.arange(extent)
        centre = (np.arange(outputs) + 0.5)[:, None] * ratio
        if extent == outputs:  # whatever the scale
            return np.eye(extent)
        width = max(ratio, 1.0)
        low = np.maximum(np.trunc(centre - support * width + 0.5), 0)
        high = np.minimum(np.trunc(centre + support * width + 0.5), extent)
        weights = kernel((places + 0.5 - centre) / width)
        weights = np.where((places >= low) & (places < high), weights, 0)
        return weights / weights.sum(1, keepdims=True)

    return matrix


antialiased_linear = _antialiased(lambda distance: np.maximum(1 - np.abs(distance), 0), 1)
antialiased_cubic = _antialiased(lambda distance: cubic(distance, PILLOW), 2)


def multiplied(g: Any, x: Any, matrices: list[Array]) -> Any:
    """ONNX: multiplies ``x`` [N, C, H, W] by a matrix [outputs, extent] along each of its last two axes."""
    (height, width), (rows, columns) = x.shape[2:], [len(matrix) for matrix in matrices]
    left, right = (matrix.astype(x.dtype) for matrix in matrices)
    if not np.array_equal(right, np.eye(width)):
        x = g.op("MatMul", x, g.const(np.ascontiguousarray(right.T)), shape=(*x.shape[:3], columns))
    if not np.array_equal(left, np.eye(height)):
        x = g.op("MatMul", g.const(left), x, shape=(*x.shape[:2], rows, columns))
    return x


def mixed_tflite(g: Any, x: Any, output_size: list[int], scales: list[float]) -> Any:
    """TFLite: weighted means of neighbours of ``x`` [N, H, W, C] along one axis after the other."""
    for axis, (outputs, scale) in enumerate(zip(output_size, scales, strict=True), 1):
        lower, upper, fraction = linear_taps(x.shape[axis], outputs, False, scale)
        shape = (*x.shape[:axis], outputs, *x.shape[axis + 1 :])
        total = None
        for places, weight in ((lower, 1 - fraction), (upper, fraction)):
            part = g.op("GATHER", x, g.ints(places), axis=axis, shape=shape)
            part = g.op("MUL", part, g.const(weight.astype(x.dtype).reshape(-1, *[1] * (3 - axis))))
            total = part if total is None else g.op("ADD", total, part)
        x = total
    return x


def absent_input(g: Any) -> Any:
    """An omitted input of Resize: an empty tensor before opset 13, then no name."""
    return g.const(np.zeros(0, np.float32)) if g.graph.version < 13 else None


def resized_onnx(g: Any, x: Any, output_size: list[int], **attributes: str | float) -> Any:
    """Emits Resize to sizes. Opset 11 requires roi and scales, at least as empty tensors; 13 omits them."""
    absent = absent_input(g)
    sizes = g.ints([*x.shape[:2], *output_size])
    return g.op("Resize", x, absent, absent, sizes, shape=g.result_types[0].shape, **attributes)
