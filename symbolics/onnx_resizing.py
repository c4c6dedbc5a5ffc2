"""Coordinates, indices and weights of Resize along one axis, in its words.

Coordinates are computed in float32, as ONNX Runtime does. Source: the page of Resize in onnx/docs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.symbolics.resizing import cubic

Array = np.ndarray
WHOLE = 1e-3  # how far from an integer a number of elements is that counts as one


class Axis(NamedTuple):
    """Sizes of an axis; ``factor`` None is the ratio of them. ``region`` is the part that is resized."""

    extent: Any
    outputs: Any
    factor: float | None = None
    region: tuple[float, float] = (0.0, 1.0)

    @property
    def scale(self) -> np.float32:
        if self.factor is None:
            return np.float32(self.outputs) / np.float32(self.extent)
        return np.float32(self.factor)


class Mode(NamedTuple):
    """Attributes of Resize; ``rounding`` is nearest_mode, or "simple" as before opset 11."""

    kind: str
    coordinates: str
    rounding: str
    coefficient: float = -0.75
    excludes_outside: bool = False
    antialias: bool = False


def _half_pixel(steps: Array, axis: Axis) -> Array:
    return (steps + np.float32(0.5)) / axis.scale - np.float32(0.5)


def _symmetric(steps: Array, axis: Axis) -> Array:
    adjustment = np.float32(axis.outputs) / (axis.scale * np.float32(axis.extent))
    offset = np.float32(axis.extent / 2) * (1 - adjustment)
    return offset + (steps + np.float32(0.5)) / axis.scale - np.float32(0.5)


def _pytorch(steps: Array, axis: Axis) -> Array:
    return _half_pixel(steps, axis) if axis.outputs > 1 else np.zeros_like(steps)


def differing_corners(factor: str) -> Refusal:
    return Refusal(
        f"align_corners with the scale {factor}, which makes a fraction of an element: "
        "the specification of ONNX and ONNX Runtime compute different results",
        "give Resize sizes instead of scales",
    )


def _corners(steps: Array, axis: Axis) -> Array:
    if axis.outputs == 1:
        return np.zeros_like(steps)
    if axis.factor is not None and abs(axis.factor * axis.extent - axis.outputs) > WHOLE:
        raise differing_corners(f"{axis.factor:g} for {axis.extent} elements")
    return steps * np.float32(axis.extent - 1) / np.float32(axis.outputs - 1)


def _cropped(steps: Array, axis: Axis) -> Array:
    first, last = map(np.float32, axis.region)
    reach = np.float32(axis.extent - 1)
    if axis.outputs == 1:
        return np.float32(0.5) * (first + last) * reach + np.zeros_like(steps)
    return first * reach + steps * (last - first) * reach / np.float32(axis.outputs - 1)


_COORDINATES: dict[str, Callable[[Array, Axis], Array]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": _pytorch,
    "align_corners": _corners,
    "asymmetric": lambda steps, axis: steps / axis.scale,
    "tf_half_pixel_for_nn": lambda steps, axis: (steps + np.float32(0.5)) / axis.scale,
    "tf_crop_and_resize": _cropped,
}


def coordinates(axis: Axis, how: Mode) -> Array:
    """Returns where each output is on the input. Raises Refusal for unknown coordinates."""
    if how.coordinates not in _COORDINATES:
        raise Refusal(f"coordinate_transformation_mode {how.coordinates!r} is unknown")
    steps = np.arange(axis.outputs, dtype=np.float32)
    is_whole = axis.scale == 1 and axis.region == (0.0, 1.0)
    return (
        steps
        if is_whole and how.coordinates != "tf_half_pixel_for_nn"
        else _COORDINATES[how.coordinates](steps, axis)
    )


def is_outside(axis: Axis) -> Array:
    """Tells which outputs of tf_crop_and_resize are outside of the input."""
    found = _cropped(np.arange(axis.outputs, dtype=np.float32), axis)
    return (found < 0) | (found > axis.extent - 1)


def _rounded(found: Array, axis: Axis, how: Mode) -> Array:
    whole = np.floor(found)
    if how.rounding == "floor":
        return whole
    if how.rounding == "ceil":
        return np.ceil(found)
    if how.rounding == "simple":
        return np.ceil(found) if axis.scale < 1 else np.trunc(found)
    if how.rounding == "round_prefer_floor":
        return np.where(found == whole + np.float32(0.5), whole, np.floor(found + np.float32(0.5)))
    if how.rounding == "round_prefer_ceil":
        return np.floor(found + np.float32(0.5))
    raise Refusal(f"nearest_mode {how.rounding!r} is unknown")


def places(axis: Axis, how: Mode) -> Array:
    """Returns the index that each output copies."""
    return _rounded(coordinates(axis, how), axis, how).clip(0, axis.extent - 1).astype(np.int64)


def matrix(axis: Axis, how: Mode) -> Array:
    """[outputs, extent]: the weights that each output is mixed with."""
    if how.kind not in ("linear", "cubic"):
        raise Refusal(f"mode {how.kind!r} is unknown")
    found = coordinates(axis, how).astype(np.float64)
    if how.kind == "linear" and not how.antialias:
        found = found.clip(0, axis.extent - 1)
    width = 1 / min(float(axis.scale), 1.0) if how.antialias else 1.0
    support = 1 if how.kind == "linear" else 2
    first = int(np.floor(-support * width)) + 1
    taps = np.arange(first, 2 - first)
    whole = np.floor(found)
    distance = (taps[None, :] - (found - whole)[:, None]) / width
    weights = _hat(distance) if how.kind == "linear" else cubic(distance, how.coefficient)
    sources = whole[:, None].astype(np.int64) + taps[None, :]
    if how.excludes_outside:
        weights = np.where((sources < 0) | (sources >= axis.extent), 0, weights)
    if how.excludes_outside or how.antialias:
        weights = weights / weights.sum(1, keepdims=True)
    result = np.zeros((axis.outputs, axis.extent))
    rows = np.broadcast_to(np.arange(axis.outputs)[:, None], sources.shape)
    np.add.at(result, (rows, sources.clip(0, axis.extent - 1)), weights)
    return result


def _hat(distance: Array) -> Array:
    return np.maximum(1 - np.abs(distance), 0)
