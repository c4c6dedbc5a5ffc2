"""Views around matrix products, in front of elementwise ops and reductions: fewer, and the same numbers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.passes.graphs import Net, apply
from tmconvert.ir import CallFunction, InternalGraph
from tmconvert.passes.decompose import Decompose
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.fuse_views import FuseViews
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME
from tmconvert.targets.tflite.passes.fold_transposes import FoldTransposes
from tmconvert.targets.tflite.passes.sink_reshapes import SinkReshapes


def functions(graph: InternalGraph) -> list[str]:
    return [expr.function for expr in graph if isinstance(expr, CallFunction)]


def moved(graph: InternalGraph) -> list[str]:
    """The ops that are left, without those that are views of no consequence."""
    for make in (FuseViews, FoldTransposes, SinkReshapes, FuseViews):
        apply(make(catalogue()), graph)
        apply(EliminateDeadCode(), graph)
    calls = [expr for expr in graph if isinstance(expr, CallFunction)]
    return [
        call.function
        for call in calls
        if call.function != "tm::view" or call.output.type.shape != call.args[0].type.shape
    ]


def attention(net: Net, x: Any, heads: int, *, packed: bool) -> Any:
    """[B, L, E] -> [B, L, E]; ``packed``: query, key and value are of one linear layer."""
    batch, length, width = x.type.shape
    if packed:
        whole = net("aten::linear", x, net.constant(3 * width, width), net.constant(3 * width))
        whole = net("aten::reshape", whole, [batch, length, 3, heads, width // heads])
        whole = net("aten::permute", whole, [2, 0, 3, 1, 4])
        query, key, value = (net("aten::select", whole, 0, i) for i in range(3))
    else:
        parts = [net("aten::linear", x, net.constant(width, width), net.constant(width)) for _ in range(3)]
        parts = [net("aten::reshape", part, [batch, length, heads, width // heads]) for part in parts]
        query, key, value = (net("aten::permute", part, [0, 2, 1, 3]) for part in parts)
    scores = net("aten::matmul", query, net("aten::permute", key, [0, 1, 3, 2]))
    mixed = net("aten::matmul", net("aten::softmax", scores, -1), value)
    mixed = net("aten::reshape", net("aten::permute", mixed, [0, 2, 1, 3]), [batch, length, width])
    return net("aten::linear", mixed, net.constant(width, width), net.constant(width))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("batch", [1, 2])
def test_heads_of_attention_need_one_view_each(packed: bool, batch: int) -> None:
    net = Net()
    graph = net.give(attention(net, net.input(batch, 3, 4), 2, packed=packed))
    left = moved(graph)
    assert left.count("tm::matmul_nt") == 1
    assert left.count("aten::linear") == 4  # one each of queries, keys and values, which nothing selects from
    assert left.count("tm::view") == 4
    layers = [expr for expr in graph if getattr(expr, "function", "") == "aten::linear"]
    assert [layer.output.type.shape[-1] for layer in layers] == [4] * 4


def test_windows_move_through_linear_layers() -> None:
    net = Net()
    x = net.input(1, 4, 6, 8)
    windows = net("aten::reshape", x, [1, 2, 2, 3, 2, 8])
    windows = net("aten::reshape", net("aten::permute", windows, [0, 1, 3, 2, 4, 5]), [6, 4, 8])
    y = attention(net, windows, 2, packed=True)
    y = net("aten::permute", net("aten::reshape", y, [1, 2, 3, 2, 2, 8]), [0, 1, 3, 2, 4, 5])
    left = moved(net.give(net("aten::reshape", y, [1, 4, 6, 8])))
    assert left.count("tm::view") == 5  # two of windows, three of heads
    assert left[-1] == "aten::linear"


@pytest.mark.parametrize("is_shared", [False, True])
def test_features_are_selected_from_a_layer_without_another_user(is_shared: bool) -> None:
    net = Net()
    y = net("aten::linear", net.input(1, 3, 4), net.constant(4, 4))
    half = net("aten::select", net("aten::reshape", y, [1, 3, 2, 2]), 2, 1)
    graph = net.give(half, net("aten::relu", y)) if is_shared else net.give(half)
    moved(graph)
    widths = [expr.output.type.shape[-1] for expr in graph if getattr(expr, "function", "") == "aten::linear"]
    assert widths == [4 if is_shared else 2]


def test_one_dimensional_convolutions_stay_planar() -> None:
    net = Net()
    x = net("aten::reshape", net.input(1, 4, 6), [1, 4, 1, 6])
    for _ in range(2):
        y = net("aten::reshape", net("aten::conv2d", x, net.constant(4, 4, 1, 1)), [1, 4, 6])
        halves = [net("aten::slice", y, 1, start, start + 2) for start in (0, 2)]
        y = net("aten::add", y, net("aten::cat", [net("aten::relu", halves[0]), halves[1]], 1))
        y = net("aten::mul", y, net.constant(4, 1))
        x = net("aten::reshape", y, [1, 4, 1, 6])
    left = moved(net.give(net("aten::mean", y, [-1], False)))
    assert left.count("tm::view") == 1
    assert left[-1] == "aten::mean"


@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions_drop_their_axes_themselves(keepdim: bool) -> None:
    net = Net()
    x = net.input(2, 3, 4, 5)
    y = net("aten::mean", x, [2, 3], keepdim)
    pooled = net("aten::avg_pool2d", net("aten::relu", x), [4, 5], [1, 1])
    graph = net.give(net("aten::relu", net("aten::reshape", y, [2, 3])), net("aten::reshape", pooled, [2, 3]))
    assert "tm::view" not in moved(graph)


@pytest.mark.parametrize("axes", [[0, 1, 2], [0, 2, 1]])
def test_a_constant_of_one_element_adds_no_axes_to_what_moves_before_a_reshape(axes: list[int]) -> None:
    net = Net()
    x = net("aten::permute", net.input(4, 3, 5), axes)
    y = net("aten::mul", net("aten::reshape", x, [1, *x.type.shape]), net.constant(1, 1, 1, 1))
    graph = net.give(net("aten::reshape", y, list(x.type.shape)))
    apply(FuseViews(catalogue()), graph)
    apply(SinkReshapes(catalogue()), graph)
    product = next(call for call in graph if getattr(call, "function", "") == "aten::mul")
    assert product.output.type.rank == 3


@st.composite
def networks(draw: st.DrawFn) -> InternalGraph:
    """Linear layers, products and elementwise ops with views between them."""
    net = Net()
    extents = st.sampled_from([1, 2, 3, 4])
    nodes: list[Any] = [net.input(*draw(st.lists(extents, min_size=2, max_size=4)))]
    for _ in range(draw(st.integers(2, 9))):
        x = draw(st.sampled_from(nodes[-3:]))
        shape = x.type.shape
        kind = draw(
            st.sampled_from(["linear", "permute", "split", "squeeze", "product", "mul", "mean", "slice"])
        )
        if kind == "linear":
            features = draw(st.sampled_from([1, 4, 6]))
            nodes.append(net("aten::linear", x, net.constant(features, shape[-1]), net.constant(features)))
        elif kind == "permute":
            nodes.append(net("aten::permute", x, draw(st.permutations(range(len(shape))))))
        elif kind == "split" and len(shape) < 5:
            axis = draw(st.integers(0, len(shape) - 1))
            size = draw(st.sampled_from([d for d in (1, 2, 3) if shape[axis] % d == 0]))
            nodes.append(
                net("aten::reshape", x, [*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :]])
            )
        elif kind == "squeeze" and len(shape) > 2:
            axis = draw(st.integers(0, len(shape) - 2))
            joined = shape[axis] * shape[axis + 1]
            nodes.append(net("aten::reshape", x, [*shape[:axis], joined, *shape[axis + 2 :]]))
        elif kind == "product":
            order = list(range(len(shape)))
            turned = net("aten::permute", x, [*order[:-2], order[-1], order[-2]])
            nodes.append(net("aten::matmul", draw(st.sampled_from([x, net("aten::relu", x)])), turned))
        elif kind == "mul":
            kept = shape[draw(st.integers(0, len(shape) - 1)) :]
            one = net.constant(*[1] * len(shape))  # of one element, with all axes
            other = draw(st.sampled_from([net.constant(*kept), one, net("aten::neg", x)]))
            nodes.append(net("aten::mul", x, other))
        elif kind == "mean" and len(shape) > 2:
            nodes.append(net("aten::mean", x, [draw(st.integers(0, len(shape) - 1))], draw(st.booleans())))
        elif kind == "slice":
            axis = draw(st.integers(0, len(shape) - 1))
            nodes.append(net("aten::cat", [net("aten::slice", x, axis, 0, 1), x], axis))
    return net.give(
        *draw(st.lists(st.sampled_from(nodes[1:] or nodes), min_size=1, max_size=2, unique_by=id))
    )


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(networks())
def test_random_networks(graph: InternalGraph) -> None:
    moved(graph)


def test_planes_of_volumes_meet() -> None:
    """conv3d as planes, relu, a sum, pooling and a mean."""
    net = Net()

    def volume(x: Any, channels: int) -> Any:
        _, given, *window = x.type.shape
        weight = net.constant(channels, given, 3, 3, 3)
        assert len(window) == 3
        return net("aten::conv3d", x, weight, net.constant(channels), [1] * 3, [1] * 3, [1] * 3, 1)

    x = net("aten::relu", volume(net.input(1, 2, 4, 4, 6), 3))
    x = net("aten::max_pool3d", net("aten::add", x, net("aten::relu", volume(x, 3))), [2] * 3, [2] * 3)
    graph = net.give(net("aten::mean", net("aten::relu", volume(x, 2)), [2, 3, 4], False))
    apply(Decompose(catalogue(), "tflite", TFLITE_RUNTIME), graph)
    moved(graph)
    views = [expr for expr in graph if getattr(expr, "function", "") == "tm::view"]
    left = moved(graph)
    assert left.count("aten::mean") == 1
    assert len([view for view in views if view.output.type.rank == 5]) == 0
    assert left.count("tm::view") <= 4
