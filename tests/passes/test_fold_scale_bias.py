"""Factors and summands around layers: in their weights, and the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.passes.graphs import Net, apply, refusals
from tmconvert.ir import CallFunction, InternalGraph
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.fold_scale_bias import FoldScaleBias
from tmconvert.passes.fuse_views import FuseViews
from tmconvert.symbolics.registry import catalogue


def folded(graph: InternalGraph) -> list[str]:
    """The ops that are left."""
    for make in (FuseViews, FoldScaleBias):
        apply(make(catalogue()), graph)
        apply(EliminateDeadCode(), graph)
    return [expr.function for expr in graph if isinstance(expr, CallFunction)]


def scaled(net: Net, x: Any, *shape: int) -> Any:
    return net("aten::add", net("aten::mul", x, net.constant(*shape)), net.constant(*shape))


def linear(net: Net, x: Any, width: int, *, bias: bool = True) -> Any:
    weight = net.constant(width, x.type.shape[-1])
    return net("aten::linear", x, weight, net.constant(width) if bias else None)


@pytest.mark.parametrize("bias", [False, True])
def test_weights_of_a_norm_are_in_the_layers_behind(bias: bool) -> None:
    net = Net()
    x = scaled(net, net.input(2, 4, 6), 1, 1, 6)
    rows = net("aten::cat", [net("aten::slice", x, 1, 2, 4), net("aten::slice", x, 1, 0, 2)], 1)
    rows = net("aten::reshape", rows, [8, 6])
    graph = net.give(linear(net, x, 3, bias=bias), linear(net, rows, 5, bias=bias))
    assert sorted({*folded(graph)}) == ["aten::cat", "aten::linear", "aten::slice", "tm::view"]


def test_what_something_else_sees_stays() -> None:
    net = Net()
    x = scaled(net, net.input(2, 6), 1, 6)
    assert "aten::add" in folded(net.give(linear(net, x, 3), x))
    net = Net()
    x, other = scaled(net, net.input(2, 6), 1, 6), net.input(2, 6)
    assert "aten::add" in folded(net.give(linear(net, net("aten::cat", [x, other], 0), 3)))
    net = Net()
    shared = net.constant(6, 6)  # tied weights stay one constant
    x = net("aten::linear", scaled(net, net.input(2, 6), 1, 6), shared, None)
    assert "aten::mul" in folded(net.give(net("aten::linear", x, shared, None)))


def test_a_scale_behind_a_layer() -> None:
    net = Net()
    x = net("aten::permute", linear(net, net.input(1, 3, 4, 5), 6, bias=False), [0, 3, 1, 2])
    assert folded(net.give(scaled(net, x, 1, 6, 1, 1))) == ["aten::linear", "tm::view"]
    net = Net()
    assert folded(net.give(scaled(net, net.conv(net.input(1, 3, 4, 5), 6), 1, 6, 1, 1))) == ["aten::conv2d"]
    net = Net()  # not one number for each channel
    assert len(folded(net.give(scaled(net, net.conv(net.input(1, 3, 4, 5), 4), 1, 1, 1, 5)))) == 3


def test_a_factor_above_0_passes_a_relu() -> None:
    net = Net()
    x = net("aten::relu", net.conv(net.input(1, 3, 4, 5), 6))
    divisor = net.emitter.constant(np.arange(1, 7, dtype=np.float32).reshape(6, 1, 1))
    assert folded(net.give(net("aten::div", x, divisor))) == ["aten::conv2d", "aten::relu"]
    net = Net()  # it is no factor of what is below 0
    x = net("aten::relu", net.conv(net.input(1, 3, 4, 5), 6))
    factor = net.emitter.constant(np.arange(-1, 5, dtype=np.float32).reshape(6, 1, 1))
    assert len(folded(net.give(net("aten::mul", x, factor)))) == 3


def test_one_number_of_a_product() -> None:
    net = Net()
    number = net.emitter.constant(np.float32(3))
    query, key = (net("aten::reshape", linear(net, net.input(2, 3, 4), 4), [2, 3, 2, 2]) for _ in range(2))
    query, key = (net("aten::permute", each, [0, 2, 1, 3]) for each in (query, key))
    scores = net("aten::matmul", query, net("aten::permute", key, [0, 1, 3, 2]))
    assert "aten::div" not in folded(net.give(net("aten::div", scores, number)))
    net = Net()
    number = net.emitter.constant(np.float32(3))
    product = net("aten::matmul", net.input(2, 3, 4), net.constant(4, 2))
    product = net("aten::add", product, net.constant(1, 1, 2))
    assert folded(net.give(net("aten::mul", product, number))) == ["aten::matmul", "aten::add"]


def test_division_by_a_root() -> None:
    net = Net()
    x = net.input(2, 3)
    squares = net("aten::mean", net("aten::mul", x, x), [-1], True)
    safe = net("aten::add", squares, net.emitter.constant(np.float32(1e-5)))
    given = net.give(net("aten::div", x, net("aten::sqrt", safe)))
    assert folded(given)[-2:] == ["aten::rsqrt", "aten::mul"]
    net = Net()
    x = net.input(2, 3)
    squares = net("aten::mean", net("aten::mul", x, x), [-1], True)
    assert "aten::div" in folded(net.give(net("aten::div", x, net("aten::sqrt", squares))))


def test_factors_and_summands_in_a_row() -> None:
    net = Net()
    x = net("aten::sigmoid", net.input(1, 3, 4, 2))
    x = net("aten::mul", x, net.emitter.constant(np.float32(2)))
    x = net("aten::sub", x, net.emitter.constant(np.float32(0.5)))
    x = net("aten::add", x, net.constant(1, 1, 4, 2))
    x = net("aten::mul", x, net.emitter.constant(np.float32(8)))
    assert folded(net.give(x)) == ["aten::sigmoid", "aten::mul", "aten::add"]
    net = Net()  # rows and columns: one constant of both would be larger
    x = net("aten::add", net.input(1, 3, 4, 2), net.constant(1, 1, 4, 1))
    assert folded(net.give(net("aten::add", x, net.constant(1, 1, 1, 2)))) == ["aten::add"] * 2


def test_a_number_has_no_features() -> None:
    net = Net()
    x = net("aten::sum", net.input(2, 3), None, False)
    assert folded(net.give(net("aten::mul", x, net.emitter.constant(np.float32(2))))) == [
        "aten::sum",
        "aten::mul",
    ]


@pytest.mark.parametrize(("number", "stays"), [(1.5 * 2**23, True), (2.0**22, True), (96.0, False)])
def test_sums_that_round_stay(number: float, stays: bool) -> None:
    """x + 2**23 - 2**23 rounds x in float32."""
    net = Net()
    large = net.emitter.constant(np.float32(number))
    x = net("aten::mul", net("aten::sigmoid", net.input(2, 3)), net.emitter.constant(np.float32(5)))
    rounded = net("aten::sub", net("aten::add", x, large), large)
    given = folded(net.give(net("aten::mul", rounded, net.emitter.constant(np.float32(3)))))
    assert ("aten::sub" in given) == stays


def convolution(
    net: Net, x: Any, channels: int, axes: int, *, groups: int = 1, kernel: int = 1, padding: int = 0
) -> Any:
    weight = net.constant(channels, x.type.shape[1] // groups, *[kernel] * axes)
    window = ([1] * axes, [padding] * axes, [1] * axes)
    bias = net.constant(channels) if channels % 2 else None
    return net(f"aten::conv{axes}d", x, weight, bias, *window, groups)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_what_is_in_front_of_convolutions_is_in_their_weights(axes: int, groups: int) -> None:
    net, ones = Net(), [1] * axes
    x = net("aten::sigmoid", net.input(2, 4, *[5] * axes))
    x = scaled(net, x, 4, *ones)
    layers = [
        convolution(net, x, channels * groups, axes, groups=groups, kernel=kernel)
        for channels, kernel in ((3, 1), (2, 3))
    ]
    kept = folded(net.give(*layers))
    assert kept == ["aten::sigmoid", f"aten::conv{axes}d", f"aten::conv{axes}d"]


def test_one_number_in_front_of_a_convolution() -> None:
    net = Net()
    x = net("aten::mul", net("aten::sigmoid", net.input(1, 3, 4, 5)), net.constant())
    assert folded(net.give(convolution(net, x, 5, 2, kernel=3, padding=1))) == [
        "aten::sigmoid",
        "aten::conv2d",
    ]


def refused_in_front(padding: int = 0, *, is_shared: bool = False, is_output: bool = False) -> list[str]:
    """Why a summand in front of a convolution stays."""
    net = Net()
    x = net("aten::add", net("aten::sigmoid", net.input(1, 3, 4, 5)), net.constant(3, 1, 1))
    results = [convolution(net, x, 2, 2, kernel=3, padding=padding)]
    if is_shared:
        results.append(net("aten::relu", x))
    results += [x] * is_output
    return refusals(FoldScaleBias(catalogue()), net.give(*results))


def test_what_stays_in_front_of_a_convolution() -> None:
    assert refused_in_front(1) == ["`n_conv2d` pads it with zeros"]
    assert refused_in_front(is_shared=True) == ["`n_relu` takes it, too, besides convolutions"]
    assert refused_in_front(is_output=True) == ["it is an output of the model"]
    net = Net()
    weight = net.constant(3, 3, 1, 1)
    x = net("aten::mul", net("aten::sigmoid", net.input(1, 3, 4, 5)), net.constant(3, 1, 1))
    layers = [
        net("aten::conv2d", each, weight, None, [1, 1], [0, 0], [1, 1], 1)
        for each in (x, net.input(1, 3, 4, 5))
    ]
    assert refusals(FoldScaleBias(catalogue()), net.give(*layers)) == [
        "the weight of `n_conv2d` has other users"
    ]
    net = Net()  # along the width, not the channels
    x = net("aten::mul", net("aten::sigmoid", net.input(1, 3, 4, 5)), net.constant(5))
    assert len(folded(net.give(convolution(net, x, 2, 2)))) == 3
