"""Conversions use the core of the graph; models that users get have the classes of ``tmconvert.surgery``."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.surgery.models import DATA
from tmconvert import ir, surgery
from tmconvert.ir.extensible import extension_of

CLASSES = [getattr(ir, name) for name in surgery.__all__ if name not in ("Expr", "Node")]
MODULES = {"tmconvert.surgery.nodes", "tmconvert.surgery.exprs"}
CONVERTS = """
import sys, tmconvert
report = tmconvert.to_onnx({model!r}, {output!r})
assert report.verified
print([name for name in sys.modules if name.startswith(("tmconvert.surgery", "tmconvert.transform"))])
"""


@pytest.mark.parametrize("core", CLASSES)
def test_each_class_has_an_extension_of_its_name(core: type) -> None:
    extension = getattr(surgery, core.__name__)
    assert extension_of(core) is extension
    assert issubclass(extension, core)


def test_core_constructors_make_extended_objects() -> None:
    node = ir.TensorNode("x", (1,), np.dtype(np.float32))
    assert type(node) is surgery.TensorNode
    assert not hasattr(node, "__dict__")  # extensions add no fields to nodes
    assert type(ir.CallFunction("aten::relu", (node,))) is surgery.CallFunction
    assert type(ir.InternalGraph("g")) is surgery.InternalGraph


def test_a_conversion_does_not_load_the_classes_of_users(tmp_path: Path) -> None:
    model, output = str(DATA / "mlp_mixer.tm"), tmp_path / "plain.onnx"
    code = CONVERTS.format(model=model, output=str(output))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    tmconvert.to_onnx(model, tmp_path / "extended.onnx", verify=False)  # tests load the classes
    assert (tmp_path / "extended.onnx").read_bytes() == output.read_bytes()


@pytest.mark.parametrize("kind", ["loaded", "flat", "copied", "normalized", "parsed"])
def test_models_of_users_are_extended_throughout(kind: str) -> None:
    loaded = tmconvert.load(DATA / "mlp_mixer.tm")
    model = {
        "loaded": lambda: loaded,
        "flat": loaded.flatten,
        "copied": lambda: copy.deepcopy(loaded),
        "normalized": lambda: tmconvert.normalize(loaded),
        "parsed": lambda: _parsed(loaded),
    }[kind]()
    assert isinstance(model, tmconvert.TracedModule)
    for _, module in model.modules():
        assert type(module) is surgery.TracedModule
        for graph in module.graphs.values():
            assert type(graph) is surgery.InternalGraph
            made = [*graph.inputs, *graph, *(node for expr in graph for node in expr.outputs)]
            assert {type(each).__module__ for each in made} <= {
                "tmconvert.surgery.nodes",
                "tmconvert.surgery.exprs",
            }


def _parsed(model: tmconvert.TracedModule) -> object:
    normalized = tmconvert.normalize(model)
    assert normalized.graph is not None
    return tmconvert.parse_graph(normalized.graph.to_text(), normalized)


def test_a_pass_of_a_user_gets_an_extended_graph(tmp_path: Path) -> None:
    code = f"""
import tmconvert
def check(graph):
    print(graph.exprs().as_count() > 0)
tmconvert.to_onnx({str(DATA / "mlp_mixer.tm")!r}, {str(tmp_path / "a.onnx")!r}, passes=[check], verify=False)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
