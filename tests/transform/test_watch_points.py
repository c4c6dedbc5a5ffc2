"""Watch points and end points behave as in MegEngine 1.13, in nested graphs too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.ir.modules import Body, chain, module
from tmconvert.errors import UsageError
from tmconvert.ir import TracedModule

DATA = Path(__file__).parent.parent / "data"
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def resnet() -> tuple[TracedModule, np.ndarray, np.ndarray]:
    with np.load(DATA / "resnet18.npz") as arrays:
        return tmconvert.load(DATA / "resnet18.tm"), arrays["in0"], arrays["out0"]


def test_watched_nodes_have_values_after_a_run() -> None:
    tm, x, out = resnet()
    graph = tm.graph
    assert graph is not None
    names = ("x", "relu_out", "fc_out")
    nodes = [graph.node_called(name) for name in names]
    tm.set_watch_points(nodes)
    assert tm.watch_node_value == {}
    np.testing.assert_allclose(tm(x), out, atol=1e-5)
    assert list(tm.watch_node_value) == nodes
    assert tm.watch_node_value[nodes[0]] is x
    assert tm.watch_node_value[nodes[1]].min() == 0
    np.testing.assert_array_equal(tm.watch_node_value[nodes[2]], tm(x))
    tm.clear_watch_points()
    assert tm.watch_points == [] and tm.watch_node_value == {}
    tm(x)
    assert tm.watch_node_value == {}


def test_nodes_of_submodules_are_watched() -> None:
    tm, x, _ = resnet()
    inner = tm.get("layer1.0").graph
    relu = inner.node_called("relu_out")
    tm.set_watch_points(relu)
    tm(x)
    assert tm.watch_node_value[relu].shape == relu.shape


def test_of_a_shared_submodule_the_last_call_counts() -> None:
    inner = module("inner")
    body = Body(inner)
    body.give(body.neg(body.inputs[0]))
    top = module("", child=inner)
    body = Body(top)
    child = body.child("child")
    body.give(body.call(child, body.call(child, body.inputs[0])))
    (node,) = inner.graph.outputs
    top.set_watch_points([node])
    top(X)
    np.testing.assert_array_equal(top.watch_node_value[node], X)


def test_a_run_ends_at_the_end_points() -> None:
    tm, x, _ = resnet()
    graph = tm.graph
    assert graph is not None
    ends = [graph.node_called("layer1_out"), graph.node_called("relu_out")]
    tm.set_watch_points([ends[1], graph.node_called("fc_out")])
    tm.set_end_points(ends)
    layer1, relu = tm(x)
    assert layer1.shape == ends[0].shape and relu.shape == ends[1].shape
    assert list(tm.watch_node_value) == [ends[1]]
    tm.clear_end_points()
    assert tm(x).shape == (1, 10)


def test_end_points_may_be_nested() -> None:
    tm = chain(3)
    (node,) = tm.get("child.child").graph.outputs
    tm.set_end_points(node)
    (value,) = tm(X)
    np.testing.assert_array_equal(value, -X)


def test_nodes_of_others_are_refused() -> None:
    tm = chain(2)
    for nodes in (chain(2).graph.outputs, ["x"], [tm]):
        with pytest.raises(UsageError, match="TM6050"):
            tm.set_watch_points(nodes)
        with pytest.raises(UsageError, match="TM6050"):
            tm.set_end_points(nodes)


def test_an_end_point_that_is_not_reached_is_named() -> None:
    unused = module("unused")
    body = Body(unused)
    body.give(body.neg(body.inputs[0], "lost"))
    tm = module("", unused=unused)
    body = Body(tm)
    body.give(body.neg(body.inputs[0]))
    tm.set_end_points(unused.graph.outputs)
    with pytest.raises(UsageError, match=r"TM6050.*end points lost"):
        tm(X)
