"""A factor and a summand for each channel are one convolution in LiteRT, with its activation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.passes.graphs import Net
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.registry import lower
from tmconvert.targets.tflite.passes.assign_layout import AssignLayout
from tmconvert.targets.tflite.passes.fuse_activations import fuse_activations
from tmconvert.targets.tflite.passes.fuse_scales import fuse_scales


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1, 6, 1, 1), ["CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D"]),
        ((1, 1, 1, 5), ["CONV_2D", "MUL", "ADD", "CONV_2D"]),
    ],
)
def test_numbers_for_channels(shape: tuple[int, ...], expected: list[str], tmp_path: Path) -> None:
    net = Net()
    x = net("aten::relu", net.conv(net.input(1, 3, 4, 5), 6))
    x = net("aten::add", net("aten::mul", x, net.constant(*shape)), net.constant(*shape))
    graph = net.give(net.conv(net("aten::relu", x), 2))
    AssignLayout(catalogue(), "nhwc").run(graph)
    lowered = lower(graph, catalogue(), "tflite", 23).graph
    fuse_activations(lowered)
    fuse_scales(lowered)
    assert [operator.type for operator in lowered.operators] == expected
    assert lowered.operators[-2].attributes["fused_activation_function"] == "RELU"
