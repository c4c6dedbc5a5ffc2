"""Integer files of calibrated models are compared with the source itself, not with our reading of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tmconvert
from tmconvert.errors import VerificationError
from tmconvert.frontends.onnx import adapters

WEIGHT = np.random.default_rng(3).normal(size=(5, 7)).astype(np.float32)
SAMPLES = [np.random.default_rng(number).normal(size=(2, 5)).astype(np.float32) for number in range(8)]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A product and a LeakyRelu, as an ONNX file."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("LeakyRelu", ["p"], ["y"], alpha=0.4),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 7])],
        [numpy_helper.from_array(WEIGHT, "w")],
    )
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def wrong_leaky_relu(g: Any, X: Any, *, alpha: float = 0.01) -> Any:
    return g.call("aten::leaky_relu", X, negative_slope=alpha / 2)


@pytest.mark.parametrize(
    ("convert", "name"), [(tmconvert.to_tflite, "net.tflite"), (tmconvert.to_onnx, "q.onnx")]
)
def test_a_wrong_reading_of_an_onnx_file_is_refused(
    model: Path, tmp_path: Path, convert: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("ai_edge_litert")
    options = {"quantized": True, "calibration": SAMPLES}
    assert convert(model, tmp_path / name, **options).verified
    (tmp_path / name).unlink()
    monkeypatch.setitem(adapters.OPERATORS._found, "onnx.LeakyRelu", {1: wrong_leaky_relu})
    with pytest.raises(VerificationError, match="the graph that was calibrated is not its source") as error:
        convert(model, tmp_path / name, **options)
    assert error.value.code == "TM4001"
    assert not (tmp_path / name).exists()


def test_a_wrong_reading_of_a_module_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("ai_edge_litert")
    from tmconvert.symbolics.registry import catalogue

    net = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.LeakyReLU(0.4)).eval()
    options: dict[str, Any] = {"quantized": True, "calibration": SAMPLES}
    options["example_inputs"] = [torch.from_numpy(SAMPLES[0])]
    assert tmconvert.to_tflite(net, tmp_path / "net.tflite", **options).verified
    op = catalogue()["aten::leaky_relu"]
    known = op.kernel
    assert known is not None
    monkeypatch.setattr(op, "kernel", lambda x, negative_slope: known(x, negative_slope / 2))
    with pytest.raises(VerificationError, match="not its source"):
        tmconvert.to_tflite(net, tmp_path / "other.tflite", **options)
