"""``tmconvert.compare``: equal models agree, and a planted wrong layer is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import tmconvert
from tests.cli.runner import run
from tests.inspection.conftest import Files
from tests.inspection.network import Net
from tests.inspection.planted import change_caffe, change_onnx, change_tflite
from tmconvert.errors import UsageError
from tmconvert.inspection.compared_models import FileSide
from tmconvert.inspection.comparison import ModelComparison
from tmconvert.inspection.differences import aligned, difference
from tmconvert.symbolics.registry import catalogue

KINDS = {
    "onnx": "float32",
    "tflite": "float32",
    "prototxt": "float32",
    "half": "float16",
    "int8": "integers",
    "qdq": "integers",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_written_file_agrees_with_its_source(kind: str, files: Files) -> None:
    found = tmconvert.compare(files.model, files.paths[kind])
    assert found.ok and found.kind == KINDS[kind], str(found)
    assert len(found.layers) >= 5 and all(layer.local is not None for layer in found.layers)
    assert "no layer goes wrong" in str(found)


@pytest.mark.parametrize(("first", "second"), [("onnx", "tflite"), ("tflite", "onnx"), ("prototxt", "half")])
def test_two_files_agree(first: str, second: str, files: Files) -> None:
    found = tmconvert.compare(files.paths[first], files.paths[second])
    assert found.ok and len(found.layers) >= 3, str(found)
    assert found.suspect in (str(files.paths[first]), str(files.paths[second]))


def constant_of(path: Path, operator: str) -> tuple[str, str]:
    """The weights of the only layer of this type, and the layer."""
    model = FileSide(path, catalogue()).runner.model
    layer = next(each for each in model.layers if each.type == operator)
    if model.target == "caffe":
        return f"{layer.name}/0", f"{layer.type} {layer.name}"
    if layer.inputs[1] in model.constants:
        return layer.inputs[1], f"{layer.type} {layer.name}"
    dequantize = next(each for each in model.layers if each.outputs == [layer.inputs[1]])
    return dequantize.inputs[0], f"{layer.type} {layer.name}"


def without_a_channel(array: np.ndarray, axis: int) -> np.ndarray:
    """Sets the first channel with the largest weights to 0."""
    made = array.copy()
    made[np.abs(array.reshape(len(array), -1).astype(np.float64)).sum(1).argmax()] = 0
    return made


CHANGES: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "rolled": lambda array, axis: np.roll(array, 1, axis=axis),
    "rolled flat": lambda array, axis: np.roll(array.reshape(-1), 3).reshape(array.shape),
    "negated": lambda array, axis: -array,
    "scaled": lambda array, axis: (array * 0.6).astype(array.dtype),
    "a channel of zeros": without_a_channel,
    "flipped": lambda array, axis: array.reshape(-1)[::-1].reshape(array.shape),
}


@pytest.mark.parametrize(
    ("kind", "operator"),
    [
        ("onnx", "Gemm"),
        ("tflite", "DEPTHWISE_CONV_2D"),
        ("prototxt", "InnerProduct"),
        ("half", "Gemm"),
        ("int8", "DEPTHWISE_CONV_2D"),
        ("qdq", "Gemm"),
    ],
)
@pytest.mark.parametrize("how", CHANGES)
def test_a_wrong_layer_is_found(kind: str, operator: str, how: str, files: Files, tmp_path: Path) -> None:
    path = files.paths[kind]
    out = tmp_path / path.name
    weights, result = constant_of(path, operator)
    change = {".onnx": change_onnx, ".tflite": change_tflite}.get(path.suffix, change_caffe)
    axis = 0 if kind == "prototxt" else -1
    change(path, out, weights, lambda array: CHANGES[how](array, axis))
    found = tmconvert.compare(files.model, out)
    assert found.first is not None and not found.ok
    assert result in found.first.operators, str(found)
    assert [layer.name for layer in found.layers if layer.is_wrong] == [found.first.name]


def test_the_command(files: Files, tmp_path: Path) -> None:
    source = files.paths["onnx"].with_name("net.tm")
    outcome = run("compare", source, files.paths["tflite"])
    assert (outcome.status, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith("output linear_out: agree, ") or "agree" in outcome.stdout
    weights, _ = constant_of(files.paths["onnx"], "Gemm")
    change_onnx(files.paths["onnx"], tmp_path / "bad.onnx", weights, lambda array: -array)
    outcome = run("compare", source, tmp_path / "bad.onnx", "--json")
    assert outcome.status == 1
    assert outcome.json["first_wrong_layer"] == outcome.json["layers"][-1]["name"]
    outcome = run("compare", source, tmp_path / "bad.onnx", "--all-layers")
    assert outcome.status == 1 and "first layer that goes wrong" in outcome.stdout
    assert "  computed by   Gemm " in outcome.stdout and "  wrong\n" in outcome.stdout


def test_models_that_do_not_fit(files: Files, tmp_path: Path) -> None:
    other = Path(__file__).parent.parent / "data" / "op_s_conv_bn_relu.tm"
    with pytest.raises(UsageError, match="TM6003"):
        tmconvert.compare(files.paths["onnx"], other)
    with pytest.raises(UsageError, match="TM6003"):
        tmconvert.compare(files.model, files.paths["onnx"], {"picture": np.zeros(1)})


def test_inputs_may_be_given(files: Files) -> None:
    image = np.random.default_rng(1).random((1, 3, 12, 16), np.float32)
    found = tmconvert.compare(files.model, files.paths["int8"], {"image": image})
    assert isinstance(found, ModelComparison) and found.ok
    assert tmconvert.compare(files.paths["int8"], files.paths["qdq"], [image]).ok


def test_a_module_of_pytorch_is_traced_with_the_inputs(tmp_path: Path) -> None:
    torch.manual_seed(2)
    net, x = Net().eval(), torch.rand(1, 3, 12, 16)
    tmconvert.to_onnx(net, tmp_path / "net.onnx", example_inputs=x, verify=False)
    for given in ({"inputs": x}, {"inputs": {"image": x}}, {"example_inputs": [x]}):
        found = tmconvert.compare(net, tmp_path / "net.onnx", **given)
        assert found.ok and [each.name for each in found.layers][-1] == "linear_out"
    with torch.no_grad():
        net.head.weight[0] += 1
    assert tmconvert.compare(net, tmp_path / "net.onnx", x).first.name == "linear_out"
    with pytest.raises(UsageError, match="TM6008"):
        tmconvert.compare(net, tmp_path / "net.onnx")


def test_a_factory_and_an_image_on_the_command_line(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small_net.py").write_text("import torch\n\n\ndef make():\n    return torch.nn.ReLU()\n")
    shape = "float32[1,3,12,16]"
    assert run("onnx", "small_net:make", "r.onnx", "--input", shape).status == 0
    for option in ("--input", "-i"):
        assert run("compare", "small_net:make", "r.onnx", option, shape).status == 0
    Image.fromarray(np.full((12, 16, 3), 90, np.uint8)).save("x.png")
    outcome = run("compare", files.paths["onnx"], files.paths["tflite"], "-i", "x.png", "--std", "1")
    assert outcome.status == 0 and "agree" in outcome.stdout


def test_layouts_are_aligned() -> None:
    expected = np.arange(24.0).reshape(1, 2, 3, 4)
    moved, order = aligned(expected, expected.transpose(0, 2, 3, 1))
    assert np.array_equal(moved, expected) and order == (0, 3, 1, 2)
    cube = np.arange(8.0).reshape(1, 2, 2, 2)
    assert np.array_equal(aligned(cube, cube.transpose(0, 2, 3, 1))[0], cube)
    assert aligned(np.zeros((1, 5)), np.zeros((1, 5, 1, 1)))[0].shape == (1, 5)


def test_differences() -> None:
    assert difference(np.zeros(3), np.zeros(3)) == (0, 0)
    assert difference(np.zeros(3), np.zeros(4)).largest == float("inf")
    assert difference(np.array([1, np.nan]), np.array([1.0, 2.0])).largest == float("inf")
    assert difference(np.array([2, np.nan]), np.array([1, np.nan])).largest == 0.5
    assert np.isclose(difference(np.array([3.0, 4.0]), np.array([3.0, 3.0])).noise, 0.2)


def test_equalized_channels_are_compared_up_to_a_factor(files: Files, tmp_path: Path) -> None:
    data = np.random.default_rng(4).random((6, 3, 12, 16), np.float32)
    path = tmp_path / "equalized.tflite"
    tmconvert.to_tflite(files.model, path, quantized=True, calibration=data, verify=False)
    found = tmconvert.compare(files.model, path)
    assert found.ok and "equalization" in found.notes[0], str(found)
    of_files = tmconvert.compare(files.paths["tflite"], path)  # both with channels last
    assert of_files.ok and len(of_files.layers) >= 3 and "equalization" in of_files.notes[0], str(of_files)
    weights, layer = constant_of(path, "DEPTHWISE_CONV_2D")
    change_tflite(path, tmp_path / "bad.tflite", weights, lambda array: np.roll(array, 1, axis=1))
    wrong = tmconvert.compare(files.model, tmp_path / "bad.tflite").first
    assert wrong is not None and layer in wrong.operators
