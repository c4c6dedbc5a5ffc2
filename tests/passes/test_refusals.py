"""Refusals that no golden file shows, since they need more than a graph as text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.passes.graphs import Net, refusals
from tmconvert.ir.parser import parse_graph
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.passes.fold_constants import FoldConstants
from tmconvert.passes.rewriting import PassRecord
from tmconvert.symbolics.op import FLOATS, Op, Tensor
from tmconvert.symbolics.registry import Catalogue, catalogue
from tmconvert.symbolics.results import same_as
from tmconvert.targets.tflite.passes.fuse_activations import fuse_activations
from tmconvert.targets.tflite.passes.fuse_scales import fuse_scales
from tmconvert.targets.tflite.passes.narrow_integers import narrow_integers

ROOT = Path(__file__).parent.parent.parent
REDUCE_WEIGHT_RANGE = ROOT / "convert/targets/onnx/passes/reduce_weight_range.py"


def test_an_op_without_reference_is_no_constant() -> None:
    op = Op("t::opaque", args=[Tensor("x", FLOATS)], result=same_as("x"))
    text = '%c = aten::constant() {value=[1.0]} : f32[1] by("a")\n  %y = t::opaque(%c) : f32[1] by("b")'
    record = FoldConstants(Catalogue([op])).run(parse_graph(f"graph g() -> (%y) {{\n  {text}\n}}\n"))
    (event,) = record.refused
    assert event.text == "stays: t::opaque has no reference kernel to compute it"


def test_a_constant_of_symbolic_size_is_not_computed() -> None:
    text = (
        '%c = aten::constant() {value=[1.0]} : f32[1] by("a")\n'
        '  %y = aten::expand(%c) {size=[n]} : f32[n] by("b")'
    )
    graph = parse_graph(f"graph g{{n=4}}(%x: f32[n]) -> (%y) {{\n  {text}\n}}\n")
    assert refusals(FoldConstants(catalogue()), graph) == ["one of its sizes is symbolic"]


def test_random_numbers_of_constants_are_no_constants() -> None:
    net = Net()
    graph = net.give(net("tm::random_normal", [3], 0, None))
    assert refusals(FoldConstants(catalogue()), graph) == ["its result is random"]


def value(name: str, dtype: str = "float32", shape: tuple[int, ...] = (1, 2, 2, 3)) -> Value:
    return Value(name, np.dtype(dtype), shape)


def graph_of(inputs: list[Value], outputs: list[Value], *operators: Operator) -> TargetGraph:
    names = [each.name for each in inputs], [each.name for each in outputs]
    return TargetGraph("tflite", 23, "g", inputs, outputs, list(operators), *names)


def test_activations_of_integers_are_not_fused() -> None:
    x, total, y = (value(name, "int32") for name in ("x", "total", "y"))
    add = Operator("ADD", [x, x], [total], {}, "add")
    graph = graph_of([x], [y], add, Operator("RELU", [total], [y], {}, "relu"))
    (event,) = fuse_activations(graph).refused
    assert str(event) == "`y` stays: kernels of int32 have no fused activation"


def test_a_scale_with_an_activation_is_not_fused() -> None:
    x, product, y = value("x"), value("product"), value("y")
    factors = Value("f", np.dtype(np.float32), (3,), np.ones(3, np.float32))
    mul = Operator("MUL", [x, factors], [product], {"fused_activation_function": "RELU"}, "mul")
    graph = graph_of([x], [y], mul, Operator("ADD", [product, factors], [y], {}, "add"))
    (event,) = fuse_scales(graph).refused
    assert str(event) == "`y` stays: its input `product` has a fused activation"


@pytest.mark.parametrize("inside", [False, True])
def test_results_of_subgraphs_stay_int64(inside: bool) -> None:
    x, wide = value("x", "int32"), value("wide", "int64")
    body = graph_of([x], [wide], Operator("CAST", [x], [wide], {}, "cast"))
    if not inside:
        assert not narrow_integers(body).refused
        return
    given, made = value("given", "int32"), value("made", "int64")
    outer = graph_of([given], [made], Operator("WHILE", [given], [made], {"body": body}, "loop"))
    texts = [str(event) for event in narrow_integers(outer).refused]
    assert "`wide` stays: it is an output of a subgraph" in texts
    assert wide.dtype == np.int64


def test_inputs_that_are_returned_stay_int64() -> None:
    x = value("x", "int64")
    (event,) = narrow_integers(graph_of([x], [x])).refused
    assert str(event) == "`x` stays: it is an output, too"


@pytest.mark.parametrize(
    ("limits", "dtype"), [({"MAXIMUM": 0, "MINIMUM": 7}, "int32"), ({"MAXIMUM": 0}, "int64")]
)
def test_integers_of_floats_between_constants_are_narrow(limits: dict[str, float], dtype: str) -> None:
    x, made = value("x"), value("made", "int64")
    operators, last = list[Operator](), x
    for type, limit in limits.items():
        bound = Value(f"{type}_bound", np.dtype("float32"), (), np.array(limit, np.float32))
        operators.append(Operator(type, [bound, last], [last := value(type)], {}, type))
    operators.append(Operator("CAST", [last], [made], {}, "cast"))
    narrow_integers(graph_of([x], [made], *operators))
    assert operators[-1].outputs[0].dtype == dtype


def test_a_node_that_another_rule_changes_is_not_refused() -> None:
    net = Net()
    call = net("aten::relu", net.input(2, 3)).expr
    record = PassRecord("p")
    record.refuse(call, "a reason")
    record.refuse(call, "a reason")
    assert len(record.refused) == 1 and not record
    record.did(call, "was changed")
    assert record and not record.refused


def reasons() -> Iterator[tuple[str, str]]:
    """Each reason in the source of the passes, with its place, as a regular expression."""
    folders = (ROOT / "convert/passes", ROOT / "convert/targets/tflite/passes")
    files = [*(path for folder in folders for path in folder.glob("*.py")), REDUCE_WEIGHT_RANGE]
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())) if path.name != "normalize.py" else ():
            for text in texts_of(node):
                yield f"{path.name}:{text.lineno}", pattern(text)


def texts_of(node: ast.AST) -> Iterator[ast.expr]:
    """The texts that a function returns as a reason, or that are recorded as one."""
    found: list[ast.AST] = []
    if isinstance(node, ast.FunctionDef) and node.name not in ("rewrite", "__str__") and node.returns:
        if "str" in ast.unparse(node.returns):
            found = [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value]
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("record.refuse", "reasons.append"):
        found = list(node.args[-1:])
    for each in found:
        yield from (text for text in whole_texts(each) if " " in pattern(text))


def whole_texts(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from whole_texts(child)


def pattern(text: ast.expr) -> str:
    if isinstance(text, ast.Constant):
        return re.escape(str(text.value))
    assert isinstance(text, ast.JoinedStr)
    parts = (re.escape(each.value) if isinstance(each, ast.Constant) else ".*" for each in text.values)
    return "".join(map(str, parts)).removeprefix(".*").removesuffix(".*")


def test_every_reason_is_in_a_golden_file_or_a_test() -> None:
    found = list(reasons())
    assert len(found) > 60
    shown = [path.read_text() for path in Path(__file__).parent.rglob("*.record")]
    tests = [path.read_text() for path in Path(__file__).parent.glob("test_*.py")]
    corpus = "\n".join([*shown, *tests])
    assert [place for place, text in found if not re.search(text, corpus)] == []
