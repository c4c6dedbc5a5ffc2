"""Forms of ONNX that readers other than ONNX Runtime need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.symbolics.ops.harness import assert_op_matches, normal, prepared, reference, run_op
from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.onnx.writer import write_onnx
from tmconvert.targets.options import TFLITE_RUNTIME
from tmconvert.targets.registry import lower


def lowered(opset: int, op: str, args: list[Any], attributes: dict[str, Any]) -> TargetGraph:
    graph = prepared("onnx", opset, op, args, attributes)
    return lower(graph, catalogue(), "onnx", opset).graph


RESIZES = [
    ("aten::upsample_nearest2d", {"output_size": [3, 4]}),
    ("aten::upsample_bilinear2d", {"output_size": [3, 4]}),
    ("aten::upsample_bicubic2d", {"output_size": [3, 4]}),
]


@pytest.mark.parametrize(("op", "attributes"), RESIZES)
@pytest.mark.parametrize("opset", [11, 12, 13, 18])
def test_resize_leaves_out_what_sizes_replace(op: str, attributes: dict[str, Any], opset: int) -> None:
    """ONNX 13: "it is an error" to give scales beside sizes; opset 11 requires both, empty if need be."""
    x = normal(0, 1, 2, 6, 8)
    (resize,) = (each for each in lowered(opset, op, [x], attributes).operators if each.type == "Resize")
    _, roi, scales, sizes = resize.inputs
    assert sizes is not None
    assert (roi is None) == (scales is None) == (opset >= 13)
    run_op("onnx", opset, op, [x], attributes)


@pytest.mark.parametrize("shape", [(2, 6, 5), (2, 6, 4, 5), (2, 6, 3, 4, 5)])
def test_groups_are_channels_of_an_image(shape: tuple[int, ...]) -> None:
    """ncnn has InstanceNormalization of four axes alone."""
    attributes = {"num_groups": 3, "eps": 1e-5}
    graph = lowered(17, "aten::group_norm", [normal(0, *shape), None, None], attributes)
    (norm,) = (each for each in graph.operators if each.type == "InstanceNormalization")
    assert norm.inputs[0] is not None
    assert norm.inputs[0].shape == (2, 3, int(np.prod(shape)) // 6, 1)


@pytest.mark.parametrize("opset", [7, 12, 13, 18])
@pytest.mark.parametrize("op", ["aten::matmul", "aten::dot"])
def test_a_product_of_two_vectors_is_a_sum(opset: int, op: str) -> None:
    """MatMul of rank 1 by rank 1, which ONNX allows, is refused by tract and OpenCV."""
    args = [normal(0, 7), normal(1, 7)]
    assert [each.type for each in lowered(opset, op, args, {}).operators] == ["Mul", "ReduceSum"]
    assert_op_matches(op, args, {}, targets=("onnx",), opsets=[opset])


@pytest.mark.parametrize("opset", [7, 11, 13, 17])
def test_logsumexp_has_no_attribute_that_openvino_ignores(opset: int) -> None:
    """Below opset 18 its axes are an attribute, and OpenVINO reduces all of them."""
    args, attributes = [normal(0, 2, 3, 4)], {"dim": [2], "keepdim": False}
    types = [each.type for each in lowered(opset, "aten::logsumexp", args, attributes).operators]
    assert "ReduceLogSumExp" not in types
    assert_op_matches("aten::logsumexp", args, attributes, targets=("onnx",), opsets=[opset])


@pytest.mark.parametrize(("target", "version"), [("onnx", 11), ("onnx", 17), ("tflite", TFLITE_RUNTIME)])
def test_logsumexp_of_infinite_elements(target: str, version: int) -> None:
    """As in a masked row of attention scores, with XNNPACK: LiteRT's own ADD has none.

    XNNPACK's kernels for x86 without AVX-512 give the largest float for infinity.
    """
    x = normal(0, 4, 5)
    x[0], x[1, 2], x[2, 1] = -np.inf, -np.inf, np.inf
    attributes = {"dim": [1], "keepdim": False}
    (result,) = run_op(target, version, "aten::logsumexp", [x], attributes)
    (expected,) = reference("aten::logsumexp", [x], attributes)
    if target == "tflite":
        result, expected = (np.minimum(each, np.finfo(np.float32).max) for each in (result, expected))
    np.testing.assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.opencv
def test_opencv_does_not_mistake_a_gate_for_hardswish(tmp_path: Path) -> None:
    """It computes hardswish(x) for Mul(x, HardSigmoid(y)) where alpha is exactly float32(1 / 6)."""
    import cv2

    graph = InternalGraph("net")
    x, y = (graph.add_input(TensorNode(name, (1, 3, 4, 5), np.dtype(np.float32))) for name in "xy")
    emitter = GraphEmitter(graph, catalogue(), name="z")
    gate = emitter.call("aten::hardsigmoid", y)
    graph.set_result((emitter.call("aten::mul", x, gate),))
    assert all(isinstance(expr, CallFunction) for expr in graph)
    path = tmp_path / "gate.onnx"
    with path.open("wb") as file:
        write_onnx(lower(graph, catalogue(), "onnx", 13).graph, file)

    feeds = {name: 3 * normal(seed, 1, 3, 4, 5) for seed, name in enumerate("xy")}
    (expected,) = onnxruntime.InferenceSession(path).run(None, feeds)
    net = cv2.dnn.readNetFromONNX(str(path))
    for name, array in feeds.items():
        net.setInput(array, name)
    np.testing.assert_allclose(net.forward(), expected, atol=1e-5)
