"""Batch norms that fold into the layer in front, and those that must stay, with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.passes.graphs import Net, apply, recorded, refusals
from tmconvert.errors.source import Source
from tmconvert.ir import CallFunction, Constant, InternalGraph, QParams, TensorNode
from tmconvert.passes.fuse_conv_bn import FuseConvBn


def norm(net: Net, x: TensorNode, *, affine: bool = True, computed: bool = False) -> TensorNode:
    channels = x.type.shape[1]
    gamma, beta = (net.constant(channels), net.constant(channels)) if affine else (None, None)
    mean, spread = net.constant(channels), net.constant(channels)
    assert isinstance(spread.expr, Constant)
    spread.expr.value = np.abs(spread.expr.value) + 0.1
    if computed:
        mean = net.input(channels)
    return net("aten::batch_norm", x, gamma, beta, mean, spread, 1e-3)


def conv(net: Net, x: TensorNode, weight: TensorNode, bias: Any = None, *, groups: int = 1) -> TensorNode:
    return net("aten::conv2d", x, weight, bias, [1, 1], [1, 0], [1, 1], groups)


def functions(graph: InternalGraph) -> list[str]:
    return [expr.function for expr in graph if isinstance(expr, CallFunction)]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions(bias: bool, affine: bool, groups: int) -> None:
    net = Net()
    x, weight = net.input(2, 4, 5, 7), net.constant(6, 4 // groups, 3, 2)
    y = norm(net, conv(net, x, weight, net.constant(6) if bias else None, groups=groups), affine=affine)
    graph = net.give(y)
    name = y.name
    assert apply(FuseConvBn(), graph)
    assert functions(graph) == ["aten::conv2d"]
    assert graph.outputs[0].name == name


@pytest.mark.parametrize("axes", [1, 3])
def test_convolutions_over_other_axes(axes: int) -> None:
    net = Net()
    x, weight = net.input(2, 4, *[5] * axes), net.constant(6, 2, *[3] * axes)
    layer = net(f"aten::conv{axes}d", x, weight, None, [1] * axes, [0] * axes, [1] * axes, 2)
    graph = net.give(norm(net, layer))
    assert apply(FuseConvBn(), graph)
    assert functions(graph) == [f"aten::conv{axes}d"]


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolutions(axes: int, groups: int) -> None:
    net = Net()
    name, ones, zeros = f"aten::conv_transpose{axes}d", [1] * axes, [0] * axes
    x, weight, bias = net.input(2, 4, *[5] * axes), net.constant(4, 3, *[3] * axes), net.constant(3 * groups)
    graph = net.give(norm(net, net(name, x, weight, bias, [2] * axes, ones, zeros, groups, ones)))
    assert apply(FuseConvBn(), graph)
    assert functions(graph) == [name]


def test_linear_layers() -> None:
    net = Net()
    graph = net.give(norm(net, net("aten::linear", net.input(3, 5), net.constant(7, 5), net.constant(7))))
    assert apply(FuseConvBn(), graph)
    assert functions(graph) == ["aten::linear"]


def test_a_norm_behind_a_fused_norm_folds_too() -> None:
    net = Net()
    graph = net.give(norm(net, norm(net, conv(net, net.input(2, 4, 5, 7), net.constant(6, 4, 1, 1)))))
    assert apply(FuseConvBn(), graph)
    assert functions(graph) == ["aten::conv2d"]


def test_shared_parameters_are_left_to_their_other_users() -> None:
    """A bias and a weight with two users: each layer gets its own, the others keep theirs."""
    net = Net()
    x, weight, bias = net.input(2, 4, 5, 7), net.constant(4, 4, 3, 1), net.constant(4)
    y = norm(net, conv(net, x, weight, bias))
    other = conv(net, x, weight, bias)
    graph = net.give(net("aten::relu", y), other, bias)
    assert apply(FuseConvBn(), graph)
    assert sorted(functions(graph)) == ["aten::conv2d", "aten::conv2d", "aten::relu"]
    assert weight.users == bias.users == (other.expr,)


def test_float64_is_used_on_the_way() -> None:
    """1 + 1e-8 squared away in float32 would lose the variance."""
    net = Net()
    y = norm(net, conv(net, net.input(1, 1, 3, 3), net.constant(1, 1, 1, 1)), affine=False)
    graph = net.give(y)
    spread = y.expr.args[4].expr
    spread.value = np.full(1, 1e-30, np.float32)
    y.expr.kwargs["eps"] = 1e-30
    assert FuseConvBn().run(graph)
    weight = graph.outputs[0].expr.args[1].expr.value
    assert np.isfinite(weight).all()


@pytest.mark.filterwarnings("error")
def test_a_channel_that_overflows_warns_of_nothing() -> None:
    net = Net()
    y = norm(net, conv(net, net.input(1, 1, 3, 3), net.constant(1, 1, 1, 1)))
    y.expr.args[4].expr.value = np.full(1, -4.0, np.float32)
    assert FuseConvBn().run(net.give(y))


def reason(graph: InternalGraph) -> str:
    (only,) = refusals(FuseConvBn(), graph)
    return only


def test_the_record_names_the_norm_and_its_line() -> None:
    net = Net()
    x = conv(net, net.input(2, 4, 5, 7), net.constant(3, 4, 1, 1))
    y = norm(net, x)
    y.expr.source = Source("model.py", 31)
    (event,) = recorded(FuseConvBn(), net.give(y)).done
    assert str(event) == f"`{y.name}` was fused into `{x.name}` (model.py:31)"
    y = norm(net, net.input(2, 3, 5, 7))
    y.expr.source = Source("model.py", 31)
    (event,) = recorded(FuseConvBn(), net.give(y)).refused
    assert str(event) == f"`{y.name}` stays: no convolution or linear layer comes before it (model.py:31)"


def test_refused_behind_something_else() -> None:
    net = Net()
    y = norm(net, net("aten::relu", net.input(2, 3, 5, 7)))
    assert reason(net.give(y)) == "no convolution or linear layer comes before it"


def test_refused_when_the_convolution_has_other_users() -> None:
    net = Net()
    x = conv(net, net.input(2, 4, 5, 7), net.constant(3, 4, 1, 1))
    assert reason(net.give(norm(net, x), x)) == "its input has other users"
    net = Net()
    x = conv(net, net.input(2, 4, 5, 7), net.constant(3, 4, 1, 1))
    assert reason(net.give(net("aten::add", norm(net, x), x))) == "its input has other users"
    net = Net()
    x = conv(net, net.input(2, 4, 5, 7), net.constant(3, 4, 1, 1))
    y = norm(net, net("aten::mul", x, net.emitter.constant(np.float32(2))))
    assert reason(net.give(y, x)) == f"`{x.name}` before it has other users"


def test_refused_when_parameters_are_computed() -> None:
    net = Net()
    y = norm(net, conv(net, net.input(2, 4, 5, 7), net.constant(3, 4, 1, 1)), computed=True)
    assert reason(net.give(y)) == "its parameters are computed"
    net = Net()
    layer = conv(net, net.input(2, 4, 5, 7), net.input(3, 4, 1, 1))
    assert reason(net.give(norm(net, layer))) == f"the parameters of `{layer.name}` are computed"


def test_refused_when_channels_are_not_features() -> None:
    net = Net()
    layer = net("aten::linear", net.input(2, 3, 5), net.constant(7, 5), None)
    expected = f"its channels are not the features of the linear layer `{layer.name}`"
    assert reason(net.give(norm(net, layer))) == expected


def test_refused_when_something_before_it_is_quantized() -> None:
    grid = QParams("int8", (0.1,), (0,), -128, 127)
    for quantized, expected in (
        (0, "`{}` before it has quantization parameters of its own"),
        (1, "the weight of `{}` is quantized, and its scales would not fit the product"),
        (2, "the bias of `{}` is quantized"),
    ):
        net = Net()
        layer = conv(net, net.input(2, 4, 5, 7), net.constant(3, 4, 1, 1), net.constant(3))
        graph = net.give(norm(net, layer))
        (layer.expr.args[quantized] if quantized else layer).qparams = grid
        assert reason(graph) == expected.format(layer.name)
