"""Tensors of a TFLite file keep their names in files with channels first, so that layers can be compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import tmconvert
from tests.frontends.tflite.models import network, saved

pytest.importorskip("ai_edge_litert.interpreter")


def test_names_inside_stay(tmp_path: Path) -> None:
    path = saved(network(), tmp_path / "net.tflite")
    assert tmconvert.to_onnx(path, tmp_path / "net.onnx").verified
    made = {name for node in onnx.load(tmp_path / "net.onnx").graph.node for name in node.output}
    assert {"c", "p", "y"} <= made
    x = np.random.default_rng(0).standard_normal((1, 8, 8, 3)).astype(np.float32)
    text = str(tmconvert.compare(path, tmp_path / "net.onnx", [x]))
    assert "no layer goes wrong" in text
    assert {"c", "p", "y"} <= set(text.split())
