"""Integer files of calibrated and quantized models are compared with the source, not with our reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tmconvert
from tmconvert.errors import VerificationError
from tmconvert.frontends.onnx import adapters as onnx_adapters
from tmconvert.frontends.tflite import adapters as tflite_adapters
from tmconvert.frontends.tflite.layout import like, value_of
from tmconvert.targets.onnx.verify.sessions import saturates_here

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
    "options",
    [
        {"quantized": True, "calibration": SAMPLES},
        {"softmax": True},
        {"argmax": True},
        {"outputs": ["y"]},
        {"inputs": ["p"]},
        {"softmax": True, "quantized": True, "calibration": SAMPLES},
    ],
    ids=lambda options: " ".join(options),
)
@pytest.mark.parametrize(
    ("convert", "name"), [(tmconvert.to_tflite, "net.tflite"), (tmconvert.to_onnx, "q.onnx")]
)
def test_a_wrong_reading_of_an_onnx_file_is_refused(
    model: Path,
    tmp_path: Path,
    convert: Any,
    name: str,
    options: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("ai_edge_litert")
    assert convert(model, tmp_path / name, **options).verified
    (tmp_path / name).unlink()
    monkeypatch.setitem(onnx_adapters.OPERATORS._found, "onnx.LeakyRelu", {1: wrong_leaky_relu})
    with pytest.raises(VerificationError, match="the graph that was read is not its source") as error:
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


# ---- of models that are quantized themselves


@pytest.fixture
def quantized(tmp_path: Path) -> dict[str, Path]:
    """Two products and their sum, as Q/DQ ONNX and as int8 TFLite files."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("ai_edge_litert")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("MatMul", ["x", "v"], ["q"]),
        helper.make_node("Add", ["p", "q"], ["y"]),
    ]
    sides = (helper.make_tensor_value_info(name, 1, [2, size]) for name, size in (("x", 5), ("y", 7)))
    weights = [
        numpy_helper.from_array(array, name) for name, array in (("w", WEIGHT), ("v", 0.3 * WEIGHT[::-1]))
    ]
    graph = helper.make_graph(nodes, "sum", [next(sides)], [next(sides)], weights)
    path = tmp_path / "sum.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    made = {"onnx": tmp_path / "source.onnx", "tflite": tmp_path / "source.tflite"}
    for kind, each in made.items():
        assert DOORS[kind](path, each, quantized=True, calibration=SAMPLES).verified
    return made


DOORS = {"onnx": tmconvert.to_onnx, "tflite": tmconvert.to_tflite}
WRONG = {"onnx": onnx_adapters.OPERATORS, "tflite": tflite_adapters.OPERATORS}


def wrong_add(g: Any, x: Any, y: Any, **options: Any) -> Any:
    """The sum, with another scale for its second operand."""
    made = g.call("aten::add", value_of(x), g.call("aten::mul", value_of(y), g.constant(np.float32(0.8))))
    return like(x, made) if options else made


@pytest.mark.parametrize(
    ("source", "kind", "options"),
    [
        ("tflite", "tflite", {"quantized": True}),
        ("onnx", "tflite", {"quantized": True}),
        ("onnx", "onnx", {"quantized": True}),
        ("tflite", "onnx", {"qparams": "p.json"}),
        ("onnx", "onnx", {"qparams": "p.json", "fake_quant_weights": True}),
        ("onnx", "onnx", {"weights": "int8"}),
        ("onnx", "onnx", {}),
    ],
)
def test_a_wrong_reading_of_integers_is_refused(
    quantized: dict[str, Path],
    tmp_path: Path,
    source: str,
    kind: str,
    options: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    out = tmp_path / f"out.{kind}"
    report = DOORS[kind](quantized[source], out, **options)
    assert report.verified
    if options.keys() & {"quantized", "qparams"}:
        assert "itself compared with" in str(report)
    out.unlink()
    name = {"onnx": "onnx.Add", "tflite": "tflite.ADD"}[source]
    wrong = {1: wrong_add} if source == "onnx" else wrong_add
    monkeypatch.setitem(WRONG[source]._found, name, wrong)
    if source == "onnx" and options.keys() & {"quantized", "qparams"} and saturates_here():
        report = DOORS[kind](quantized[source], out, **options)  # ONNX Runtime proves nothing here
        assert not report.verified and "its integers saturate on this processor" in str(report)
        return
    with pytest.raises(VerificationError) as error:
        DOORS[kind](quantized[source], out, **options)
    assert error.value.code == "TM4001" and not out.exists()
