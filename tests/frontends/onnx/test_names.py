"""Inputs and outputs keep the names of the file, also those that are no identifiers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import tmconvert
from tests.frontends.onnx.models import of_nodes
from tmconvert.ir.extract import by_matching_name
from tmconvert.ir.parser import parse_graph

X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
INPUTS, OUTPUTS = ["input.1", "x:0", "x_0"], ["выход 1", "sum:0"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    nodes = [
        helper.make_node("Relu", ["input.1"], ["layer/relu:0"]),
        helper.make_node("Sub", ["layer/relu:0", "x:0"], ["выход 1"]),
        helper.make_node("Add", ["x:0", "x_0"], ["sum:0"]),
    ]
    made = tmp_path_factory.mktemp("names") / "net.onnx"
    onnx.save(of_nodes(nodes, {name: ["n", 3] for name in INPUTS}, OUTPUTS), str(made))
    return made


def test_onnx_files_keep_names(path, tmp_path):
    tmconvert.to_onnx(path, tmp_path / "out.onnx", opset=13)
    session = onnxruntime.InferenceSession(str(tmp_path / "out.onnx"))
    assert [each.name for each in session.get_inputs()] == INPUTS
    assert [each.name for each in session.get_outputs()] == OUTPUTS


def test_tflite_signatures_and_reports_keep_names(path, tmp_path):
    report = tmconvert.to_tflite(path, tmp_path / "out.tflite")
    assert [each["name"] for each in report.inputs] == INPUTS
    assert [each["name"] for each in report.outputs] == OUTPUTS
    written = tmconvert.inspect(tmp_path / "out.tflite").to_json()
    assert [each["name"] for each in written["inputs"]] == INPUTS


def test_names_survive_container_calibration_and_text(path, tmp_path):
    model = tmconvert.load(path)
    model.save(tmp_path / "net.tm")
    calibrated = tmconvert.calibrate(tmp_path / "net.tm", dict.fromkeys(INPUTS, X))
    report = tmconvert.to_onnx(calibrated, tmp_path / "out.onnx")
    assert [each["name"] for each in report.inputs] == INPUTS
    assert [each["name"] for each in report.outputs] == OUTPUTS


def test_the_text_form_quotes_names_that_are_no_words(path):
    text = tmconvert.normalize(tmconvert.load(path)).graph.to_text()
    assert '%"x:0"' in text
    assert parse_graph(text).to_text() == text


@pytest.mark.parametrize("name", ["input.1", "input_1", "x:0"])
def test_options_take_both_spellings(path, tmp_path, name):
    report = tmconvert.to_onnx(path, tmp_path / "out.onnx", input_shapes={name: (4, 3)})
    assert {each["name"]: each["shape"] for each in report.inputs} == {key: [4, 3] for key in INPUTS}


def test_cuts_take_both_spellings(path, tmp_path):
    for name in ("layer/relu:0", "layer_relu_0"):
        report = tmconvert.to_onnx(path, tmp_path / "out.onnx", outputs=[name], verify=False)
        assert [each["name"] for each in report.outputs] == ["layer/relu:0"]
        assert [each["name"] for each in report.inputs] == ["input.1"]


def test_runs_take_and_return_the_names(path, tmp_path):
    inputs = {"input_1": X, "x:0": 2 * X, "x_0": X}
    made = tmconvert.run(path, inputs)
    assert list(made) == OUTPUTS
    np.testing.assert_array_equal(made["sum:0"], 3 * X)
    np.savez(tmp_path / "in.npz", **inputs)
    tmconvert.to_onnx(path, tmp_path / "out.onnx", verify=False)
    np.testing.assert_array_equal(tmconvert.run(tmp_path / "out.onnx", tmp_path / "in.npz")["sum:0"], 3 * X)


def test_comparisons_show_the_names(path, tmp_path):
    tmconvert.to_tflite(path, tmp_path / "out.tflite", verify=False)
    found = tmconvert.compare(path, tmp_path / "out.tflite")
    assert [each.name for each in found.outputs] == OUTPUTS


def test_an_exact_name_comes_first():
    known = ["x:0", "x_0", "y.1"]
    assert by_matching_name({"x_0": 1, "y_1": 2, "z": 3}, known) == {"x_0": 1, "y.1": 2, "z": 3}
