"""Equalization: factors between layers leave the function as it is, and help the integers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tmconvert
from tests.passes.graphs import Net, random_inputs, run
from tmconvert.calibration.channels import channels, components
from tmconvert.calibration.equalization import equalize
from tmconvert.calibration.placement import kinds, observed_nodes
from tmconvert.ir import CallFunction, Constant, InternalGraph, TensorNode
from tmconvert.ir.verifier import verify_graph
from tmconvert.symbolics.registry import catalogue

DIGITS = Path(__file__).parents[2] / "samples" / "digits.tm"


def equalized(graph: InternalGraph, *, is_per_channel: bool = True) -> int:
    """How many channels were scaled; the graph computes the same before and after."""
    inputs = random_inputs(graph, 1)
    expected = run(graph, inputs)
    samples = [random_inputs(graph, seed) for seed in (2, 3)]
    nodes = observed_nodes(graph, kinds(graph, []))
    count = equalize(graph, catalogue(), samples, nodes, is_per_channel=is_per_channel)
    verify_graph(graph, catalogue())
    for result, value in zip(run(graph, inputs), expected, strict=True):
        np.testing.assert_allclose(result, value, rtol=2e-4, atol=2e-4 * max(1, float(np.abs(value).max())))
    return count


def uneven(net: Net, *shape: int) -> TensorNode:
    """Weights whose channels are of different sizes."""
    made = net.constant(*shape)
    assert isinstance(made.expr, Constant)
    spread = net.rng.uniform(0.02, 0.5, (shape[0], *[1] * (len(shape) - 1))).astype(np.float32)
    made.expr.value = np.asarray(made.expr.value) * spread / np.float32(np.sqrt(np.prod(shape[1:])))
    return made


def conv(net: Net, x: TensorNode, outputs: int, *, kernel: int = 3, groups: int = 1) -> TensorNode:
    axes = len(x.type.shape) - 2
    weight = uneven(net, outputs, x.type.shape[1] // groups, *[kernel] * axes)
    padding = [kernel // 2] * axes
    bias = net.constant(outputs) if net.rng.integers(2) else None
    return net(f"aten::conv{axes}d", x, weight, bias, [1] * axes, padding, [1] * axes, groups)


def transposed(net: Net, x: TensorNode, outputs: int, groups: int) -> TensorNode:
    weight = uneven(net, x.type.shape[1], outputs // groups, 2, 2)
    bias = net.constant(outputs)
    return net("aten::conv_transpose2d", x, weight, bias, [2, 2], [0, 0], [0, 0], groups, [1, 1])


def linear(net: Net, x: TensorNode, outputs: int) -> TensorNode:
    return net("aten::linear", x, uneven(net, outputs, x.type.shape[-1]), net.constant(outputs))


ACTIVATIONS: dict[str, Any] = {
    "none": lambda net, x: x,
    "relu": lambda net, x: net("aten::relu", x),
    "relu6": lambda net, x: net("aten::relu6", x),
    "hardtanh": lambda net, x: net("aten::hardtanh", x, 0.0, 1.5),
    "symmetric": lambda net, x: net("aten::hardtanh", x, -1.0, 1.0),
    "clamp": lambda net, x: net("aten::clamp", x, 0.0, 2.0),
    "half": lambda net, x: net("aten::clamp", x, 0.0, None),
    "leaky": lambda net, x: net("aten::leaky_relu", x, 0.1),
    "sigmoid": lambda net, x: net("aten::sigmoid", x),
}
BETWEEN: dict[str, Any] = {
    "nothing": lambda net, x: x,
    "max_pool": lambda net, x: net("aten::max_pool2d", x, [2, 2], [1, 1], [1, 1], [1, 1], False),
    "average": lambda net, x: net("aten::adaptive_avg_pool2d", x, [3, 3]),
    "pad": lambda net, x: net("aten::pad", x, [0, 0, 0, 0, 1, 0, 1, 2], "constant", 0.0),
    "pad_by_ones": lambda net, x: net("aten::pad", x, [0, 0, 0, 0, 0, 0, 0, 1], "constant", 1.0),
    "pad_channels": lambda net, x: net("aten::pad", x, [0, 0, 0, 4, 0, 0, 0, 0], "constant", 0.0),
    "mean": lambda net, x: net("aten::mean", x, [2, 3], True),
    "gate": lambda net, x: net("aten::mul", x, net("aten::sigmoid", net("aten::mean", x, [2, 3], True))),
    "shuffle": lambda net, x: net("aten::channel_shuffle", x, 2),
    "there_and_back": lambda net, x: net(
        "aten::permute", net("aten::relu", net("aten::permute", x, [0, 2, 3, 1])), [0, 3, 1, 2]
    ),
}
JOINED: dict[str, Any] = {
    "chain": lambda net, x, y: y,
    "sum": lambda net, x, y: net("aten::add", x, y) if x.type == y.type else y,
    "difference": lambda net, x, y: net("aten::relu", net("aten::sub", x, y)) if x.type == y.type else y,
    "beside": lambda net, x, y: (
        net("aten::cat", [x, y], 1) if x.type.shape[2:] == y.type.shape[2:] and x.type.shape[1] == 8 else y
    ),
    "product": lambda net, x, y: net("aten::mul", x, y) if x.type == y.type else y,
    "largest": lambda net, x, y: net("aten::maximum", x, y) if x.type == y.type else y,
}
STEP = st.tuples(
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 3]),
    *(st.sampled_from(list(table)) for table in (ACTIVATIONS, BETWEEN, JOINED)),
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(STEP, min_size=1, max_size=4),
    end=st.sampled_from(["conv", "flat", "rows", "transposed"]),
    is_per_channel=st.booleans(),
)
def test_any_network_stays_the_same_function(
    steps: list[tuple[int, int, str, str, str]], end: str, is_per_channel: bool
) -> None:
    net = Net()
    x = conv(net, net.input(2, 3, 6, 5), 8)
    for groups, kernel, activation, between, joined in steps:
        width = x.type.shape[1]
        y = ACTIVATIONS[activation](net, conv(net, x, width, kernel=kernel, groups=groups))
        x = BETWEEN[between](net, JOINED[joined](net, x, y))
    if end == "conv":
        x = conv(net, x, 4)
    elif end == "transposed":
        x = conv(net, net("aten::relu", transposed(net, x, 8, 2)), 3)
    elif end == "flat":
        x = linear(net, net("aten::reshape", x, [2, math.prod(x.type.shape[1:])]), 5)
    else:
        x = linear(net, net("aten::permute", x, [0, 2, 3, 1]), 6)
        x = linear(net, net("aten::relu", x), 5)
    equalized(net.give(x), is_per_channel=is_per_channel)


@pytest.mark.parametrize("activation", ["none", "relu", "relu6", "hardtanh", "clamp", "half", "leaky"])
@pytest.mark.parametrize("groups", [1, 2, 8])
def test_channels_between_two_layers_are_scaled(activation: str, groups: int) -> None:
    net = Net()
    x = ACTIVATIONS[activation](net, conv(net, net.input(1, 3, 6, 5), 8))
    assert equalized(net.give(conv(net, x, 8, groups=groups))) == 8


@pytest.mark.parametrize("activation", ["symmetric", "sigmoid"])
def test_what_is_not_homogeneous_holds_its_channels(activation: str) -> None:
    net = Net()
    x = ACTIVATIONS[activation](net, conv(net, net.input(1, 3, 6, 5), 8))
    assert equalized(net.give(conv(net, x, 8))) == 0


def test_outputs_and_shared_weights_hold_their_channels() -> None:
    net = Net()
    x = conv(net, net.input(1, 3, 6, 5), 8)
    assert equalized(net.give(conv(net, x, 8), x)) == 0
    net = Net()
    x, weight = net.input(1, 4), uneven(net, 4, 4)
    assert equalized(net.give(net("aten::linear", net("aten::linear", x, weight, None), weight, None))) == 0


def test_a_depthwise_layer_has_factors_of_its_own_on_both_sides() -> None:
    net = Net()
    x = net("aten::relu", conv(net, net.input(1, 3, 6, 5), 8))
    x = net("aten::relu", conv(net, x, 8, groups=8))
    graph = net.give(conv(net, x, 4))
    assert len({label for each in channels(graph).labels.values() for label in each.numbers}) == 8 + 8 + 4
    assert equalized(graph) == 16


def test_a_bound_becomes_one_for_each_channel() -> None:
    net = Net()
    x = net("aten::relu6", conv(net, net.input(1, 3, 6, 5), 8))
    name = x.name
    graph = net.give(conv(net, x, 4))
    equalized(graph)
    calls = [expr for expr in graph if isinstance(expr, CallFunction)]
    assert [call.function for call in calls] == [
        "aten::conv2d",
        "aten::relu",
        "aten::minimum",
        "aten::conv2d",
    ]
    assert calls[2].output.name == name
    assert np.unique(calls[2].args[1].expr.value).size == 8  # type: ignore[union-attr]


def test_components_have_the_lowest_number() -> None:
    pairs = [(np.array([5, 1]), np.array([3, 2])), (np.array([3]), np.array([0]))]
    assert components(7, pairs).tolist() == [0, 1, 1, 0, 4, 0, 6]
    assert components(2, []).tolist() == [0, 1]


# ---- in integers


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_no_minimum_is_left_in_integers(target: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = [
        torch.nn.Conv2d(3, 8, 3),
        torch.nn.ReLU6(),
        torch.nn.Conv2d(8, 8, 3, groups=8),
        torch.nn.ReLU6(),
    ]
    model = torch.nn.Sequential(*layers, torch.nn.Conv2d(8, 4, 1))
    with torch.no_grad():
        model[0].weight *= torch.linspace(0.5, 9, 8)[:, None, None, None]
    data = np.random.default_rng(0).standard_normal((8, 3, 8, 8)).astype(np.float32)
    traced = tmconvert.trace(model, torch.from_numpy(data[:1]))
    made = tmconvert.calibrate(traced, data[:, None])
    assert made.graph is not None
    functions = [expr.function for expr in made.graph if isinstance(expr, CallFunction)]
    assert "aten::minimum" in functions
    write = tmconvert.to_onnx if target == "onnx" else tmconvert.to_tflite
    report = write(made, tmp_path / "m", quantized=True)
    assert report.verified
    assert not any("in float" in note for note in report.notes)
    content = (tmp_path / "m").read_bytes()
    assert b"minimum" not in content
