"""Float files of quantized sources saturate as these do, and are compared with what they compute."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tmconvert
from tmconvert.errors import VerificationError
from tmconvert.passes import keep_saturation

ort = pytest.importorskip("onnxruntime")
SHAPE = (1, 3, 9, 7)
SAMPLES = [np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32) for seed in range(4)]
LEAST = 25.0  # decibels


def ratio(made: np.ndarray, wanted: np.ndarray) -> float:
    noise = np.sum(np.square(made.astype(np.float64) - wanted))
    return float(10 * np.log10(np.sum(np.square(wanted.astype(np.float64))) / noise))


def run(path: Path, x: np.ndarray) -> np.ndarray:
    (made,) = tmconvert.run(path, [x]).values() if path.suffix != ".onnx" else _session(path, x)
    return np.asarray(made)


def _session(path: Path, x: np.ndarray) -> Any:
    session = ort.InferenceSession(str(path))
    return session.run(None, {session.get_inputs()[0].name: x})


def network() -> onnx.ModelProto:
    """Convolutions with a ReLU and a clamp in between, which ONNX Runtime's quantizer takes away."""
    random, weights = np.random.default_rng(0), []

    def constant(name: str, array: Any) -> str:
        weights.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def conv(x: str, y: str, count: int, channels: int) -> onnx.NodeProto:
        weight = random.standard_normal((count, channels, 3, 3)) / np.sqrt(9 * channels)
        names = [constant(f"{y}_w", weight), constant(f"{y}_b", random.standard_normal(count))]
        return helper.make_node("Conv", [x, *names], [y], pads=[1] * 4)

    nodes = [
        conv("x", "c0", 8, 3),
        helper.make_node("Relu", ["c0"], ["r0"]),
        conv("r0", "c1", 8, 8),
        helper.make_node("Clip", ["c1", constant("low", 0), constant("high", 0.7)], ["r1"]),
        conv("r1", "y", 4, 8),
    ]
    sides = (
        [helper.make_tensor_value_info("x", 1, SHAPE)],
        [helper.make_tensor_value_info("y", 1, (1, 4, 9, 7))],
    )
    graph = helper.make_graph(nodes, "net", *sides, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def quantized(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    quantization = pytest.importorskip("onnxruntime.quantization")
    folder = tmp_path_factory.mktemp("saturation")
    onnx.save(network(), folder / "net.onnx")
    found = {}
    logging.disable(logging.WARNING)  # advice on speed
    for form in ("QDQ", "QOperator"):
        samples = iter([{"x": sample} for sample in SAMPLES])
        reader = type("Reader", (), {"get_next": lambda self, samples=samples: next(samples, None)})
        found[form] = folder / f"{form}.onnx"
        quantization.quantize_static(
            str(folder / "net.onnx"),
            str(found[form]),
            reader(),
            quant_format=quantization.QuantFormat[form],
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )
        kinds = {node.op_type for node in onnx.load(found[form]).graph.node}
        assert not kinds & {"Relu", "Clip"}
    logging.disable(logging.NOTSET)
    return found


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
def test_float_files_of_an_integer_file(
    quantized: dict[str, Path], tmp_path: Path, form: str, target: str
) -> None:
    source, made = quantized[form], tmp_path / f"net.{target}"
    convert = getattr(tmconvert, f"to_{target}")
    files = [made, tmp_path / "net.caffemodel"] if target == "caffe" else [made]
    report = convert(source, *files, **({"io_layout": "source"} if target == "tflite" else {}))
    assert report.verified and 1e-4 < report.max_error < 0.1
    assert any("computes in integers" in note for note in report.notes)
    if target == "onnx":
        assert ratio(run(made, SAMPLES[0]), run(source, SAMPLES[0])) > LEAST
        assert tmconvert.verify(source, made).max_error > 1e-4
        layers = tmconvert.compare(source, made).layers
        assert layers and not any(layer.is_wrong for layer in layers)


def test_a_file_without_the_saturation_is_refused(
    quantized: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_saturation, "keep_saturation", lambda graph, catalogue: 0)
    with pytest.raises(VerificationError, match="differ") as error:
        tmconvert.to_onnx(quantized["QDQ"], tmp_path / "net.onnx")
    assert error.value.code == "TM4001"


def test_the_ratio_of_a_quantized_file_is_that_to_the_clamped_model(
    quantized: dict[str, Path], tmp_path: Path
) -> None:
    for convert, name in ((tmconvert.to_onnx, "q.onnx"), (tmconvert.to_tflite, "q.tflite")):
        report = convert(quantized["QDQ"], tmp_path / name, quantized=True)
        assert report.verification.decibels > LEAST


def test_float_files_of_an_integer_tflite_file(quantized: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    source, made = tmp_path / "q.tflite", tmp_path / "f.onnx"
    tmconvert.to_tflite(quantized["QDQ"], source, quantized=True, io_layout="source")
    report = tmconvert.to_onnx(source, made)
    assert report.verified and 1e-4 < report.max_error < 0.1
    (wanted,) = _session(quantized["QDQ"], SAMPLES[0])
    assert ratio(run(made, SAMPLES[0]), wanted) > LEAST


def test_float_files_of_fake_quantized_modules(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.first, self.second = torch.nn.Conv2d(3, 8, 3), torch.nn.Conv2d(8, 4, 3)

        def forward(self, x: Any) -> Any:
            x = torch.fake_quantize_per_tensor_affine(self.first(x), 0.7 / 255, 0, 0, 255)
            return torch.fake_quantize_per_tensor_affine(self.second(x), 0.01, 128, 0, 255)

    net, x = Net().eval(), torch.from_numpy(SAMPLES[0])
    tmconvert.to_onnx(net, tmp_path / "net.onnx", example_inputs=[x])
    assert ratio(run(tmp_path / "net.onnx", SAMPLES[0]), net(x).detach().numpy()) > LEAST


def test_sides_that_a_producer_cannot_reach_have_no_clamp(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            x = torch.fake_quantize_per_tensor_affine(x.sigmoid(), 1 / 255, 0, 0, 255)
            return torch.fake_quantize_per_tensor_affine(x[:, :2].relu(), 4 / 255, 0, 0, 255)

    tmconvert.to_onnx(Net(), tmp_path / "net.onnx", example_inputs=[torch.from_numpy(SAMPLES[0])])
    kinds = [node.op_type for node in onnx.load(tmp_path / "net.onnx").graph.node]
    assert not {"Clip", "Min", "Max"} & set(kinds)
