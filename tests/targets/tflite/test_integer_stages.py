"""The stages of an integer conversion: how often parameters are resolved; integer forms of graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

import tmconvert
from tests.passes.graphs import Net
from tests.targets.tflite.test_integer_kernels import grid
from tmconvert.ir import InternalGraph
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.registry import target_named
from tmconvert.targets.tflite.integer import resolve

ROOT = Path(__file__).parents[3]


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The graphs whose QParams are resolved."""
    found: list[object] = []
    right = resolve.resolve

    def resolve_and_count(graph: object, *args: object, **keywords: object) -> object:
        found.append(graph)
        return right(graph, *args, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(resolve, "resolve", resolve_and_count)
    return found


def test_parameters_are_resolved_once(resolved: list[object], tmp_path: Path) -> None:
    model = tmconvert.load(ROOT / "samples/digits_qat.tm")
    tmconvert.to_tflite(model, tmp_path / "m.tflite", quantized=True, verify=False)
    assert len(resolved) == 1


def function(name: str, **attributes: object) -> InternalGraph:
    net = Net()
    x = net.input(2, 8)
    x.qparams = grid(-2.0, 3.0)
    y = net(name, x, **attributes)
    y.qparams = grid(-1.0, 4.0)
    return net.give(y)


def test_tables_are_resolved_once_more(resolved: list[object]) -> None:
    target = target_named("tflite")
    assert target.has_integer_form(function("aten::relu"), catalogue(), 256)
    assert len(resolved) == 1
    assert target.has_integer_form(function("aten::sin"), catalogue(), 256)
    assert len(resolved) == 3


def test_forms_of_a_function() -> None:
    """A table has 256 entries; operators between pairs of ONNX compute in float."""
    assert not target_named("tflite").has_integer_form(function("aten::sin"), catalogue(), 255)
    assert not target_named("tflite").has_integer_form(function("aten::cumsum", dim=1), catalogue(), 256)
    assert target_named("onnx").has_integer_form(function("aten::sin"), catalogue(), 0)
