"""Large models are checked without their weights: the same nodes and types, nothing less."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

import tmconvert
from tmconvert.errors import InternalError
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.onnx import writer as onnx_writer

DATA = Path(__file__).parents[2] / "data"
FLOAT = np.dtype(np.float32)


def _graph(columns: int) -> TargetGraph:
    x, y = Value("x", FLOAT, (2, 3)), Value("y", FLOAT, (2, columns))
    weight = Value("w", FLOAT, (3, 500), np.zeros((3, 500), np.float32))
    operator = Operator("MatMul", [x, weight], [y], {}, "n")
    return TargetGraph("onnx", 17, "g", [x], [y], [operator], ["x"], ["y"])


@pytest.mark.slow
@pytest.mark.parametrize("opset", [7, 8, 9, 13, 17, 21])
def test_sound_models_pass(opset: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(onnx_writer, "_CHECKED_WHOLE", 0)
    for name in ("shufflenet_v2", "op_nested_reuse"):
        tmconvert.to_onnx(DATA / f"{name}.tm", tmp_path / "out.onnx", opset=opset)


def test_the_graph_is_checked_in_place_of_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "out.onnx"
    path.write_bytes(b"no model")
    monkeypatch.setattr(onnx_writer, "_CHECKED_WHOLE", 0)
    onnx_writer.check_onnx(path, _graph(500))
    with pytest.raises(InternalError) as caught:  # [2,3] x [3,500] is not [2,5]
        onnx_writer.check_onnx(path, _graph(5))
    assert caught.value.code == "TM9002"


def test_the_checker_gets_no_copies_of_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would read them into memory twice, which is the peak of a conversion."""
    given: list[ModelProto | str] = []
    monkeypatch.setattr(onnx_writer.onnx.checker, "check_model", lambda model, **_: given.append(model))
    graph = _graph(500)
    operator = graph.operators[0]
    weight = Value("w", FLOAT, (3, 500_000), np.zeros((3, 500_000), np.float32))
    operator.inputs[1], operator.outputs[0] = weight, Value("y", FLOAT, (2, 500_000))
    onnx_writer.check_onnx(tmp_path / "out.onnx", graph)
    assert isinstance(given[0], ModelProto) and given[0].ByteSize() < 1000
