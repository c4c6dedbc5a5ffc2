"""Searches in graphs, and the names by which nodes are found.

Numbers are those of MegEngine 1.13 for the same file; it counts the inputs of graphs among the expressions.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

import tmconvert
from tests.models.corpus import model
from tmconvert.errors import UsageError
from tmconvert.ir import (
    CallFunction,
    CallMethod,
    GetAttr,
    InternalGraph,
    ModuleNode,
    TensorNode,
    TracedModule,
)
from tmconvert.ir.function_names import FunctionName


@pytest.fixture(scope="module")
def fcos() -> TracedModule:
    return tmconvert.load(model("det_fpn_scale_stride"))


@pytest.fixture(scope="module")
def graph(fcos: TracedModule) -> InternalGraph:
    assert fcos.graph is not None
    return fcos.graph


def test_nodes_of_called_modules_are_found_once(graph: InternalGraph) -> None:
    assert graph.nodes().as_count() == 251
    assert graph.nodes(recursive=False).as_count() == 59
    assert graph.exprs(recursive=False).as_list() == list(graph)
    nested = graph.exprs().as_dict()
    inputs = sum(
        len(module_graph.inputs) for module_graph in {expr.graph for expr in nested.values()} if module_graph
    )
    assert len(nested) + inputs == 248
    assert sorted(nested)[:3] == [2, 3, 4]


def test_a_search_sees_later_edits(fcos: TracedModule) -> None:
    flat = fcos.flatten().graph
    assert flat is not None
    calls = flat.get_function_by_type("nn.relu")
    before = calls.as_count()
    last = calls.as_list()[-1]
    flat.replace_uses(last.outputs[0], last.inputs[0])
    flat.remove(last)
    assert calls.as_count() == before - 1


@pytest.mark.parametrize("name", ["nn.relu", "megengine.functional.nn.relu", "relu"])
def test_functions_are_found_by_name(graph: InternalGraph, name: str) -> None:
    found = graph.get_function_by_type(name)
    assert found.as_count() == 21
    assert str(found.as_list()[0]) == "%8:\trelu_out = nn.relu(backbone_bn1_out, )"
    assert graph.get_function_by_type(name, recursive=False).as_count() == 5


def test_functions_methods_and_builtin_modules_are_found_by_what_they_mean(graph: InternalGraph) -> None:
    relus = graph.exprs().call_function("aten::relu")
    assert relus.as_count() == 22  # one is a module ReLU
    assert relus.type(CallMethod).as_count() == 1
    convolutions = graph.exprs().call_function("aten::conv2d").as_count()
    assert convolutions == graph.exprs().call_module("Conv2d").as_count() > 0
    assert graph.exprs().call_function("aten::mul").as_list() == graph.get_method_by_type("__mul__").as_list()
    assert graph.exprs().call_function("aten::nothing").as_list() == []


def test_methods_modules_ids_and_classes(graph: InternalGraph) -> None:
    assert [expr.id for expr in graph.get_method_by_type("__mul__")] == [219, 228, 236, 244]
    assert str(graph.get_module_by_type("Conv2d").as_list()[:3]) == "[backbone_conv1, conv2, conv1]"
    assert graph.get_module_by_type("megengine.module.conv.Conv2d").as_count() > 3
    assert str(graph.get_expr_by_id(5).as_unique()).startswith("%5:\tbackbone_conv1 = getattr")
    assert [expr.id for expr in graph.get_expr_by_id([5, 8])] == [5, 8]
    assert str(graph.get_expr_by_id(1).as_unique()) == "%1:\tx = Input()"
    assert str(graph.get_node_by_id(5).as_unique()) == "backbone_conv1"
    assert graph.exprs().type(GetAttr).expr_id(8).as_count() == 0
    assert graph.exprs().call_function().as_count() == graph.exprs().type(CallFunction).as_count()
    assert graph.nodes().type(ModuleNode).as_count() + graph.nodes().type(TensorNode).as_count() == 251


def test_nodes_are_found_by_names_with_wildcards(graph: InternalGraph) -> None:
    assert str(graph.get_node_by_name("*relu*").as_list()[:3]) == "[relu_out, relu_out, relu_out_1]"
    assert str(graph.get_node_by_name("Fcos_cls_out").as_unique()) == "cls_out"
    assert str(graph.get_node_by_name("Fcos.cls_t").as_list()) == "[cls_t, self]"
    assert graph.get_node_by_name("CLS_OUT").as_count() == 1
    assert graph.get_node_by_name("CLS_OUT", ignorecase=False).as_count() == 0
    assert [expr.id for expr in graph.exprs().name("box_?_out")] == [226, 234, 242]


def test_a_search_for_one_says_what_it_found(graph: InternalGraph) -> None:
    with pytest.raises(UsageError, match="the search found 4 elements, one was expected") as error:
        graph.get_method_by_type("__mul__").as_unique()
    assert error.value.code == "TM3020"
    assert "%219: mul_out = box_out.__mul__(getitem_out, )" in str(error.value.notes)
    with pytest.raises(UsageError, match="found 0 elements"):
        graph.get_node_by_name("nothing").as_unique()


def test_qualified_names_are_those_of_megengine(fcos: TracedModule, graph: InternalGraph) -> None:
    names = [node.qualname for node in graph.nodes()]
    assert names[:9] == [
        "Fcos",
        "Fcos.[x]",
        "Fcos.fpn",
        "Fcos.backbone.maxpool",
        "Fcos.backbone.bn1",
        "Fcos.backbone.conv1",
        "Fcos.backbone.conv1.[out]",
        "Fcos.backbone.bn1.[out]",
        "Fcos.[func_relu]",
    ]
    assert fcos.get("cls_t").graph.qualname == "Fcos.cls_t"
    flat = fcos.flatten().graph
    assert flat is not None
    assert {"Fcos.backbone.layer1.0.[method_add]", "Fcos.backbone.layer1.1.conv2.[out]"} <= {
        node.qualname for node in flat.nodes()
    }


def test_prints_with_ids_and_paths(graph: InternalGraph) -> None:
    assert f"{graph:i}".splitlines()[:2] == [
        "Fcos.Graph (%0_self, %1_x) {",
        '\t%2:\t%2_fpn = getattr(%0_self, "fpn") -> (Module)',
    ]
    assert f"{graph:p}".splitlines()[5] == "\t%6:\tFcos_backbone_conv1_out = Fcos_backbone_conv1(Fcos_x, )"
    assert f"{graph:ip}".startswith("Fcos.Graph (%0_Fcos_self, %1_Fcos_x) {")
    assert f"{graph}" == str(graph)
    assert f"{graph.outputs[0]:i}" == "%217_cls_out"
    fpn = next(line for line in f"{graph:p}".splitlines() if "%180" in line)
    assert fpn.endswith(
        "fpn([Fcos_backbone_layer2_out, Fcos_backbone_layer3_out, Fcos_backbone_layer4_out], )"
    )
    with pytest.raises(ValueError, match="'x'"):
        f"{graph:x}"


def test_dependencies(graph: InternalGraph) -> None:
    found = graph.get_dep_exprs(graph.outputs[0])
    assert found[0].id == 214
    assert len(found) == len(set(found))
    assert all(node.expr in found for expr in found for node in expr.inputs)
    assert graph.get_expr_by_id(247).as_unique() not in found


def test_the_tree_of_modules(fcos: TracedModule) -> None:
    lines = str(fcos).splitlines()
    assert lines[:3] == ["Fcos(", "  (fpn): Fcos_fpn(", "    (lat): TracedModule("]
    assert "  (ctr): Conv2d(in_channels=16, out_channels=1, kernel_size=(3, 3), padding=(1, 1))" in lines
    assert "    (maxpool): MaxPool2d(kernel_size=3, stride=2, padding=1)" in lines


def test_the_table_of_nodes(graph: InternalGraph, capsys: pytest.CaptureFixture[str]) -> None:
    graph.print_tabular()
    head, line, first, *_, last = capsys.readouterr().out.splitlines()
    assert head.split() == ["id", "op", "name", "target", "args", "kwargs", "type"]
    assert set(line) == {"-", " "}
    assert first.split() == ["1", "placeholder", "x", "x", "()", "{}", "f32[1,3,64,64]"]
    assert last.split()[:2] == ["output", "output"]


def test_a_function_name_equals_the_function() -> None:
    name = FunctionName("fractions.Fraction")
    assert name == Fraction
    assert name == "fractions.Fraction"
    assert name != "Fraction"
    assert name != len
    assert name.__name__ == "Fraction"
    assert {name: 1}["fractions.Fraction"] == 1
