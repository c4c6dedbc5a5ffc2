"""megengine.functional.vision: what MegEngine's arguments mean, as MegEngine 1.13 ran them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters import FUNCTIONS
from tmconvert.ir import InternalGraph, TensorNode
from tmconvert.ir.emitter import EagerEmitter, GraphEmitter
from tmconvert.symbolics.registry import catalogue

X = np.arange(1, 25, dtype=np.float32).reshape(1, 1, 4, 6)


def interpolate(x: np.ndarray, *args: Any, **options: Any) -> Any:
    return FUNCTIONS["megengine.functional.vision.interpolate"](
        EagerEmitter(catalogue()), x, *args, **options
    )


@pytest.mark.parametrize(
    ("arguments", "shape", "first"),
    [
        ({"size": (3, 4)}, (3, 4), [2.25, 3.75, 5.25, 6.75, 10.25]),
        ({"size": [3, 4], "mode": "BILINEAR"}, (3, 4), [2.25, 3.75, 5.25, 6.75, 10.25]),
        ({"size": (3, 4), "align_corners": True}, (3, 4), [1, 8 / 3, 13 / 3, 6, 10]),
        ({"size": (3, 4), "mode": "nearest"}, (3, 4), [1, 2, 4, 5, 7]),
        ({"size": np.array([3, 4], np.int32)}, (3, 4), [2.25, 3.75]),
        ({"size": (np.array([3], np.int32), 4)}, (3, 4), [2.25, 3.75]),
        ({"size": 3}, (3, 1), [4.5, 12.5, 20.5]),  # the width becomes 1
        ({"scale_factor": 2}, (8, 12), [1, 1.25, 1.75, 2.25]),
        ({"scale_factor": (0.5, 2)}, (2, 12), [4, 4.25, 4.75]),
        ({"scale_factor": 0.7}, (2, 4), [4.25, 5.75]),
        ({"scale_factor": 0.5, "align_corners": True}, (2, 3), [1, 3.5, 6, 19, 21.5, 24]),
        ({"scale_factor": 1.1}, (4, 6), [1, 2, 3]),
    ],
    ids=str,
)
def test_interpolate(arguments: dict[str, Any], shape: tuple[int, int], first: list[float]) -> None:
    actual = interpolate(X, **arguments)
    assert actual.shape == (1, 1, *shape)
    np.testing.assert_allclose(actual.reshape(-1)[: len(first)], first, rtol=1e-6)


@pytest.mark.parametrize(
    ("extent", "scale", "size"),
    [(50, 2.3, 115), (100, 0.29, 29), (100, 4.35, 435), (10, 0.1, 1), (10, 1, 10)],
)
def test_products_of_extent_and_scale_are_rounded_to_float32(extent: int, scale: float, size: int) -> None:
    """In float64, 50 * 2.3 is below 115."""
    x = np.zeros((1, 1, extent, extent), np.float32)
    assert interpolate(x, scale_factor=scale, mode="nearest").shape == (1, 1, size, size)


@pytest.mark.parametrize("size", [(4, 6), (3, 4)], ids=str)
def test_float16_becomes_float32(size: tuple[int, int]) -> None:
    for mode in ("nearest", "bilinear"):
        assert interpolate(X.astype(np.float16), size, mode=mode).dtype == np.float32


@pytest.mark.parametrize(
    ("x", "arguments", "reason"),
    [
        (X, {"scale_factor": 2, "mode": "area"}, "the interpolation mode 'area' is not supported"),
        (
            X,
            {"scale_factor": 2, "mode": "linear"},
            "interpolate with mode='linear' expects a float tensor with 3 axes, got f32[1,1,4,6]",
        ),
        (
            X[0],
            {"scale_factor": (2, 2), "mode": "linear"},
            "scale_factor (2, 2) is not valid for an image of [6]",
        ),
        (
            X[0],
            {"size": (2, 2)},
            "interpolate with mode='bilinear' expects a float tensor with 4 axes, got f32[1,4,6]",
        ),
        (
            X.astype(np.uint8),
            {"size": (2, 2), "align_corners": True},
            "interpolate with mode='bilinear' expects a float tensor with 4 axes, got u8[1,1,4,6]",
        ),
        (X, {}, "interpolate takes either size or scale_factor"),
        (X, {"size": (2, 2), "scale_factor": 2}, "interpolate takes either size or scale_factor"),
        (X, {"size": (3,)}, "size (3,) is not valid for an image of [4, 6]"),
        (X, {"size": (0, 3)}, "size (0, 3) is not valid for an image of [4, 6]"),
        (X, {"size": (3.5, 3)}, "the size of an image must be an integer, not 3.5"),
        (X, {"scale_factor": 0.1}, "scale_factor 0.1 is not valid for an image of [4, 6]"),
        (X, {"scale_factor": -2}, "scale_factor -2 is not valid for an image of [4, 6]"),
        (X, {"scale_factor": (2, 2, 2)}, "scale_factor (2, 2, 2) is not valid for an image of [4, 6]"),
        (X, {"scale_factor": 1e300}, "a scale_factor must be a number of at most 2147483648"),
        (X, {"scale_factor": float("nan")}, "a scale_factor must be a number of at most 2147483648"),
        (X, {"scale_factor": 10**400}, "a scale_factor must be a number of at most 2147483648"),
        (X, {"scale_factor": "2"}, "a scale_factor must be a number of at most 2147483648"),
        (X, {"size": (1, 3), "align_corners": True}, "align_corners requires at least two rows and columns"),
        (
            X,
            {"size": (3, 3), "mode": "nearest", "align_corners": True},
            "the interpolation mode 'nearest' does not support align_corners",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_refusals(x: np.ndarray, arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        interpolate(x, **arguments)
    assert str(caught.value) == reason


def test_a_computed_size_is_refused() -> None:
    graph = InternalGraph("net")
    x = graph.add_input(TensorNode("x", X.shape, X.dtype))
    size = graph.add_input(TensorNode("size", (2,), np.dtype(np.int32)))
    adapter = FUNCTIONS["megengine.functional.vision.interpolate"]
    with pytest.raises(Refusal, match="the size of an image is computed from the data"):
        adapter(GraphEmitter(graph, catalogue()), x, size)


@pytest.mark.parametrize(
    ("extent", "outputs", "sources"),
    [(14, 2, [0, 6]), (14, 4, [0, 3, 6, 10]), (20, 12, [0, 1, 3, 5, 6, 8, 10, 11, 13, 14, 16, 18])],
)
def test_nearest_rounds_as_megengine_does(extent: int, outputs: int, sources: list[int]) -> None:
    """The sources are what MegEngine 1.13 took; torch takes 7 of 14 -> 2, too: 2 / 14 rounds up."""
    x = np.arange(extent, dtype=np.float32).reshape(1, 1, extent, 1)
    assert interpolate(x, (outputs, 1), mode="nearest").reshape(-1).tolist() == sources
