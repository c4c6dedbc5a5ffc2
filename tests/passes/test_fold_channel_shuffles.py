"""Shuffles of channels in front of convolutions: gone, and the same numbers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.passes.graphs import Net, apply
from tmconvert.ir import CallFunction, InternalGraph
from tmconvert.passes.decompose import Decompose
from tmconvert.passes.drop_identities import DropIdentities
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.fuse_views import FuseViews
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME
from tmconvert.targets.tflite.passes.fold_channel_shuffles import FoldChannelShuffles


def routed(graph: InternalGraph) -> list[str]:
    """The ops that are left."""
    for make in (FuseViews, FoldChannelShuffles):
        apply(make(catalogue()), graph)
        apply(EliminateDeadCode(), graph)
    return [expr.function for expr in graph if isinstance(expr, CallFunction)]


def shuffled(net: Net, x: Any, groups: int = 2) -> Any:
    batch, channels, height, width = x.type.shape
    parts = net("aten::reshape", x, [batch, groups, channels // groups, height, width])
    return net("aten::reshape", net("aten::permute", parts, [0, 2, 1, 3, 4]), list(x.type.shape))


def depthwise(net: Net, x: Any) -> Any:
    channels = x.type.shape[1]
    weight, bias = net.constant(channels, 1, 3, 3), net.constant(channels)
    return net("aten::conv2d", x, weight, bias, [1, 1], [1, 1], [1, 1], channels)


def unit(net: Net, x: Any) -> Any:
    """Of ShuffleNet: half of the channels pass, the others are worked on, then all are shuffled."""
    half = x.type.shape[1] // 2
    kept, given = net("aten::slice", x, 1, 0, half), net("aten::slice", x, 1, half, 2 * half)
    made = net.conv(depthwise(net, net.conv(given, half)), half)
    return shuffled(net, net("aten::cat", [kept, net("aten::relu", made)], 1))


@pytest.mark.parametrize("channels", [8, 10])
def test_units_that_shuffle(channels: int) -> None:
    net = Net()
    x = net.conv(net.input(2, 3, 4, 5), channels)
    for _ in range(3):
        x = unit(net, x)
    left = routed(net.give(net.conv(x, 4), net.conv(net("aten::relu", depthwise(net, x)), 3)))
    assert "tm::view" not in left
    assert left.count("aten::cat") == 3  # one for each unit behind the first, one for both convolutions


def test_a_shuffle_of_one_tensor_is_in_the_weights() -> None:
    net = Net()
    pooled = net("aten::max_pool2d", shuffled(net, net.input(1, 6, 4, 4), 3), [2, 2], [2, 2], [0, 0], [1, 1])
    assert routed(net.give(net.conv(pooled, 5))) == ["aten::max_pool2d", "aten::conv2d"]


def test_a_shuffle_that_something_sees_stays() -> None:
    net = Net()
    shuffle = shuffled(net, net.input(1, 6, 4, 4))
    grouped = net("aten::conv2d", shuffle, net.constant(4, 3, 1, 1), None, [1, 1], [0, 0], [1, 1], 2)
    assert routed(net.give(net.conv(shuffle, 5), grouped)).count("tm::view") == 1
    net = Net()
    shuffle = shuffled(net, net.input(1, 6, 4, 4))
    assert "tm::view" in routed(net.give(net.conv(shuffle, 5), shuffle))


def test_other_transposes_stay() -> None:
    net = Net()
    turned = net("aten::permute", net.input(1, 4, 4, 4), [0, 1, 3, 2])
    assert "tm::view" in routed(net.give(net.conv(turned, 3)))


def test_pixel_shuffles_are_blocks() -> None:
    net = Net()
    up = net("aten::pixel_shuffle", net("aten::relu", net.conv(net.input(2, 3, 4, 6), 12)), 2)
    down = net("aten::pixel_unshuffle", up, 2)
    graph = net.give(up, net.conv(down, 5))
    apply(Decompose(catalogue(), "tflite", TFLITE_RUNTIME), graph)
    routed(graph)
    orders = [expr.kwargs["order"] for expr in graph if getattr(expr, "function", "") == "tm::view"]
    assert orders == [[0, 3, 4, 1, 5, 2], [0, 3, 5, 1, 2, 4]]  # DEPTH_TO_SPACE and SPACE_TO_DEPTH


def test_a_convolution_makes_its_channels_in_order() -> None:
    net = Net()
    made = net("aten::relu", net.conv(net.input(1, 3, 4, 4), 6))
    graph = net.give(net("aten::add", shuffled(net, made), net.input(1, 6, 4, 4)))
    routed(graph)
    apply(DropIdentities(), graph)
    assert routed(graph) == ["aten::conv2d", "aten::relu", "aten::add"]
    net = Net()
    made = net.conv(net.input(1, 3, 4, 4), 6)  # which is given as it is, too
    assert "tm::view" in routed(net.give(net("aten::add", shuffled(net, made), made)))


def test_a_shuffle_after_a_concatenation_and_an_activation() -> None:
    """The concatenation has several operands, none of which computes all channels."""
    net = Net()
    x = net.input(1, 6, 4, 4)
    joined = net("aten::cat", [net.conv(x, 4), net.conv(x, 4)], 1)
    result = net("aten::relu", shuffled(net, net("aten::tanh", joined)))
    assert routed(net.give(result)).count("tm::view") == 1
