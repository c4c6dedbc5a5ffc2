"""``tmconvert.inspect`` and ``tmconvert inspect`` on written files, compared with numbers made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import tmconvert
from tests.cli.runner import run
from tests.inspection.conftest import Files
from tmconvert.inspection.liveness import Step, activation_sizes

WEIGHTS = 8 * 27 + 8 + 8 * 15 + 8 + 8 * 5 + 5
MACS = 8 * 6 * 8 * 27 + 8 * 6 * 8 * 15 + 8 * 5
KINDS = ("onnx", "tflite", "prototxt", "half", "int8", "qdq")


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_written_files(kind: str, files: Files) -> None:
    found = tmconvert.inspect(files.paths[kind])
    assert found.macs == MACS
    assert found.parameters == WEIGHTS or kind == "qdq"  # whose biases are int32 constants with scales
    (image,), (result,) = found.inputs, found.outputs
    is_last = kind in ("tflite", "int8")
    assert image.shape == ((1, 12, 16, 3) if is_last else (1, 3, 12, 16))
    assert image.layout == ("NHWC" if is_last else "NCHW")
    assert image.dtype == {"half": "float16", "int8": "int8"}.get(kind, "float32")
    assert result.shape == (1, 5) and result.layout == ""
    assert bool(image.scale) == (kind == "int8")


@pytest.mark.parametrize("kind", ["onnx", "tflite", "prototxt"])
def test_what_a_reader_builds_is_numbered_and_typed(kind: str, files: Files) -> None:
    module = tmconvert.load(files.paths[kind])
    assert module.graph is not None
    numbers = [expr.id for expr in module.graph]
    assert len(set(numbers)) == len(numbers)
    (result,) = tmconvert.inspect(module).outputs
    assert (result.dtype, result.shape) == ("float32", (1, 5))


def test_numbers_of_the_source(files: Files) -> None:
    found = tmconvert.inspect(files.model)
    assert (found.parameters, found.macs) == (WEIGHTS, MACS)
    assert found.inputs[0].layout == "NCHW" and found.outputs[0].layout == ""
    image, plane = 3 * 12 * 16 * 4, 8 * 6 * 8 * 4
    assert found.sizes.largest_activation == image
    assert found.sizes.peak_arena == max(image + plane, 3 * plane)


def test_sizes_of_a_file(files: Files) -> None:
    sizes = tmconvert.inspect(files.paths["onnx"]).sizes
    assert sizes.files == files.paths["onnx"].stat().st_size
    prototxt = files.paths["prototxt"]
    assert tmconvert.inspect(prototxt).sizes.files == sum(
        path.stat().st_size for path in (prototxt, prototxt.with_suffix(".caffemodel"))
    )


def test_what_to_feed_is_what_the_file_states(files: Files) -> None:
    for kind in KINDS:
        (fed,), (image,) = files.reports[kind].fed_inputs, tmconvert.inspect(files.paths[kind]).inputs
        plain = [each._replace(axis=None, example=()) for each in (fed.tensor, image)]
        assert plain[0] == plain[1], kind
    fed = files.reports["int8"].fed_inputs[0]
    assert fed.source_layout == "NCHW" and fed.low is not None and fed.high is not None
    scale, point = fed.tensor.scale[0], fed.tensor.zero_point[0]
    assert np.isclose(fed.low, (-128 - point) * scale) and np.isclose(fed.high, (127 - point) * scale)
    assert -0.1 < fed.low <= 0.01 and 0.9 < fed.high < 1.1  # the data is between 0 and 1


def test_text_says_what_to_feed(files: Files) -> None:
    lines = str(files.reports["int8"]).splitlines()
    (line,) = [line for line in lines if line.startswith("  in ")]
    assert "image" in line and "int8[1,12,16,3]  NHWC (NCHW in the model), real = " in line
    (line,) = [line for line in str(files.reports["onnx"]).splitlines() if line.startswith("  in ")]
    assert "float32[1,3,12,16]  NCHW, example 0.0" in line


def test_command(files: Files) -> None:
    outcome = run("inspect", files.paths["int8"])
    assert (outcome.status, outcome.stderr) == (0, "")
    assert "MACs        16.2 k\n" in outcome.stdout and "\noperators\n  2  CONV_2D\n" not in outcome.stdout
    assert "  1  DEPTHWISE_CONV_2D\n" in outcome.stdout and "NHWC, real = " in outcome.stdout
    document = run("inspect", files.paths["int8"], "--json").json
    assert document["format"] == "TFLite" and document["macs"] == MACS
    assert document["inputs"][0]["scale"] and document["ops"]["operators"]["CONV_2D"] == 1


def test_a_file_without_shapes_of_results(files: Files, tmp_path: Path) -> None:
    model = onnx.load(files.paths["onnx"])
    del model.graph.value_info[:]
    onnx.save(model, tmp_path / "bare.onnx")
    assert tmconvert.inspect(tmp_path / "bare.onnx").macs == MACS


def test_open_sizes_and_unknown_operators(tmp_path: Path) -> None:
    value = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("Frobnicate", ["x"], ["y"], domain="mylib")
    graph = onnx.helper.make_graph(
        [node], "g", [value("x", 1, ["batch", None, 3])], [value("y", 1, None)], []
    )
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("mylib", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "own.onnx")
    found = tmconvert.inspect(tmp_path / "own.onnx")
    assert found.inputs[0].shape == ("batch", "", 3) and found.outputs[0].shape is None
    assert found.operators == {"operators": {"Frobnicate": 1}}
    assert "  x  float32[batch,?,3]\n" in str(found) and found.sizes.peak_arena is None


def test_liveness() -> None:
    steps = [Step(["x"], ["a"]), Step(["a"], ["b"]), Step(["b", "x"], ["unused", "y"])]
    sizes = {"x": 1, "a": 10, "b": 100, "y": 1000, "unused": 5}
    found = activation_sizes(steps, sizes, ["x"], ["y"])
    assert found == (1116, 1 + 100 + 1000 + 5, 1000)
