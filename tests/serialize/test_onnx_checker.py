"""Large models are checked without their weights: the same nodes and types, nothing less."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tmconvert.errors import InternalError
from tmconvert.lower.target_graph import Operator, TargetGraph, Value
from tmconvert.serialize import onnx_writer

DATA = Path(__file__).parents[1] / "data"
FLOAT = np.dtype(np.float32)


def _graph(operator_type: str) -> TargetGraph:
    x, y = Value("x", FLOAT, (2, 3)), Value("y", FLOAT, (2, 5))
    weight = Value("w", FLOAT, (3, 500), np.zeros((3, 500), np.float32))
    operator = Operator(operator_type, [x, weight], [y], {}, "n")
    return TargetGraph("onnx", 17, "g", [x], [y], [operator], ["x"], ["y"])


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_writer, "_CHECKED_WHOLE", 0)
    monkeypatch.setattr(onnx_writer.os, "fspath", lambda path: pytest.fail("the file was read"))


@pytest.mark.parametrize("opset", [7, 8, 9, 13, 17, 21])
def test_sound_models_pass(opset: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(onnx_writer, "_CHECKED_WHOLE", 0)
    for name in ("shufflenet_v2", "op_nested_reuse"):
        tmconvert.to_onnx(DATA / f"{name}.tm", tmp_path / "out.onnx", opset=opset)


@pytest.mark.usefixtures("everything_is_large")
def test_a_wrong_shape_is_found_without_reading_the_file(tmp_path: Path) -> None:
    path = tmp_path / "out.onnx"
    graph = _graph("MatMul")  # [2,3] x [3,500] is not the [2,5] that it claims
    with path.open("wb") as file:
        onnx_writer.write_onnx(graph, file)
    with pytest.raises(InternalError) as caught:
        onnx_writer.check_onnx(path, graph)
    assert caught.value.code == "TM9002"
