"""A CNN keeps no transposes inside, and its inputs and outputs have the order asked for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tflite

from tests.models import corpus
from tests.passes.graphs import Net, run
from tests.symbolics.ops.harness import normal, run_lowered
from tmconvert.ir import InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.passes.manager import PassManager
from tmconvert.symbolics.layouts import NCHW_TO_NHWC, NHWC_TO_NCHW
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME, TargetOptions
from tmconvert.targets.registry import lower, passes_for

SPATIAL = {"CONV_2D", "DEPTHWISE_CONV_2D"}
NAMES = {code: name for name, code in vars(tflite.BuiltinOperator).items() if isinstance(code, int)}


def _operators(path: Path) -> list[str]:
    model = tflite.Model.GetRootAsModel(path.read_bytes(), 0)
    codes = [NAMES[model.OperatorCodes(i).BuiltinCode()] for i in range(model.OperatorCodesLength())]
    graph = model.Subgraphs(0)
    return [codes[graph.Operators(i).OpcodeIndex()] for i in range(graph.OperatorsLength())]


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v1", "mobilenet_v2", "shufflenet_v2"])
def test_no_transpose_in_a_cnn(name: str, tmp_path: Path) -> None:
    """Channel shuffle itself needs none: in NHWC the two halves are slices of the last axis."""
    _, (path,) = corpus.converted(name, "tflite", tmp_path)
    assert "TRANSPOSE" not in _operators(path)


@pytest.mark.parametrize("sizes", [[(8, 12), (16, 24)], [(7, 9), (5, 11)], [(2, 12), (14, 21)]], ids=str)
def test_no_transpose_around_resizes(sizes: list[tuple[int, int]]) -> None:
    """Resizes by operators and (14 to 2 rows, nearest) by indices, between convolutions and joins."""
    graph = _with_resizes(sizes)
    reference, x = graph.copy(), normal(3, 1, 3, 14, 20)
    PassManager(passes_for(TargetOptions("tflite", TFLITE_RUNTIME, "nhwc"), catalogue()), catalogue()).run(
        graph
    )
    lowering = lower(graph, catalogue(), "tflite", TFLITE_RUNTIME)
    types = [operator.type for operator in lowering.graph.operators]
    assert {"RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"} <= set(types)
    assert "TRANSPOSE" not in types
    (actual,) = run_lowered(lowering, {"x": x.transpose(NCHW_TO_NHWC).copy()})
    (expected,) = run(reference, [x])
    assert corpus.relative_error(actual.transpose(NHWC_TO_NCHW), expected) < 1e-5


def _with_resizes(sizes: list[tuple[int, int]]) -> InternalGraph:
    graph = InternalGraph("net")
    g = GraphEmitter(graph, catalogue(), made_by="test")
    x = graph.add_input(TensorNode("x", (1, 3, 14, 20), np.dtype(np.float32)))
    weights = [g.constant(normal(0, 4, 3, 3, 3)), g.constant(normal(1, 4, 4, 3, 3))]
    y = g.call("aten::relu", g.call("aten::conv2d", x, weights[0], None, padding=1))
    for size, align_corners in zip(sizes, (False, True), strict=True):
        nearest = g.call("aten::upsample_nearest2d", y, list(size))
        bilinear = g.call("aten::upsample_bilinear2d", y, list(size), align_corners=align_corners)
        y = g.call("aten::conv2d", g.call("aten::add", nearest, bilinear), weights[1], None, padding=1)
    y = g.call("aten::cat", [y, g.call("aten::upsample_bilinear2d", x, list(sizes[-1]))], dim=1)
    graph.set_result((g.call("aten::relu", y),))
    return graph


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_source_order_costs_one_transpose_at_the_input(name: str, tmp_path: Path) -> None:
    _, (path,) = corpus.converted(name, "tflite", tmp_path, io_layout="source")
    operators = _operators(path)
    assert operators[0] == "TRANSPOSE"
    assert Counter(operators)["TRANSPOSE"] == 1


def test_activations_are_fused(tmp_path: Path) -> None:
    _, (path,) = corpus.converted("mobilenet_v1", "tflite", tmp_path)
    operators = _operators(path)
    assert not {"RELU", "RELU6"} & set(operators)
    assert set(operators) <= SPATIAL | {"PAD", "MEAN", "RESHAPE", "FULLY_CONNECTED"}


def _converted(net: Net, *nodes: TensorNode) -> tuple[list[str], list[np.ndarray], list[np.ndarray]]:
    """Of a net with one image as input: operators, results in LiteRT, results of the reference."""
    graph = net.give(*nodes)
    (given,) = graph.inputs
    assert isinstance(given, TensorNode)
    reference, x = graph.copy(), normal(3, *given.type.shape)
    PassManager(passes_for(TargetOptions("tflite", TFLITE_RUNTIME, "nhwc"), catalogue()), catalogue()).run(
        graph
    )
    lowering = lower(graph, catalogue(), "tflite", TFLITE_RUNTIME)
    results = run_lowered(lowering, {given.name: x.transpose(NCHW_TO_NHWC).copy()})
    return [operator.type for operator in lowering.graph.operators], results, run(reference, [x])


@pytest.mark.parametrize(("anchors", "batch"), [(3, 1), (2, 2), (9, 1)])
def test_anchors_come_to_the_front_by_one_transpose(anchors: int, batch: int) -> None:
    net = Net()
    y = net.conv(net.input(batch, 4, 5, 6), anchors * 7)
    y = net("aten::permute", net("aten::reshape", y, [batch, anchors, 7, 5, 6]), [0, 1, 3, 4, 2])
    y = net("aten::reshape", net("aten::sigmoid", y), [batch, anchors * 30, 7])
    operators, (actual,), (expected,) = _converted(net, y)
    assert corpus.relative_error(actual, expected) < 1e-5
    assert operators.count("TRANSPOSE") == 1  # LiteRT 2.3's GPU joins the parts of a SPLIT wrong
    assert operators.count("RESHAPE") <= 2


@pytest.mark.parametrize("batch", [1, 2])
def test_windows_are_blocks(batch: int) -> None:
    net = Net()
    y = net("aten::permute", net.conv(net.input(batch, 4, 6, 9), 5), [0, 2, 3, 1])
    y = net("aten::reshape", y, [batch, 2, 3, 3, 3, 5])
    y = net("aten::reshape", net("aten::permute", y, [0, 1, 3, 2, 4, 5]), [batch * 6, 9, 5])
    scores = net("aten::softmax", net("aten::matmul", y, net("aten::permute", y, [0, 2, 1])), -1)
    y = net("aten::reshape", net("aten::matmul", scores, y), [batch, 2, 3, 3, 3, 5])
    y = net("aten::reshape", net("aten::permute", y, [0, 1, 3, 2, 4, 5]), [batch, 6, 9, 5])
    operators, (actual,), (expected,) = _converted(net, net.conv(net("aten::permute", y, [0, 3, 1, 2]), 3))
    assert corpus.relative_error(actual.transpose(NHWC_TO_NCHW), expected) < 1e-5
    assert "TRANSPOSE" not in operators
    assert operators.count("SPACE_TO_DEPTH") == operators.count("DEPTH_TO_SPACE") == 1
    assert operators.count("RESHAPE") == 3  # a product of a tensor with itself has a copy: GPUs abort on one


@pytest.mark.parametrize("groups", [2, 6])
@pytest.mark.parametrize("batch", [1, 2])
def test_groups_of_channels_are_normalized_in_place(groups: int, batch: int) -> None:
    net = Net()
    x = net(
        "aten::group_norm", net.conv(net.input(batch, 3, 4, 5), 6), groups, net.constant(6), net.constant(6)
    )
    operators, (actual,), (expected,) = _converted(net, net.conv(net("aten::relu", x), 2))
    assert corpus.relative_error(actual.transpose(NHWC_TO_NCHW), expected) < 1e-5
    assert not {"TRANSPOSE", "RESHAPE", "SQRT"} & {*operators}
