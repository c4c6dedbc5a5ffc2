"""The outputs that a model was traced with are no reference for the model after an edit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.surgery.models import graph_of, traced_block
from tmconvert.ir import TracedModule


def with_a_call(module: TracedModule) -> None:
    graph = graph_of(module)
    old = graph.outputs[0]
    with graph.insert_exprs():
        new = old * 3
    graph.replace_node({old: new})


def with_a_weight(module: TracedModule) -> None:
    module.conv.bias += 1.0


def with_a_call_of_its_own(module: TracedModule) -> None:
    with_a_call(module.get("conv"))


@pytest.mark.parametrize("edit", [with_a_call, with_a_weight, with_a_call_of_its_own])
def test_the_file_is_compared_with_the_edited_graph(edit: object, tmp_path: Path) -> None:
    assert callable(edit)
    module = traced_block(4, 8)
    assert module.example is not None and module.example.outputs is not None
    x, stale = module.example.inputs[0], module.example.outputs[0]
    edit(module)
    expected = module(x)
    assert np.abs(expected - stale).max() > 0.01
    assert module.example is not None and module.example.outputs is None
    report = tmconvert.to_onnx(module, tmp_path / "m.onnx")
    assert any("edited after it was traced" in note for note in report.notes)
    assert tmconvert.verify(module, tmp_path / "m.onnx")
    module.save(tmp_path / "m.tm")
    again = tmconvert.load(tmp_path / "m.tm")
    assert again.example is not None and again.example.outputs is not None
    np.testing.assert_allclose(again.example.outputs[0], expected, atol=1e-6)
    assert not any("edited" in note for note in tmconvert.to_onnx(again, tmp_path / "n.onnx").notes)
