"""Bilinear resizing in integers: how LiteRT's kernel counts places, and products where it does not do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.targets.tflite.integer_samples import Sample, ints
from tests.targets.tflite.test_integer_kernels import MODES, run
from tmconvert.ir.types import QParams
from tmconvert.symbolics.registry import catalogue
from tmconvert.symbolics.resizing import linear_matrix
from tmconvert.targets.tflite.integer import prepare
from tmconvert.targets.tflite.integer.qparams import RANGES
from tmconvert.targets.tflite.integer.resizes import int16_matrix, is_exact, kernel_matrix
from tmconvert.targets.tflite.integer.stages import to_integers

SIZES = [
    (16, 32),
    (16, 64),
    (8, 24),
    (7, 20),
    (100, 299),
    (64, 33),
    (50, 224),
    (20, 10),
    (5, 1),
    (1, 7),
    (3, 3),
]


def resized(
    kind: str, sizes: tuple[int, int, int, int], align_corners: bool, path: Path
) -> tuple[np.ndarray, list[np.ndarray], list[str]]:
    """Random pixels, what becomes of them with XNNPACK and without, and the operators."""
    height, width, rows, columns = sizes
    options = {"align_corners": align_corners, "half_pixel_centers": not align_corners}
    shapes = (2, height, width, 3), (2, rows, columns, 3)
    graph = Sample("RESIZE_BILINEAR", [shapes[0], ints(rows, columns)], [shapes[1]], options).graph()
    low, high = RANGES[kind]
    graph.inputs[0].qparams = graph.outputs[0].qparams = QParams(kind, (0.25,), (0,), low, high)
    made = to_integers(graph, catalogue(), activations=kind, io_type=kind)
    x = np.random.default_rng(rows).integers(low, high, shapes[0], endpoint=True).astype(kind)
    found = [next(iter(run(made.graph, {"x0": x}, mode, path).values())) for mode in MODES]
    return x, found, [operator.type for operator in made.graph.operators]


def along_height(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("nhwc,ah->nawc", x.astype(np.float64), matrix)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_the_kernel_is_known(
    kind: str, align_corners: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To half a step, however far from where it should be."""
    monkeypatch.setattr(prepare, "decompose_resizes", lambda resolved: resolved.graph)
    for extent, outputs in SIZES:
        x, found, types = resized(kind, (extent, 2, outputs, 2), align_corners, tmp_path / "m.tflite")
        assert types == ["RESIZE_BILINEAR"]
        off = np.abs(found[1] - along_height(kernel_matrix(extent, outputs, align_corners), x))
        assert off.max() <= 0.51
        right = np.abs(found[0] - along_height(linear_matrix(extent, outputs, align_corners), x))
        assert kind == "int16" or right.max() <= 0.6  # XNNPACK counts finer


@pytest.mark.parametrize("align_corners", [False, True])
def test_products_in_sixteen_bits(align_corners: bool, tmp_path: Path) -> None:
    for extent, outputs in SIZES:
        x, found, types = resized("int16", (extent, 2, outputs, 2), align_corners, tmp_path / "m.tflite")
        if is_exact(extent, outputs, align_corners):
            assert types == ["RESIZE_BILINEAR"]
            continue
        assert types == ["RESHAPE", "BATCH_MATMUL", "RESHAPE"]
        exact, rounded = (
            along_height(make(extent, outputs, align_corners), x) for make in (linear_matrix, int16_matrix)
        )
        assert np.abs(found[1] - rounded).max() <= 1.8 and np.abs(found[1] - exact).max() <= 2.1


def test_both_axes(tmp_path: Path) -> None:
    x, found, types = resized("int16", (7, 9, 20, 31), False, tmp_path / "m.tflite")
    assert types == ["RESHAPE", "BATCH_MATMUL"] * 2 + ["RESHAPE"]
    exact = np.einsum(
        "nhwc,ah,bw->nabc", x.astype(np.float64), linear_matrix(7, 20, False), linear_matrix(9, 31, False)
    )
    assert max(np.abs(each - exact).max() for each in found) <= 3
    assert is_exact(16, 32, False) and not is_exact(16, 32, True)


def test_large_matrices_are_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tmconvert.targets.tflite.integer.resizes._MOST", 100)
    assert resized("int16", (7, 9, 20, 31), False, tmp_path / "m.tflite")[2] == ["RESIZE_BILINEAR"]
