"""Running graphs on arrays: golden outputs, structure, lifetime of values, wrong inputs."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.ir.modules import FLOAT, Body, chain, module
from tmconvert.errors import TmconvertError, UnsupportedError, UsageError
from tmconvert.ir import CallFunction, InternalGraph, Node, TensorNode, TracedModule
from tmconvert.ir.interpreter import Interpreter
from tmconvert.ir.parser import parse_graph
from tmconvert.ir.tree import leaves

DATA = Path(__file__).parent.parent / "data"
# models whose every call had a meaning when the interpreter was written
SUPPORTED = [
    *("det_yolox_focus", "efficientnet_se", "mobilenet_v1", "mobilenet_v2", "op_conv_variants"),
    *("op_multi_io", "op_nested_reuse", "op_pad", "op_pooling", "op_s_conv_bn_relu", "op_s_elemwise"),
    *("op_s_flatten_linear", "op_s_pool_chain", "op_subtensor", "proto3_tiny", "proto5_tiny"),
    *("resnet18", "shufflenet_v2", "surgery_inner_graph", "surgery_insert_exprs"),
    *("surgery_reset_outputs", "v1_12_4_mobilenet", "v1_6_0_mobilenet", "v1_7_0_mobilenet"),
    *("v1_9_1_mobilenet",),
]
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("name", SUPPORTED)
def test_nested_graphs_compute_the_golden_outputs(name: str) -> None:
    tm = tmconvert.load(DATA / f"{name}.tm")
    with np.load(DATA / f"{name}.npz") as arrays:
        inputs = [arrays[f"in{i}"] for i in range(len(tm.graph.inputs) - 1)]
        outputs = [arrays[f"out{i}"] for i in range(len(tm.graph.outputs))]
    by_sorted_key = _sorted_by_key(tm(*inputs))
    assert len(by_sorted_key) == len(outputs)
    for result, output in zip(by_sorted_key, outputs, strict=True):
        assert result.dtype == output.dtype
        scale = max(np.abs(output).max(), 1e-6)
        np.testing.assert_allclose(result / scale, output / scale, atol=2e-5)


def _sorted_by_key(tree: Any) -> list[np.ndarray]:
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in _sorted_by_key(tree[key])]
    if isinstance(tree, (tuple, list)):
        return [leaf for item in tree for leaf in _sorted_by_key(item)]
    return [tree]


def test_the_result_has_the_structure_of_the_source() -> None:
    tm = tmconvert.load(DATA / "made" / "keywords.tm")
    result = tm(X, X)
    assert set(result) == {"sum", "parts"}
    assert isinstance(result["parts"], list) and len(result["parts"]) == 2


def test_results_of_rank_0_are_arrays() -> None:
    tm = tmconvert.load(DATA / "op_reduce.tm")
    add = CallFunction("megengine.functional.elemwise.add", ())
    total = tm.vocabulary.evaluate(add, (np.array(1.5, np.float32), np.array(2, np.float32)), {})
    assert isinstance(total, np.ndarray) and total.shape == ()


def test_inputs_are_not_changed_and_lists_are_taken() -> None:
    tm = chain(3)
    x = X.copy()
    assert np.array_equal(tm(x), -X)
    assert np.array_equal(x, X)
    assert np.array_equal(module_of_neg()([1.0, 2.0]), [-1.0, -2.0])


def module_of_neg() -> TracedModule:
    return chain(1)


@pytest.mark.parametrize(("given", "text"), [(0, "0 were given"), (2, "2 were given")])
def test_a_wrong_number_of_inputs_is_the_users_mistake(given: int, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        chain(2)(*[X] * given)
    assert caught.value.code == "TM6003"
    assert caught.value.exit_status == 2
    assert f"m1 takes 1 inputs, {text}" in str(caught.value)


def test_a_module_without_a_graph_does_not_run() -> None:
    with pytest.raises(UsageError, match="TM6004"):
        TracedModule("m")(X)


def test_a_call_without_meaning_says_which() -> None:
    tm = tmconvert.load(DATA / "custom_user_function.tm")
    with np.load(DATA / "custom_user_function.npz") as arrays:
        inputs = [arrays[f"in{i}"] for i in range(len(tm.graph.inputs) - 1)]
    with pytest.raises(UnsupportedError, match="TM2001") as caught:
        tm(*inputs)
    assert "is not supported" in caught.value.message
    assert caught.value.excerpt


def test_results_that_memory_cannot_hold_are_an_error_with_a_code() -> None:
    graph, nodes = line(1)
    graph.set_result((nodes[-1],))

    def evaluate(expr: Any, args: Any, kwargs: Any) -> np.ndarray:
        return np.ones((1 << 28, 1 << 28), np.float32)

    with pytest.raises(TmconvertError, match="TM5003") as caught:
        Interpreter(graph, evaluate=evaluate).run(X)
    assert "neg" in caught.value.excerpt


class Tracked(np.ndarray):
    """An array that can be referred to weakly."""


def tracking(alive: list[list[bool]], made: list[weakref.ref[Any]]) -> Any:
    def evaluate(expr: Any, args: Any, kwargs: Any) -> np.ndarray:
        alive.append([ref() is not None for ref in made])
        result = (-np.asarray(args[0])).view(Tracked)
        made.append(weakref.ref(result))
        return result

    return evaluate


def line(count: int) -> tuple[InternalGraph, list[Node]]:
    graph = InternalGraph("line")
    nodes: list[Node] = [graph.add_input(TensorNode("x", (2, 3), FLOAT))]
    for i in range(count):
        expr = graph.insert(CallFunction("neg", (nodes[-1],), result=TensorNode(f"n{i}", (2, 3), FLOAT)))
        nodes.append(expr.outputs[0])
    return graph, nodes


def test_values_are_freed_after_their_last_use() -> None:
    graph, nodes = line(5)
    graph.set_result((nodes[-1],))
    alive: list[list[bool]] = []
    Interpreter(graph, evaluate=tracking(alive, [])).run(X)
    assert alive == [[], [True], [False, True], [False, False, True], [False, False, False, True]]


def test_values_live_until_their_last_use_and_results_to_the_end() -> None:
    graph, nodes = line(4)
    graph.insert(CallFunction("neg", (nodes[1], nodes[1]), result=TensorNode("again", (2, 3), FLOAT)))
    graph.set_result([nodes[2], {"again": graph.last.outputs[0]}, nodes[2], nodes[0]])
    alive: list[list[bool]] = []
    result = Interpreter(graph, evaluate=tracking(alive, [])).run(X)
    assert alive[-1] == [
        True,
        True,
        False,
        False,
    ]  # nodes[1], nodes[2], nodes[3], and nodes[4], which nothing uses
    assert result[0] is result[2]
    assert np.array_equal(result[1]["again"], X)
    assert result[3] is X


def test_a_subclass_sees_every_expression_of_every_graph() -> None:
    class Counting(Interpreter):
        seen: list[str] = []  # noqa: RUF012

        def run_node(self, node: Node) -> Any:
            self.seen.append(type(node.expr).__name__)
            return super().run_node(node)

    tm = chain(3)
    Counting(tm).run(X)
    assert Counting.seen == ["Input", "GetAttr", "CallMethod", "GetAttr", "CallMethod", "CallFunction"]


def test_the_actual_arguments_are_the_nodes_in_order() -> None:
    """A constant array among the arguments is not one of the callee's inputs."""
    inner = module("inner")
    body = Body(inner, inputs=2)
    body.give((body.neg(body.inputs[0]), body.inputs[1]))
    top = module("", inner=inner)
    body = Body(top, inputs=2)
    node = body.child("inner")
    results = (body.tensor("a"), body.tensor("b"))
    from tmconvert.ir import CallMethod

    args = (node, np.ones(3), body.inputs[1])
    body.graph.insert(CallMethod("__call__", args, {"y": body.inputs[0]}, result=results))
    body.give(list(results))
    a, b = top(X, X + 1)
    assert np.array_equal(a, -X - 1)
    assert np.array_equal(b, X)
    assert [leaf.tolist() for leaf in leaves(top.flatten()(X, X + 1))] == [a.tolist(), b.tolist()]


def test_a_source_graph_is_interpreted_by_its_module() -> None:
    module = tmconvert.load(DATA / "op_s_elemwise.tm")
    with np.load(DATA / "op_s_elemwise.npz") as golden:
        result = module.graph.interpret(module, golden["in0"])
        np.testing.assert_allclose(result, golden["out0"], rtol=1e-5, atol=1e-6)


def test_a_graph_without_a_module_needs_evaluate() -> None:
    graph = parse_graph("graph g(%x: f32[2]) -> (%y) {\n  %y = aten::relu(%x) : f32[2]\n}")
    with pytest.raises(UsageError, match="TM6004"):
        graph.interpret(np.zeros(2, np.float32))
    np.testing.assert_array_equal(graph.interpret(X, evaluate=lambda expr, args, kwargs: args[0] + 1), X + 1)
