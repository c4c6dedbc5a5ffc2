"""Inlining of submodules: values, names and places survive; what has no finite flat graph is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.ir.modules import FLOAT, Body, chain, module
from tmconvert.errors import UnsupportedError
from tmconvert.ir import CallMethod, GetAttr, ModuleNode, TensorNode, TracedModule, flatten
from tmconvert.ir.traced_module import Example
from tmconvert.ir.tree import leaves

DATA = Path(__file__).parent.parent / "data"
MADE = sorted(path.stem for path in (DATA / "made").glob("*.tm"))
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def golden(path: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    with np.load(path) as arrays:
        return (
            [arrays[f"in{i}"] for i in range(sum(name.startswith("in") for name in arrays.files))],
            [arrays[f"out{i}"] for i in range(sum(name.startswith("out") for name in arrays.files))],
        )


def calls_of_traced_modules(tm: TracedModule) -> list[CallMethod]:
    assert tm.graph is not None
    return [
        expr
        for expr in tm.graph
        if isinstance(expr, CallMethod)
        and isinstance(expr.args[0], ModuleNode)
        and expr.args[0].owner is not None
        and expr.args[0].owner.graphs
    ]


@pytest.mark.parametrize("name", [name for name in MADE if name != "scale_stride_head"])
def test_flat_and_nested_graphs_compute_what_megengine_does(name: str) -> None:
    tm = tmconvert.load(DATA / "made" / f"{name}.tm")
    inputs, outputs = golden(DATA / "made" / f"{name}.npz")
    flat = tm.flatten()
    assert calls_of_traced_modules(tm)
    assert not calls_of_traced_modules(flat)
    for model in (tm, flat, flat.flatten()):
        results = list(leaves(model(*inputs)))
        assert len(results) == len(outputs)
        for result, output in zip(results, outputs, strict=True):
            np.testing.assert_allclose(result, output, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MADE)
def test_flattening_leaves_the_module_alone(name: str) -> None:
    tm = tmconvert.load(DATA / "made" / f"{name}.tm")
    printed = (DATA / "made" / f"{name}.txt").read_text()
    tm.flatten()
    assert printed.startswith(f"{tm.graph}\n")


def test_several_graphs_are_chosen_by_the_structure_of_arguments() -> None:
    tm = tmconvert.load(DATA / "made" / "several_graphs.tm")
    assert len(tm.children["scale"].graphs) == 4
    assert len(set(map(str, tm.children["scale"].graphs.values()))) == 4
    functions = [getattr(expr, "method", getattr(expr, "label", "")) for expr in tm.flatten().graph]
    assert functions.count("__mul__") == 5
    assert functions.count("__sub__") == 2
    assert functions.count("elemwise.relu") + functions.count("nn.relu") == 2


def test_a_flat_graph_has_as_many_calls_as_megengine_says() -> None:
    for path in sorted(DATA.glob("op_*.json")):
        lines = json.loads(path.read_text())["flat_graph"].splitlines()
        wanted = [line for line in lines if line.startswith("\t%") and " = getattr(" not in line]
        flat = tmconvert.load(path.with_suffix(".tm")).flatten()
        assert len([expr for expr in flat.graph if not isinstance(expr, GetAttr)]) == len(wanted)


def test_shared_modules_keep_one_set_of_parameters() -> None:
    tm = tmconvert.load(DATA / "made" / "nested_shared.tm")
    flat = tm.flatten()
    assert tm.children["left"].children["inner"] is tm.children["right"].children["inner"]
    assert flat.parameter_count() == tm.parameter_count() == 2 * 2 * 9 + 2 + 2 * (2 * 2 + 2)


def test_names_tell_the_path_and_sources_the_scope() -> None:
    flat = tmconvert.load(DATA / "made" / "nested_shared.tm").flatten()
    (conv, *_) = [expr for expr in flat.graph if isinstance(expr, CallMethod) and expr.method == "__call__"]
    assert conv.output.name.startswith("left_")
    assert conv.source.scope == "left"
    assert conv.source.class_name == "Nested_left"
    assert conv.source.file.endswith("nested_shared.tm")
    scopes = {expr.source.scope for expr in flat.graph}
    assert scopes == {"", "left", "right", "blocks.0", "blocks.1"}
    names = [node.name for expr in flat.graph for node in expr.outputs]
    assert len(names) == len(set(names))
    assert "blocks_0_out" in names


def test_a_result_that_is_an_argument_keeps_its_meaning() -> None:
    flat = tmconvert.load(DATA / "made" / "passes_through.tm").flatten()
    assert [str(node) for node in flat.graph.outputs] == ["y", "x", flat.graph.last.outputs[0].name]


def test_a_module_held_by_a_constant_is_inlined() -> None:
    inner, top = chain(2), module()
    body = Body(top)
    body.give(body.call(body.captured(inner), body.inputs[0]))
    assert np.array_equal(top.flatten()(X), -X)
    assert [expr.source.scope for expr in top.flatten().graph][-1] == "held.child"


def test_modules_are_passed_as_arguments() -> None:
    inner, caller = chain(1), module("caller")
    body = Body(caller, inputs=0)
    passed = body.graph.add_input(ModuleNode("passed"))
    x = body.graph.add_input(TensorNode("x", (2, 3), FLOAT))
    body.give(body.call(passed, x))
    top = module("", caller=caller, inner=inner)
    body = Body(top)
    body.give(body.call(body.child("caller"), body.child("inner"), body.inputs[0]))
    assert np.array_equal(top(X), -X)
    assert np.array_equal(top.flatten()(X), -X)


def test_odd_names_become_valid_ones() -> None:
    top = module("", **{"模型": chain(1), "a-b c": chain(1)})
    body = Body(top)
    body.give([body.call(body.child(name), body.inputs[0], name="π") for name in ("模型", "a-b c")])
    names = [node.name for expr in top.flatten().graph for node in expr.outputs]
    assert all(re.fullmatch(r"[A-Za-z0-9_]+", name) for name in names)
    assert len(names) == len(set(names))


# ---- what has no flat graph


def refusal(tm: TracedModule) -> UnsupportedError:
    with pytest.raises(UnsupportedError) as caught:
        tm.flatten()
    return caught.value


def test_recursion_is_refused() -> None:
    top = module("", child=module("child"))
    top.children["child"].children["parent"] = top
    for name, owner in (("child", top), ("parent", top.children["child"])):
        body = Body(owner)
        body.give(body.call(body.child(name), body.inputs[0]))
    error = refusal(top)
    assert error.code == "TM2006"
    assert "the module 'child' calls itself" in str(error)
    assert "--> net.tm:%2, in Child (child)" in str(error)
    assert "unroll the recursion" in str(error)


def test_running_a_recursive_module_ends() -> None:
    top = module("")
    top.children["me"] = top
    body = Body(top)
    body.give(body.call(body.child("me"), body.inputs[0]))
    with pytest.raises(UnsupportedError, match=r"TM2006.*nested more than 100 deep"):
        top(X)


def test_exponential_nesting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flatten, "MAX_EXPRESSIONS", 2000)
    error = refusal(chain(60, calls=2))
    assert error.code == "TM2008"
    assert "the flat graph has more than 2000 expressions" in error.message


def test_exponential_nesting_without_any_expression_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each module gets all those below it as arguments, and calls the next one twice."""
    monkeypatch.setattr(flatten, "MAX_CALLS", 2000)
    names = [f"m{i}" for i in range(30)]
    inner = module("m0")
    body = Body(inner)
    body.give(body.inputs[0])
    made = {"m0": inner}
    for level in range(1, 30):
        made[names[level]] = module(names[level])
        body = Body(made[names[level]], inputs=0)
        passed = [body.graph.add_input(ModuleNode(name)) for name in names[:level]]
        x = body.graph.add_input(TensorNode("x", (2, 3), FLOAT))
        for _ in range(2):
            x = body.call(passed[-1], *passed[:-1], x)
        body.give(x)
    top = module("", **made)
    body = Body(top)
    nodes = [body.child(name) for name in names]
    body.give(body.call(nodes[-1], *nodes[:-1], body.inputs[0]))
    assert refusal(top).code == "TM2008"


@pytest.mark.slow
def test_long_chains_of_calls_are_refused_before_python_gives_up() -> None:
    assert np.array_equal(chain(90)(X), -X)
    assert np.array_equal(chain(190).flatten()(X), -X)
    assert refusal(chain(3000)).code == "TM2008"


def test_a_call_of_another_structure_is_refused() -> None:
    top = module("", child=chain(1))
    body = Body(top)
    body.give(body.call(body.child("child"), body.inputs[0], body.inputs[0]))
    error = refusal(top)
    assert error.code == "TM2007"
    assert "was not traced for this structure of arguments" in error.message
    with pytest.raises(UnsupportedError, match="TM2007"):
        top(X)


def test_an_attribute_that_is_not_there_is_refused() -> None:
    top = module("", child=chain(1))
    body = Body(top)
    child = body.child("child")
    body.give(body.call(child, body.inputs[0]))
    del top.children["child"]
    assert refusal(top).code == "TM2007"


def test_a_flat_model_has_the_example_of_its_source() -> None:
    tm = tmconvert.load(sorted(DATA.glob("*.tm"))[0])
    tm.example = Example((X,), (X,))
    flat = tm.flatten()
    assert not flat.is_edited()
    assert flat.example == tm.example
    assert flat.graph is not None
    flat.graph.rename(flat.graph.outputs[0], "renamed")
    assert flat.is_edited()
    assert not tm.is_edited()
    assert tm.example is not None and tm.example.outputs is not None
    assert flat.example is None  # its inputs are of other shapes
