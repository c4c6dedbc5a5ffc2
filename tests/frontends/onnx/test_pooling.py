"""Pooling whose number of windows is rounded up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import tmconvert
from tests.frontends.onnx.one_node import model_of
from tmconvert.ir import CallFunction

# extent, kernel, stride, padding at the begin and end: the last window reaches beyond the end, is whole, or
# would begin in the padding
CASES = [
    (12, 3, 2, 0, 0),
    (11, 3, 2, 0, 0),
    (12, 3, 2, 1, 1),
    (5, 2, 3, 1, 1),
    (9, 2, 2, 0, 1),
    (10, 3, 3, 1, 0),
    (1, 3, 3, 0, 0),  # the window is longer than the first axis
    (2, 4, 3, 0, 0),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "average with padding"])
def test_the_outputs_of_ceil_mode_are_those_of_onnx_runtime(
    op: str, axes: int, case: tuple[int, ...], tmp_path: Path
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    extent, kernel, stride, begin, end = case
    x = np.random.default_rng(0).standard_normal((1, 2, *range(extent, extent + axes))).astype(np.float32)
    options = {"count_include_pad": 1} if op == "average with padding" else {}
    name = "MaxPool" if op == "MaxPool" else "AveragePool"
    windows = {"kernel_shape": [kernel] * axes, "strides": [stride] * axes}
    pads = [begin] * axes + [end] * axes
    model = model_of(name, [x], opset=19, pads=pads, ceil_mode=1, **windows, **options)
    path = tmp_path / "pool.onnx"
    onnx.save(model, path)
    expected = runtime.InferenceSession(path).run(None, {"i0": x})[0]
    (found,) = tmconvert.run(tmconvert.load(path), {"i0": x}).values()
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    calls = [expr for expr in tmconvert.normalize(path).graph if isinstance(expr, CallFunction)]
    assert len(calls) == 1 or begin != end or kernel > extent


@pytest.mark.parametrize("storage_order", [0, 1])
def test_indices_of_maxima(storage_order: int, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    x = np.random.default_rng(0).standard_normal((2, 3, 12, 11)).astype(np.float32)
    windows = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1}
    model = model_of("MaxPool", [x], 2, opset=19, storage_order=storage_order, **windows)
    path = tmp_path / "pool.onnx"
    onnx.save(model, path)
    expected = runtime.InferenceSession(path).run(None, {"i0": x})
    found = tmconvert.run(tmconvert.load(path), {"i0": x}).values()
    for made, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(made, wanted)
