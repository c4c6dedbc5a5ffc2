"""Whole models: what the real runtimes compute is what MegEngine computed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nets import corpus

MODELS = (
    "resnet18",
    "mobilenet_v1",
    "mobilenet_v2",
    "shufflenet_v2",
    "op_s_conv_bn_relu",
    "op_s_pool_chain",
    "op_s_elemwise",
    "op_s_flatten_linear",
    "op_conv_variants",
    "op_nested_reuse",
    "op_s_bilinear",
    "op_interpolate",
)
TOLERANCE = 1e-4


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
@pytest.mark.parametrize("name", MODELS)
def test_matches_megengine(name: str, target: str, tmp_path: Path) -> None:
    report, paths = corpus.converted(name, target, tmp_path)
    assert report.verified
    for actual, expected in zip(corpus.run(target, paths, name), corpus.golden(name)[1], strict=True):
        assert corpus.relative_error(actual, expected) < TOLERANCE


@pytest.mark.parametrize("name", MODELS)
def test_source_order_of_tflite(name: str, tmp_path: Path) -> None:
    _, paths = corpus.converted(name, "tflite", tmp_path, io_layout="source")
    for actual, expected in zip(corpus.run("tflite", paths, name), corpus.golden(name)[1], strict=True):
        assert corpus.relative_error(actual, expected) < TOLERANCE


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 18, 21])
@pytest.mark.parametrize(
    "name", ["resnet18", "shufflenet_v2", "op_nested_reuse", "op_s_pool_chain", "op_interpolate"]
)
def test_opsets(name: str, opset: int, tmp_path: Path) -> None:
    _, paths = corpus.converted(name, "onnx", tmp_path, opset=opset)
    for actual, expected in zip(corpus.run("onnx", paths, name), corpus.golden(name)[1], strict=True):
        assert corpus.relative_error(actual, expected) < TOLERANCE
