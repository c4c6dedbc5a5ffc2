"""Whole models: what the real runtimes compute is what MegEngine computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.models import corpus
from tests.opsets import newest_runnable
from tmconvert import load
from tmconvert.ir.tree import leaves

TOLERANCE = 1e-4
NOT_HERE = ("hostile", "custom", "qat", "quantized")  # test_quantization.py has what rounds
CONVERTIBLE = sorted(
    path.stem
    for path in corpus.DATA.glob("*.tm")
    if not path.stem.startswith(NOT_HERE) and not path.stem.endswith("_qat")
)
OPSETS = (7, 9, 11, 13, 17, newest_runnable())


def assert_matches(name: str, actual: list[np.ndarray]) -> None:
    expected = corpus.golden(name)[1]
    for ours, theirs in zip(actual, expected, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert corpus.relative_error(ours, theirs) < TOLERANCE


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", CONVERTIBLE)
def test_onnx(name: str, opset: int, tmp_path: Path) -> None:
    report, paths = corpus.converted(name, "onnx", tmp_path, opset=opset)
    assert report.verified
    onnx.checker.check_model(paths[0], full_check=True)
    assert_matches(name, corpus.run("onnx", paths, name))


@pytest.mark.parametrize("name", CONVERTIBLE)
def test_interpreter(name: str) -> None:
    inputs, _ = corpus.golden(name)
    assert_matches(name, list(leaves(load(corpus.model(name))(*inputs))))


@pytest.mark.parametrize("target", ["tflite", "caffe"])
@pytest.mark.parametrize("name", CONVERTIBLE)
def test_matches_megengine(name: str, target: str, tmp_path: Path) -> None:
    """In LiteRT and OpenCV; what OpenCV has no layers for by their definitions."""
    report, paths = corpus.converted(name, target, tmp_path)
    assert report.verified
    for actual, expected in zip(corpus.run(target, paths, name), corpus.golden(name)[1], strict=True):
        assert corpus.relative_error(actual, expected) < TOLERANCE


@pytest.mark.parametrize("name", CONVERTIBLE)
def test_source_order_of_tflite(name: str, tmp_path: Path) -> None:
    _, paths = corpus.converted(name, "tflite", tmp_path, io_layout="source")
    for actual, expected in zip(corpus.run("tflite", paths, name), corpus.golden(name)[1], strict=True):
        assert corpus.relative_error(actual, expected) < TOLERANCE
