"""Graphs print as MegEngine prints them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tmconvert
from tmconvert.ir import CallFunction, CallMethod, Constant, GetAttr, InternalGraph, ModuleNode, TensorNode

DATA = Path(__file__).parent.parent / "data"
MODELS = sorted(path.stem for path in DATA.glob("*.tm") if not path.stem.startswith("hostile_"))


def test_the_corpus_is_there() -> None:
    assert len(MODELS) == 73


@pytest.mark.parametrize("name", MODELS)
def test_graphs_print_as_in_megengine(name: str) -> None:
    printed = json.loads((DATA / f"{name}.json").read_text())["graph"]
    assert str(tmconvert.load(DATA / f"{name}.tm").graph) == printed


def test_each_kind_of_expression() -> None:
    graph = InternalGraph("Net")
    module = graph.add_input(ModuleNode("self"))
    x = graph.add_input(TensorNode("x"))
    conv = ModuleNode("conv", "megengine.module.conv.Conv2d")
    graph.insert(GetAttr(module, "a.conv", result=conv, id=2))
    graph.insert(Constant(1, "w", result=TensorNode("c"), id=3))
    graph.insert(CallMethod("__call__", (conv, x), result=TensorNode("y"), id=4))
    graph.insert(CallMethod("sum", (x,), {"axis": 1}, result=TensorNode("", id=9), id=5))
    graph.insert(
        CallFunction(
            "f.split",
            (x, 2),
            {"axis": None},
            label="f.split",
            result=[TensorNode("p"), TensorNode("q")],
            id=6,
        )
    )
    graph.insert(CallFunction("opdef.Shape", (x,), {"k": 1}, label="Shape", result=TensorNode("s"), id=7))
    graph.insert(CallMethod("set_", (x,), id=8))
    graph.set_result((x, conv))
    assert str(graph) == (
        "Net.Graph (self, x) {\n"
        '\t%2:\tconv = getattr(self, "a.conv") -> (Conv2d)\n'
        "\t%3:\tc = Constant(w) -> (Tensor)\n"
        "\t%4:\ty = conv(x, )\n"
        "\t%5:\t9 = x.sum(, axis=1)\n"
        "\t%6:\t[p, q] = f.split(x, 2, axis=None)\n"
        "\t%7:\ts = Shape(x)\n"
        "\t%8:\tx.set_(, )\n"
        "\treturn x, conv\n}"
    )


def test_an_empty_graph() -> None:
    assert str(InternalGraph()) == " () {\n\t\n\treturn \n}"
