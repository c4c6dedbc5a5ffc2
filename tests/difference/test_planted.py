"""``tmconvert diff``: each edit that is planted in a file of a real model is named, and none is invented."""

from __future__ import annotations

import functools
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import onnx
import pytest
from ai_edge_litert import schema_py_generated as schema
from onnx import helper, numpy_helper

from tests.cli.runner import model
from tests.difference.planted import (
    FLOAT_TFLITE_EDITS,
    INTEGER_TFLITE_EDITS,
    ONNX_EDITS,
    Edit,
    Expected,
    NoPlace,
)
from tmconvert import api

MODELS = ("mobilenet_v2", "efficientnet_se", "mlp_mixer", "op_mha_rnncell", "det_yolox_focus")
IMAGE = np.random.default_rng(0).standard_normal((2, 3, 64, 64)).astype("f")
ROWS = [(name, "onnx", edit) for name in MODELS for edit in ONNX_EDITS]
ROWS += [(name, "tflite", edit) for name in MODELS[:2] for edit in FLOAT_TFLITE_EDITS]
ROWS += [("mobilenet_v2", "int8.tflite", edit) for edit in INTEGER_TFLITE_EDITS]
EDITS: dict[str, Edit] = {**ONNX_EDITS, **FLOAT_TFLITE_EDITS, **INTEGER_TFLITE_EDITS}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Returns a function that writes the file of a model once, and returns its path."""
    folder = tmp_path_factory.mktemp("written")

    @functools.cache
    def file(name: str, suffix: str) -> Path:
        path, options = folder / f"{name}.{suffix}", dict[str, Any]()
        if suffix.startswith("int8"):
            options = {"quantized": True, "calibration": {"x": IMAGE}}
        api.to_target(model(name), suffix.rpartition(".")[2], path, **options)
        return path

    return file


def edited(path: Path, edit: str) -> Expected:
    """Edits a file in its place, and returns the expected changes."""
    random = np.random.default_rng(sum(map(ord, edit)))
    if path.suffix == ".onnx":
        found = onnx.load(path)
        expected = EDITS[edit](found, random)
        onnx.save(found, path)
        return expected
    held = schema.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    expected = EDITS[edit](held, random)
    builder = flatbuffers.Builder(1024)
    builder.Finish(held.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return expected


@pytest.mark.parametrize(("name", "suffix", "edit"), ROWS)
def test_planted_edits(name: str, suffix: str, edit: str, written: Any) -> None:
    first, second = Path(f"a.{suffix}"), Path(f"b.{suffix}")
    for each in (first, second):
        shutil.copy(written(name, suffix), each)
    try:
        expected = edited(second, edit)
    except NoPlace:
        pytest.skip("the model has no place for this edit")
    found = api.diff(first, second)
    assert {(each.kind, each.first or each.second) for each in found.changes} == expected
    assert found.is_equal == (not expected)


def optimized_by_ort(path: Path, level: str) -> Path:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
    options.optimized_model_filepath, options.log_severity_level = f"{level}.onnx", 3
    onnxruntime.InferenceSession(path, options)
    return Path(f"{level}.onnx")


def simplified(path: Path, tool: str) -> Path:
    if find_spec(tool) is None:
        pytest.skip(f"needs {tool}")
    import importlib

    made: Any = importlib.import_module(tool)
    found = made.slim(str(path)) if tool == "onnxslim" else made.simplify(onnx.load(path))[0]
    onnx.save(found, f"{tool}.onnx")
    return Path(f"{tool}.onnx")


def with_batch_norms(path: Path) -> onnx.ModelProto:
    """Returns a model with a batch norm and an identity after each convolution, which tools fold."""
    found, random = onnx.load(path), np.random.default_rng(0)
    weights = {each.name: each.dims[0] for each in found.graph.initializer if each.dims}
    nodes = []
    for number, each in enumerate(found.graph.node):
        nodes.append(each)
        if each.op_type != "Conv":
            continue
        output, count = each.output[0], weights[each.input[1]]
        parameters = [f"norm{number}_{part}" for part in ("scale", "bias", "mean", "var")]
        for name in parameters:
            values = random.uniform(0.5, 1.5, count).astype("f")
            found.graph.initializer.append(numpy_helper.from_array(values, name))
        each.output[0] = f"conv{number}"
        made = [each.output[0], *parameters]
        nodes.append(helper.make_node("BatchNormalization", made, [f"norm{number}"], f"norm{number}"))
        nodes.append(helper.make_node("Identity", [f"norm{number}"], [output], f"same{number}"))
    del found.graph.node[:]
    found.graph.node.extend(nodes)
    return found


TOOLS = [("BASIC", optimized_by_ort), ("onnxslim", simplified), ("onnxsim", simplified)]


@pytest.mark.parametrize(("tool", "run"), TOOLS)
@pytest.mark.parametrize("name", ["mobilenet_v2", "efficientnet_se"])
def test_fusions_of_other_tools(name: str, tool: str, run: Any, written: Any) -> None:
    model = with_batch_norms(written(name, "onnx"))
    onnx.save(model, "a.onnx")
    found = api.diff("a.onnx", run(Path("a.onnx"), tool), compare_outputs=True)
    assert found.outputs is not None and found.outputs.has_equal_outputs
    assert "outputs: within the limit" in str(found)
    folded = {
        each.output[0] for each in model.graph.node if each.op_type in ("BatchNormalization", "Identity")
    }
    gone = {name for each in found.of_kind("fused", "removed") for name in each.first.split(", ")}
    convolutions = {each.output[0] for each in model.graph.node if each.op_type == "Conv"}
    weights = {each.first for each in found.of_kind("weights")} | {
        each.first for each in found.of_kind("attribute") if "operands" in each.text
    }
    assert folded <= gone <= folded | convolutions and weights <= convolutions
    assert {each.kind for each in found.changes} <= {"fused", "removed", "weights", "attribute", "renamed"}


@pytest.mark.parametrize("name", ["mobilenet_v2", "efficientnet_se", "det_yolox_focus"])
def test_precision_and_opset(name: str, written: Any) -> None:
    api.to_onnx(model(name), "half.onnx", float_type="float16")
    api.to_onnx(model(name), "opset.onnx", opset=13)
    one = written(name, "onnx")
    kinds = {each.kind for each in api.diff(one, "half.onnx").changes}
    assert {"type", "weights"} <= kinds <= {"type", "weights"}
    assert api.diff(one, "opset.onnx").properties["version"] == ("opset 17", "opset 13")
    assert not api.diff(one, "opset.onnx").of_kind("weights", "type", "quantization", "shape")


def test_five_thousand_nodes() -> None:
    from tests.difference.test_diff import net, scale_weights, set_type

    onnx.save(net(1000), "a.onnx")
    changed = net(1000)
    scale_weights(changed, "conv_b500_w")
    set_type(changed, "relu_a700", "Sigmoid")
    onnx.save(changed, "b.onnx")
    found = api.diff("a.onnx", "b.onnx")
    assert {(each.kind, each.first) for each in found.changes} == {
        ("weights", "conv_b500"),
        ("replaced", "relu_a700"),
    }
