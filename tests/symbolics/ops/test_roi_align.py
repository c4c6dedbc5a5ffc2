"""torchvision::roi_align and ps_roi_align against loops over samples."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.symbolics.ops.harness import assert_op_matches, normal

X = normal(0, 2, 4, 7, 9)
BOXES = np.array(
    [[0, 1, 1, 6, 7], [1, -5, -4, 4.2, 5.1], [0, 3, 3, 3.2, 3.1], [1, 4, 2, 15, 12], [1, 5, 5, 4, 4]],
    np.float32,
)


def sampled(image: np.ndarray, y: float, x: float) -> float:
    height, width = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    across, down = x - left, y - top
    upper = image[top, left] * (1 - across) + image[top, right] * across
    lower = image[bottom, left] * (1 - across) + image[bottom, right] * across
    return float(upper * (1 - down) + lower * down)


def roi_align_in_loops(size: tuple[int, int], scale: float, ratio: int, aligned: bool) -> np.ndarray:
    result = np.zeros((len(BOXES), X.shape[1], *size), np.float32)
    for k, (number, *corners) in enumerate(BOXES.astype(float)):
        left, top, right, bottom = (corner * scale - (0.5 if aligned else 0) for corner in corners)
        extents = [bottom - top, right - left]
        if not aligned:
            extents = [max(extent, 1) for extent in extents]
        parts = [extent / count for extent, count in zip(extents, size, strict=True)]
        counts = [ratio if ratio > 0 else max(math.ceil(part), 0) for part in parts]
        for channel, i, j in np.ndindex(X.shape[1], *size):
            total = 0.0
            for row, column in np.ndindex(*counts):
                y = top + parts[0] * (i + (row + 0.5) / counts[0])
                x = left + parts[1] * (j + (column + 0.5) / counts[1])
                total += sampled(X[int(number), channel], y, x)
            result[k, channel, i, j] = total / max(math.prod(counts), 1)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize(("size", "scale"), [((2, 3), 1.0), ((3, 1), 0.6)], ids=str)
def test_roi_align(size: tuple[int, int], scale: float, ratio: int, aligned: bool) -> None:
    attributes = {
        "output_size": list(size),
        "spatial_scale": scale,
        "sampling_ratio": ratio,
        "aligned": aligned,
    }
    expected = [roi_align_in_loops(size, scale, ratio, aligned)]
    assert_op_matches("torchvision::roi_align", [X, BOXES], attributes, expected=expected, tolerance=2e-5)


@pytest.mark.slow
def test_each_part_has_a_channel_of_its_own() -> None:
    aligned = roi_align_in_loops((2, 2), 1.0, 2, True)
    expected = np.stack([aligned[:, 2 * i + j, i, j] for i in (0, 1) for j in (0, 1)], 1)
    attributes = {"output_size": [2, 2], "sampling_ratio": 2}
    assert_op_matches(
        "torchvision::ps_roi_align",
        [X, BOXES],
        attributes,
        expected=[expected.reshape(len(BOXES), 1, 2, 2)],
        tolerance=2e-5,
    )
