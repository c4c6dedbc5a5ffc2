"""Other input shapes, cuts and names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import tmconvert
from tests.cli.runner import model, run
from tmconvert.errors import UnsupportedError, UsageError
from tmconvert.ir.tree import leaves


def session(path: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def names(path: Path) -> tuple[list[str], list[str]]:
    made = session(path)
    return [each.name for each in made.get_inputs()], [each.name for each in made.get_outputs()]


# ---- shapes


def test_another_input_shape(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    report = tmconvert.to_onnx(model("mobilenet_v2"), path, input_shapes={"x": (2, 3, 96, 80)})
    assert report.inputs[0]["shape"] == [2, 3, 96, 80] and report.verified
    x = np.random.default_rng(0).standard_normal((2, 3, 96, 80)).astype(np.float32)
    (expected,) = leaves(tmconvert.load(model("mobilenet_v2"))(x))
    np.testing.assert_allclose(session(path).run(None, {"x": x})[0], expected, rtol=1e-3, atol=1e-5)
    assert tmconvert.verify(model("mobilenet_v2"), path, input_shapes={"x": (2, 3, 96, 80)}).max_error < 1e-4


@pytest.mark.parametrize(("target", "suffix"), [("tflite", "tflite"), ("caffe", "prototxt")])
def test_another_input_shape_for_other_targets(target: str, suffix: str, tmp_path: Path) -> None:
    convert = getattr(tmconvert, f"to_{target}")
    report = convert(model("mobilenet_v2"), tmp_path / f"net.{suffix}", input_shapes={"x": (1, 3, 32, 96)})
    assert report.verified and sorted(report.inputs[0]["shape"]) == [1, 3, 32, 96]


def test_constants_that_do_not_fit_name_the_node(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        tmconvert.to_onnx(model("resnet18"), tmp_path / "net.onnx", input_shapes={"x": (1, 3, 256, 256)})
    text = str(caught.value)
    assert "f32[1,1024] does not fit weight f32[10,64]" in text and "fc_out = fc(flatten_out, )" in text
    assert "x is [1, 3, 256, 256] here, but was [1, 3, 64, 64] in the trace" in text


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"y": (1,)}, "the model has no input 'y'"),
        ({"x": (1, 3, -1, 64)}, "must consist of non-negative integers"),
        ({"x": (1, 3, 64.0, 64)}, "must consist of non-negative integers"),
    ],
)
def test_shapes_that_are_none(shapes: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        tmconvert.to_onnx(model("resnet18"), tmp_path / "net.onnx", input_shapes=shapes)


@pytest.mark.slow
def test_check_and_verify_at_another_shape(tmp_path: Path) -> None:
    source = model("mobilenet_v2")
    options = ("--input-shape", "x=2,3,96,80")
    assert run("check", source, "--target", "onnx", *options).status == 0
    failed = run("check", model("resnet18"), "--target", "onnx", "--input-shape", "x=1,3,256,256")
    assert failed.status == 1 and "does not fit weight" in failed.stdout
    assert run("onnx", source, tmp_path / "net.onnx", *options).status == 0
    assert run("verify", source, tmp_path / "net.onnx", *options).status == 0
    assert run("verify", source, tmp_path / "net.onnx").status != 0
    assert run("onnx", source, tmp_path / "net.onnx", "--input-shape", "x=2,a").status == 2


# ---- cuts


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
def test_a_cut_on_both_sides(target: str, tmp_path: Path) -> None:
    suffix = {"onnx": ".onnx", "tflite": ".tflite", "caffe": ".prototxt"}[target]
    convert = getattr(tmconvert, f"to_{target}")
    report = convert(
        model("resnet18"),
        tmp_path / f"net{suffix}",
        inputs=["layer1_out"],
        outputs=["layer3_out", "layer2_out"],
    )
    assert [each["name"] for each in report.inputs] == ["layer1_out"]
    assert [each["name"] for each in report.outputs] == ["layer3_out", "layer2_out"]
    assert report.verified


def test_parts_compute_what_the_whole_does(tmp_path: Path) -> None:
    tmconvert.to_onnx(model("resnet18"), tmp_path / "front.onnx", outputs=["layer2_out"])
    tmconvert.to_onnx(model("resnet18"), tmp_path / "back.onnx", inputs=["layer2_out"])
    x = np.random.default_rng(0).standard_normal((1, 3, 64, 64)).astype(np.float32)
    (middle,) = session(tmp_path / "front.onnx").run(None, {"x": x})
    (end,) = session(tmp_path / "back.onnx").run(None, {"layer2_out": middle})
    (expected,) = leaves(tmconvert.load(model("resnet18"))(x))
    np.testing.assert_allclose(end, expected, rtol=1e-3, atol=1e-5)


def test_weights_that_are_not_needed_vanish(tmp_path: Path) -> None:
    tmconvert.to_onnx(model("resnet18"), tmp_path / "net.onnx", outputs=["conv1_out"])
    graph = onnx.load(tmp_path / "net.onnx").graph
    assert [node.op_type for node in graph.node] == ["Conv"]
    assert all(initializer.name.startswith("conv1") for initializer in graph.initializer)


def test_an_unsupported_part_can_be_cut_off(tmp_path: Path) -> None:
    """The user's own function is behind the cut, or in front of it."""
    source = tmconvert.load(model("custom_user_function"))
    with pytest.raises(UnsupportedError):
        tmconvert.to_onnx(source, tmp_path / "net.onnx")
    graph = source.flatten().graph
    assert graph is not None
    made = [node.name for expr in graph for node in expr.outputs if "Tensor" in type(node).__name__]
    report = tmconvert.to_onnx(source, tmp_path / "net.onnx", outputs=made[:1])
    assert report.verified and report.outputs[0]["name"] == made[0]


def test_a_cut_with_another_shape_and_dynamic_sizes(tmp_path: Path) -> None:
    report = tmconvert.to_onnx(
        model("resnet18"),
        tmp_path / "net.onnx",
        inputs=["layer1_out"],
        outputs=["layer3_out"],
        input_shapes={"layer1_out": (1, 8, 20, 24)},
        dynamic_shapes={"layer1_out": {0: "n", 2: "h"}},
    )
    assert report.inputs[0]["shape"] == ["n", 8, "h", 24]
    assert report.outputs[0]["shape"][2:] == ["floor((h+3)/4)", 6]


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"outputs": ["layer2_ou"]}, "the model has no node 'layer2_ou'", "layer2_out"),
        ({"inputs": ["nonsense"]}, "the model has no node 'nonsense'", "valid names"),
        (
            {"inputs": ["fc_out"], "outputs": ["conv1_out"]},
            "still depend on the input 'x'",
            "add x to --inputs",
        ),
        ({"outputs": []}, "outputs must be a list of names, got list", ""),
        ({"outputs": "fc_out"}, "outputs must be a list of names, got str", ""),
        ({"outputs": 3}, "outputs must be a list of names, got int", ""),
        ({"input_shapes": "x"}, r"input_shapes must be a dict by name, got str \('x'\)", ""),
        ({"input_shapes": {"x": 3}}, r"must be a list of sizes, got int \(3\)", ""),
        ({"rename": ["x"]}, "rename must be a dict by name", ""),
        ({"rename": {"x": 3}}, "3 is not a valid name for an input or output", ""),
    ],
)
def test_cuts_that_do_not_fit(options: Any, message: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        tmconvert.to_onnx(model("resnet18"), tmp_path / "net.onnx", **options)
    assert caught.value.code == "TM6014" and hint in str(caught.value)


# ---- names


def test_outputs_in_dicts_are_called_by_their_keys(tmp_path: Path) -> None:
    tmconvert.to_onnx(model("op_multi_io"), tmp_path / "net.onnx")
    inputs, outputs = names(tmp_path / "net.onnx")
    assert inputs == ["img", "vec", "scale"]
    assert outputs == ["feat", "lst_0", "lst_1", "pool_avg", "pool_max"]


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_renamed(target: str, tmp_path: Path) -> None:
    rename = {"vec": "style", "pool_max": "peak", "feat": "img_features"}
    convert = getattr(tmconvert, f"to_{target}")
    path = tmp_path / f"net.{target}"
    report = convert(model("op_multi_io"), path, rename=rename)
    assert [each["name"] for each in report.inputs] == ["img", "style", "scale"]
    assert [each["name"] for each in report.outputs] == ["img_features", "lst_0", "lst_1", "pool_avg", "peak"]
    assert tmconvert.verify(model("op_multi_io"), path, rename=rename).max_error < 1e-4


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
def test_names_as_other_tools_write_them(target: str, tmp_path: Path) -> None:
    path = tmp_path / f"net.{target}"
    rename = {"vec": "serving/vec:0", "feat": "features[0]-x"}
    report = getattr(tmconvert, f"to_{target}")(model("op_multi_io"), path, rename=rename)
    assert report.verified
    loaded = tmconvert.load(path)
    assert "serving/vec:0" in {node.name for node in loaded.graph.inputs}
    assert "features[0]-x" in {each["name"] for each in report.outputs}


def test_a_name_that_an_inner_node_has(tmp_path: Path) -> None:
    tmconvert.to_onnx(
        model("resnet18"), tmp_path / "net.onnx", rename={"fc_out": "conv1_out", "x": "relu_out"}
    )
    assert names(tmp_path / "net.onnx") == (["relu_out"], ["conv1_out"])


@pytest.mark.parametrize(
    ("rename", "message"),
    [
        ({"y": "z"}, "no input or output 'y' to rename"),
        ({"vec": "img"}, "two inputs or outputs would have the name 'img'"),
        ({"vec": "a b"}, "'a b' is not a valid name"),
    ],
)
def test_names_that_do_not_fit(rename: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        tmconvert.to_onnx(model("op_multi_io"), tmp_path / "net.onnx", rename=rename)


def test_the_command_line(tmp_path: Path) -> None:
    out, source = tmp_path / "net.onnx", model("resnet18")
    options = ("--outputs", "layer3_out, layer2_out", "--rename", "layer2_out=small")
    assert run("onnx", source, out, "--inputs", "layer1_out", *options).status == 0
    assert names(out) == (["layer1_out"], ["layer3_out", "small"])
    assert run("verify", source, out, "--input-nodes", "layer1_out", *options).status == 0
    assert run("onnx", source, out, "--outputs", "a,,b").status == 2
    assert run("onnx", source, out, "--rename", "a").status == 2
    assert run("check", source, "--target", "onnx", "--outputs", "layer1_out").status == 0
