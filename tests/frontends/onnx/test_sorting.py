"""Unique: distinct elements, their first places, and how many there are, on ONNX and TFLite."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import tmconvert
from tests.frontends.onnx.one_node import model_of

X = np.array([[2.0, 1.0, 2.0], [5.0, 1.0, 2.0], [2.0, 1.0, 2.0]], np.float32)


@pytest.mark.parametrize("options", [{}, {"sorted": 0}, {"axis": 0}, {"axis": 1, "sorted": 0}], ids=str)
def test_the_results_of_unique_in_litert_are_those_of_onnx_runtime(
    options: dict[str, int], tmp_path: Path
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("ai_edge_litert")
    path, out = tmp_path / "unique.onnx", tmp_path / "unique.tflite"
    onnx.save(model_of("Unique", [X], 4, **options), str(path))
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    expected = session.run(None, {"i0": X})
    assert tmconvert.to_tflite(path, out).verified
    found = tmconvert.run(out, {"i0": X})
    for result, array in zip(found.values(), expected, strict=True):
        np.testing.assert_array_equal(result, array)
