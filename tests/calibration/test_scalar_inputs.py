"""Inputs of rank 0 in samples of a calibration, and as inputs of written files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import tmconvert

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
scaled (float[1,8] x, float factor) => (float[1,8] y)
{
    large = Mul(x, factor)
    y = Relu(large)
}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "scaled.onnx"
    onnx.save(onnx.parser.parse_model(TEXT), path)
    return path


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("quantized", [False, True])
def test_a_scalar_is_a_scalar(target: str, quantized: bool, model: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime" if target == "onnx" else "ai_edge_litert")
    x = np.linspace(-1, 1, 8, dtype=np.float32)[None]
    samples = [{"x": x, "factor": np.float32(factor)} for factor in (0.5, 1, 2)]
    data = {"calibration": samples, "quantized": True} if quantized else {}
    report = getattr(tmconvert, f"to_{target}")(model, tmp_path / f"m.{target}", **data)
    assert report.verified
    made = tmconvert.run(tmp_path / f"m.{target}", {"x": x, "factor": np.float32(2)})
    assert np.allclose(made["y"], np.maximum(2 * x, 0), atol=0.03 if quantized else 1e-6)
