"""Edits of graphs: links stay right, or the edit is refused and nothing has changed."""

from __future__ import annotations

import numpy as np
import pytest

from tmconvert.errors import GraphError
from tmconvert.ir import CallFunction, Constant, Expr, InternalGraph, Node, QParams, TensorNode
from tmconvert.ir.parser import parse_graph
from tmconvert.ir.subgraphs import nested
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.surgery.transaction import Transaction

DIAMOND = """
graph net(%x: f32[2,3]) -> (%d, %b) {
  %a = aten::relu(%x) : f32[2,3]   loc("m.tm":1)
  %b = aten::neg(%a) : f32[2,3]   loc("m.tm":2)
  %c = aten::add(%a, %a) : f32[2,3]   loc("m.tm":3)
  %d = aten::mul(%b, %c) : f32[2,3]   loc("m.tm":4)
}
"""


def diamond() -> InternalGraph:
    graph = parse_graph(DIAMOND)
    assert_linked(graph)
    return graph


def by_name(graph: InternalGraph) -> dict[str, Expr]:
    return {expr.outputs[0].name: expr for expr in graph}


def node_of(graph: InternalGraph, name: str) -> Node:
    nodes = [*graph.inputs, *(node for expr in graph for node in expr.outputs)]
    return next(node for node in nodes if node.name == name)


def call(function: str, args: tuple[object, ...], name: str) -> CallFunction:
    return CallFunction(function, args, result=TensorNode(name, (2, 3), np.dtype(np.float32)))


def assert_linked(graph: InternalGraph) -> None:
    """Every link is recorded on both of its ends, forwards and backwards."""
    exprs = list(graph)
    assert len(graph) == len(exprs)
    assert [expr.previous for expr in exprs] == [None, *exprs[:-1]][: len(exprs)]
    assert [expr.next for expr in exprs] == [*exprs[1:], None][: len(exprs)]
    assert graph.last is (exprs[-1] if exprs else None)
    assert all(expr.graph is graph for expr in exprs)
    nodes = [*graph.inputs, *(node for expr in exprs for node in expr.outputs)]
    for node in nodes:
        counts = {expr: expr.inputs.count(node) for expr in exprs if node in expr.inputs}
        assert node.uses == counts
        assert set(node.users) == set(counts)
        assert graph.use_count(node) == sum(counts.values()) + graph.outputs.count(node)
        assert graph.is_output(node) == (node in graph.outputs)
    assert len({node.name for node in nodes}) == len(nodes)


def test_the_functions_and_subgraphs_are_those_after_the_last_edit() -> None:
    graph = diamond()
    assert graph.functions == ("aten::relu", "aten::neg", "aten::add", "aten::mul")
    a = by_name(graph)["a"].outputs[0]
    added = graph.insert(call("aten::exp", (a,), "e"))
    assert graph.functions[-1] == "aten::exp"
    graph.remove(added)
    assert "aten::exp" not in graph.functions
    first = by_name(graph)["a"]
    assert isinstance(first, CallFunction)
    first.function = "aten::abs"
    assert graph.functions[0] == "aten::abs"
    before = graph.edits
    with pytest.raises(ZeroDivisionError), Transaction(graph) as edit:
        edit.insert(call("aten::exp", (a,), "e"), None)
        assert "aten::exp" in graph.functions
        raise ZeroDivisionError
    assert graph.edits == before
    graph.rename(a, "other")
    assert "aten::exp" not in graph.functions
    body = InternalGraph("body")
    with_body = CallFunction("tm::cond", (a,), {"body": body}, result=TensorNode("f"))
    graph.insert(with_body)
    assert graph.subgraphs == (body,)
    assert list(nested(graph)) == [body, graph]


def test_insert_at_the_end_at_the_front_and_between() -> None:
    graph = diamond()
    first, *_, last = graph
    graph.insert(call("aten::exp", (graph.inputs[0],), "front"), before=first)
    graph.insert(call("aten::exp", (node_of(graph, "c"),), "between"), before=last)
    graph.insert(call("aten::exp", (node_of(graph, "d"),), "end"))
    assert list(by_name(graph)) == ["front", "a", "b", "c", "between", "d", "end"]
    assert_linked(graph)


def test_insert_into_an_empty_graph() -> None:
    graph = InternalGraph("empty")
    assert len(graph) == 0
    assert graph.last is None
    x = graph.add_input(TensorNode("x"))
    expr = graph.insert(call("aten::exp", (x,), "y"))
    assert list(graph) == [expr]
    assert_linked(graph)


def test_remove_forgets_uses_and_frees_the_name() -> None:
    graph = diamond()
    graph.set_result(node_of(graph, "b"))
    exprs = by_name(graph)
    graph.remove(exprs["d"])
    graph.remove(exprs["c"])
    assert list(by_name(graph)) == ["a", "b"]
    assert node_of(graph, "a").users == (exprs["b"],)
    assert graph.free_name("d") == "d"
    assert exprs["c"].graph is None
    assert_linked(graph)


@pytest.mark.parametrize("name", ["a", "b", "d"])
def test_remove_refuses_what_is_used_or_returned(name: str) -> None:
    graph = diamond()
    before = graph.to_text()
    with pytest.raises(GraphError, match=rf"TM3002.*{name} is still used"):
        graph.remove(by_name(graph)[name])
    assert graph.to_text() == before
    assert_linked(graph)


def test_remove_all_while_iterating() -> None:
    graph = diamond()
    graph.set_result(())
    seen = []
    for expr in graph:
        seen.append(expr.outputs[0].name)
        for node in expr.outputs:
            graph.replace_uses(node, graph.inputs[0])
        graph.remove(expr)
    assert seen == ["a", "b", "c", "d"]
    assert len(graph) == 0
    assert_linked(graph)


def test_a_walk_goes_on_after_its_expression_and_the_next_ones_are_gone() -> None:
    graph = diamond()
    graph.set_result(())
    exprs = by_name(graph)
    walk = iter(graph)
    assert next(walk) is exprs["a"]
    assert next(walk) is exprs["b"]
    for name in ("d", "c", "b"):
        graph.remove(exprs[name])
    graph.insert(call("aten::exp", (node_of(graph, "a"),), "new"))
    assert [expr.outputs[0].name for expr in walk] == []  # what replaces the last comes in front of the walk
    assert list(by_name(graph)) == ["a", "new"]
    assert_linked(graph)


def test_a_walk_does_not_see_what_is_inserted_in_front_of_it() -> None:
    graph = diamond()
    seen = []
    for expr in graph:
        seen.append(expr.outputs[0].name)
        if len(seen) < 10:
            graph.insert(call("aten::exp", (graph.inputs[0],), graph.free_name("e")), before=expr)
    assert seen == ["a", "b", "c", "d"]
    assert len(graph) == 8
    assert_linked(graph)


def test_replace_uses_reaches_every_argument_and_the_result() -> None:
    graph = diamond()
    graph.replace_uses(node_of(graph, "a"), graph.inputs[0])
    graph.replace_uses(node_of(graph, "b"), graph.inputs[0])
    assert graph.inputs[0].uses == {expr: expr.inputs.count(graph.inputs[0]) for expr in graph if expr.inputs}
    assert graph.outputs == [node_of(graph, "d"), graph.inputs[0]]
    assert not node_of(graph, "a").users
    assert_linked(graph)


def test_set_arguments_counts_nested_and_repeated_uses() -> None:
    graph = diamond()
    x, a, d = graph.inputs[0], node_of(graph, "a"), by_name(graph)["d"]
    graph.set_arguments(d, ([a, x, a], slice(x, None, None)), {"out": {"k": (x, 3)}})
    assert x.uses[d] == 3
    assert a.uses[d] == 2
    assert d not in node_of(graph, "b").uses
    assert_linked(graph)


def test_set_result_counts_repetitions() -> None:
    graph = diamond()
    b = node_of(graph, "b")
    graph.set_result({"one": b, "two": [b, graph.inputs[0]]})
    assert graph.outputs == [b, b, graph.inputs[0]]
    assert graph.use_count(b) == 3
    assert not graph.is_output(node_of(graph, "d"))
    assert_linked(graph)


def test_rename_moves_the_name() -> None:
    graph = diamond()
    a = node_of(graph, "a")
    graph.rename(a, "first")
    graph.rename(node_of(graph, "b"), "a")
    graph.rename(a, "first")
    assert "%a = aten::neg(%first)" in graph.to_text()
    assert_linked(graph)


def test_rename_takes_a_reserved_name() -> None:
    graph = diamond()
    graph.rename(node_of(graph, "a"), graph.free_name("b"))
    assert node_of(graph, "b_1").users
    assert_linked(graph)


def test_rename_refuses_names_that_are_taken_and_nodes_of_others() -> None:
    graph, other = diamond(), diamond()
    for node, name in ((node_of(graph, "a"), "b"), (node_of(graph, "a"), ""), (node_of(other, "a"), "new")):
        with pytest.raises(GraphError, match="TM3003"):
            graph.rename(node, name)
    assert_linked(graph)
    assert_linked(other)


def test_free_names_count_up() -> None:
    graph = diamond()
    assert [graph.free_name("a") for _ in range(3)] == ["a_1", "a_2", "a_3"]
    assert graph.free_name("new") == "new"
    assert graph.free_name("new") == "new_1"


def test_a_duplicate_name_is_refused_before_anything_changes() -> None:
    graph = diamond()
    before = graph.to_text()
    with pytest.raises(GraphError, match="TM3003"):
        graph.insert(call("aten::exp", (graph.inputs[0],), "b"))
    with pytest.raises(GraphError, match="TM3003"):
        graph.add_input(TensorNode("a"))
    twins = (TensorNode("t"), TensorNode("t"))
    with pytest.raises(GraphError, match="TM3003"):
        graph.insert(CallFunction("aten::split", (graph.inputs[0],), result=twins))
    assert graph.to_text() == before
    assert_linked(graph)


def test_expressions_of_other_graphs_are_refused() -> None:
    graph, other = diamond(), diamond()
    foreign = by_name(other)["d"]
    with pytest.raises(GraphError, match=r"TM3002.*already belongs"):
        graph.insert(foreign)
    with pytest.raises(GraphError, match=r"TM3002.*is not in graph"):
        graph.insert(call("aten::exp", (), "new"), before=foreign)
    with pytest.raises(GraphError, match=r"TM3002.*not among"):
        graph.remove(foreign)
    with pytest.raises(GraphError, match=r"TM3002.*not among"):
        graph.set_arguments(foreign, (), {})
    with pytest.raises(GraphError, match=r"TM3002.*not among"):
        graph.remove(graph.inputs[0].expr)
    assert_linked(graph)
    assert_linked(other)


def test_copy_is_equal_and_independent() -> None:
    graph = diamond()
    weight = np.arange(3, dtype=np.float32)
    node = TensorNode("w", (3,), weight.dtype, qparams=QParams("int8", (0.5,), (0,), -128, 127), layout=None)
    graph.insert(Constant(weight, "conv.weight", result=node, made_by="test"), before=by_name(graph)["a"])
    by_name(graph)["d"].output.layout = "nhwc"
    graph.set_result({"y": [node_of(graph, "d")], "w": (node,)})
    clone = graph.copy()
    assert clone.to_text() == graph.to_text()
    assert_linked(clone)
    assert by_name(clone)["w"].value is weight
    originals = {id(node) for expr in graph for node in (*expr.inputs, *expr.outputs)}
    assert not originals & {id(node) for expr in clone for node in (*expr.inputs, *expr.outputs)}
    before = graph.to_text()
    clone.set_result(())
    for expr in [*clone][::-1]:
        clone.remove(expr)
    assert graph.to_text() == before
    assert_linked(graph)


def test_copy_does_not_share_attributes() -> None:
    graph = InternalGraph("net")
    x = graph.add_input(TensorNode("x", (2, 3), np.dtype(np.float32)))
    expr = CallFunction("aten::reshape", (x,), {"shape": [3, 2]}, result=TensorNode("y"))
    graph.insert(expr)
    (twin,) = graph.copy()
    twin.kwargs["shape"].append(1)
    assert expr.kwargs == {"shape": [3, 2]}


def test_trees_of_arguments() -> None:
    tree = (1, [2, {"b": 3, "a": (4,)}], slice(5, None, 6))
    assert list(leaves(tree)) == [1, 2, 3, 4, 5, None, 6]
    assert map_leaves(str, tree) == ("1", ["2", {"b": "3", "a": ("4",)}], slice("5", "None", "6"))
