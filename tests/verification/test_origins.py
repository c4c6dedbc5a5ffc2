"""Names of a source that are spelled as the names of other forms of its tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.models import corpus
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.targets.registry import target_named
from tmconvert.targets.target import Target
from tmconvert.targets.tflite.reader import tflite_tensors

torch = pytest.importorskip("torch")
TARGETS: dict[str, tuple[str, dict[str, Any]]] = {
    "TFLite": ("tflite", {}),
    "TFLite with float edges": ("tflite", {"io_type": "float32"}),
    "TFLite with uint8 edges": ("tflite", {"io_type": "uint8"}),
    "TFLite in int16": ("tflite", {"activations": "int16"}),
    "ONNX": ("onnx", {"weight_type": "uint8"}),
    "ONNX in int8": ("onnx", {"activations": "int8", "weight_type": "uint8"}),
}
ENDINGS = ["quantized", "requantized", "dequantized", "computed", "unrounded", "int8"]


def two_inputs(name: str) -> Any:
    """Two convolutions, each of an input, and their sum: ``forward(self, x, NAME)``."""
    torch.manual_seed(0)
    scope: dict[str, Any] = {}
    exec(f"def forward(self, x, {name}):\n    return self.a(x) + 4 * self.b({name}).relu()", scope)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = torch.nn.Conv2d(3, 4, 3), torch.nn.Conv2d(3, 4, 3)

        forward = scope["forward"]

    return Net().eval()


def samples(name: str, count: int = 4) -> list[dict[str, np.ndarray]]:
    random = np.random.default_rng(0)

    def array(scale: int) -> np.ndarray:
        return (random.standard_normal((1, 3, 8, 8)) * scale).astype(np.float32)

    return [{"x": array(1), name: array(20)} for _ in range(count)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "name", [*(f"x_{ending}" for ending in ENDINGS), "conv2d_out_quantized", "conv2d_out_computed"]
)
def test_a_second_input_named_as_a_form_of_the_first(name: str, target: str, tmp_path: Path) -> None:
    kind, options = TARGETS[target]
    data = samples(name)
    examples = tuple(torch.from_numpy(each) for each in data[0].values())
    report = getattr(tmconvert, f"to_{kind}")(
        two_inputs(name), tmp_path / "m", example_inputs=examples, calibration=data, quantized=True, **options
    )
    assert report.verified and [each["name"] for each in report.inputs] == ["x", name]


@pytest.mark.parametrize("target", TARGETS)
def test_inputs_and_outputs_renamed_to_such_names(target: str, tmp_path: Path) -> None:
    kind, options = TARGETS[target]
    data = samples("y")
    net, examples = two_inputs("y"), tuple(map(torch.from_numpy, data[0].values()))
    tmconvert.calibrate(net, data, output=tmp_path / "calibrated.tm", example_inputs=examples)
    (output,) = tmconvert.to_onnx(tmp_path / "calibrated.tm", tmp_path / "float.onnx").outputs
    rename = {"x": "relu_out", "y": "relu_out_quantized", output["name"]: "relu_out_requantized"}
    convert = getattr(tmconvert, f"to_{kind}")
    report = convert(tmp_path / "calibrated.tm", tmp_path / "m", quantized=True, rename=rename, **options)
    assert report.verified and report.outputs[0]["name"] == "relu_out_requantized"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_quantization_aware_source(ending: str, target: str, tmp_path: Path) -> None:
    kind, options = TARGETS[target]
    source = corpus.model("qat_concat_elemwise")
    first, *_ = tmconvert.to_onnx(source, tmp_path / "float.onnx", verify=False).inputs
    (output, *_) = tmconvert.to_onnx(source, tmp_path / "float.onnx", verify=False).outputs
    rename = {output["name"]: f"{first['name']}_{ending}"}
    convert = getattr(tmconvert, f"to_{kind}")
    assert convert(source, tmp_path / "m", quantized=True, rename=rename, **options).verified


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["qat_concat_elemwise", "qat_small_lowbit", "qat_partial_float"])
def test_each_tensor_has_an_origin_and_a_name_of_its_own(
    name: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, options = TARGETS[target]
    written: list[TargetGraph] = []
    described = type(target_named(kind))
    write = described.write

    def noted(self: Target, graph: TargetGraph, *rest: Any, **more: Any) -> None:
        written.append(graph)
        write(self, graph, *rest, **more)

    monkeypatch.setattr(described, "write", noted)
    convert = getattr(tmconvert, f"to_{kind}")
    more = {"allow_float": True} if kind == "tflite" else {}
    convert(corpus.model(name), tmp_path / "m", quantized=True, verify=False, **options, **more)
    (graph,) = written
    assert [value.name for value in graph.values() if value not in graph.origins] == []
    assert len({value.name for value in graph.values()}) == len(graph.values())
    if kind == "tflite":
        assert [each for each, values in tflite_tensors(tmp_path / "m").items() if len(values) > 1] == []
