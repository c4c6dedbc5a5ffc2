"""Files with symbolic sizes, run in ONNX Runtime at several sizes beside the source's interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import tmconvert
from tests.cli.runner import model, run
from tmconvert.conversion.report import Report
from tmconvert.errors import TmconvertError, UnsupportedError, UsageError
from tmconvert.ir.tree import leaves

IMAGE = {0: "batch", 2: "height", 3: "width"}
OPSETS = (7, 9, 11, 13, 17, 21)


def converted(name: str, folder: Path, axes: Mapping[int, str], opset: int = 17, **options: Any) -> Report:
    source = tmconvert.load(model(name))
    assert source.graph is not None
    first = source.graph.inputs[1].name
    return tmconvert.to_onnx(
        source, folder / "net.onnx", opset=opset, dynamic_shapes={first: axes}, **options
    )


def assert_runs_at(name: str, folder: Path, *shapes: tuple[int, ...]) -> None:
    """The file computes what the source does at other sizes of its one input."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        str(folder / "net.onnx"), options, providers=["CPUExecutionProvider"]
    )
    (described,) = session.get_inputs()
    for seed, shape in enumerate(shapes):
        x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
        if "int" in described.type:
            x = np.abs(x * 3).astype(np.int32)
        expected = [np.asarray(leaf) for leaf in leaves(tmconvert.load(model(name))(x))]
        for actual, wanted in zip(session.run(None, {described.name: x}), expected, strict=True):
            assert actual.shape == wanted.shape
            np.testing.assert_allclose(actual, wanted, rtol=1e-3, atol=1e-4 * max(1, np.abs(wanted).max()))


@pytest.mark.slow
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    "name",
    [
        *(
            "mobilenet_v2",
            "shufflenet_v2",
            "efficientnet_se",
            "op_conv_variants",
            "op_pad",
            "op_s_pool_chain",
        ),
        *("op_conv_transpose", "sr_espcn"),
    ],
)
def test_images_of_any_size(name: str, opset: int, tmp_path: Path) -> None:
    report = converted(name, tmp_path, IMAGE, opset)
    (described,) = report.inputs
    channels = described["shape"][1]
    assert described["shape"] == ["batch", channels, "height", "width"]
    assert not any("fixed" in note for note in report.notes)
    shapes = [(1, channels, 64, 40), (3, channels, 37, 50), (2, channels, 53, 41)]
    assert_runs_at(name, tmp_path, *shapes)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("resnet18", [(5, 3, 64, 64), (1, 3, 64, 64)]),
        ("mobilenet_v1", [(2, 3, 64, 64)]),
        ("op_pooling", [(1, 4, 16, 16), (4, 4, 16, 16)]),
        ("op_s_flatten_linear", [(7, 2, 3, 4)]),
        ("text_lstm", [(1, 6), (5, 6)]),
    ],
)
def test_batches_of_any_size(name: str, shapes: list[tuple[int, ...]], opset: int, tmp_path: Path) -> None:
    report = converted(name, tmp_path, {0: "n"}, opset)
    assert report.inputs[0]["shape"][0] == report.outputs[0]["shape"][0] == "n"
    assert report.notes == []
    assert_runs_at(name, tmp_path, *shapes)


@pytest.mark.parametrize("opset", [11, 13, 21])
def test_sizes_that_must_come_out_even(opset: int, tmp_path: Path) -> None:
    report = converted("det_yolox_focus", tmp_path, IMAGE, opset)
    assert [note for note in report.notes if "multiple" in note] == [
        "height is a multiple of 2: concat_out (megengine.functional.tensor.concat) needs equal sizes",
        "width is a multiple of 2: concat_out (megengine.functional.tensor.concat) needs equal sizes",
    ]
    assert report.inputs[0]["shape"] == ["batch", 3, "height", "width"]
    assert_runs_at("det_yolox_focus", tmp_path, (2, 3, 64, 34), (1, 3, 50, 48))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "unit"), [("unet", 4), ("det_fpn_scale_stride", 32)])
def test_skip_connections_make_sizes_multiples(name: str, unit: int, tmp_path: Path) -> None:
    report = converted(name, tmp_path, IMAGE, accept_range=name != "unet")
    assert report.inputs[0]["shape"] == ["batch", 3, "height", "width"]
    facts = [note.partition(":")[0] for note in report.notes if "multiple" in note]
    assert facts == [f"height is a multiple of {unit}", f"width is a multiple of {unit}"]
    assert_runs_at(name, tmp_path, (1, 3, 96, 64), (3, 3, 64, 128))


def test_what_fixes_a_size_is_said(tmp_path: Path) -> None:
    """The classifier takes images of one size; the batch stays open."""
    with pytest.raises(UnsupportedError, match=r"height, width cannot stay dynamic: fc_out \(meg") as caught:
        converted("resnet18", tmp_path, IMAGE)
    assert caught.value.code == "TM2031"
    report = converted("resnet18", tmp_path, IMAGE, fix={"height": 64, "width": 64})
    assert report.inputs[0]["shape"] == ["batch", 3, 64, 64]


def test_an_opset_that_keeps_a_size_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="at opset 9; --opset 10 keeps it dynamic"):
        converted("op_subtensor", tmp_path, IMAGE, 9)
    assert converted("op_subtensor", tmp_path, IMAGE, 10).inputs[0]["shape"] == [
        "batch",
        4,
        "height",
        "width",
    ]


def test_symbols_of_inputs_that_meet_are_one(tmp_path: Path) -> None:
    dynamic = {"img": {2: "height", 3: "width"}, "scale": {2: "rows", 3: "columns"}}
    report = tmconvert.to_onnx(model("op_multi_io"), tmp_path / "net.onnx", dynamic_shapes=dynamic)
    shapes = {described["name"]: described["shape"] for described in report.inputs}
    assert shapes["scale"] == [1, 1, "height", "width"] and shapes["img"] == [1, 3, "height", "width"]
    assert [note.partition(":")[0] for note in report.notes] == ["rows is height", "columns is width"]


def test_the_file_names_the_sizes(tmp_path: Path) -> None:
    converted("op_s_conv_bn_relu", tmp_path, IMAGE)
    graph = onnx.load(tmp_path / "net.onnx").graph
    dims = [[d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim] for value in graph.input]
    assert dims == [["batch", 3, "height", "width"]]
    (result, *_) = graph.output
    sizes = [d.dim_param or d.dim_value for d in result.type.tensor_type.shape.dim]
    assert sizes == ["batch", 8, "floor((height+1)/2)", "floor((width+1)/2)"]


def test_caffe_has_no_dynamic_sizes_yet(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="dynamic sizes are not available") as caught:
        tmconvert.to_caffe(model("resnet18"), tmp_path / "net.prototxt", dynamic_shapes={"x": {0: "n"}})
    assert caught.value.code == "TM6014"


@pytest.mark.parametrize(
    ("dynamic", "message"),
    [
        ({"y": {0: "n"}}, "the model has no input 'y'"),
        ({"x": {4: "n"}}, "has no axis 4"),
        ({"x": {0: "1n"}}, "'1n' is not a valid name for a dimension: use another, of letters, digits and _"),
        (
            {"x": {0: "floor"}},
            "'floor' is not a valid name for a dimension: it is a word of the text of graphs",
        ),
        ({"x": {0: "n", -4: "m"}}, "has two names"),
        ({"x": {0: "n", 2: "n"}}, "n is 1 as axis 0 of x, but 64 as axis 2 of x"),
    ],
)
def test_wishes_that_do_not_fit(dynamic: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(TmconvertError, match=message) as caught:
        tmconvert.to_onnx(model("resnet18"), tmp_path / "net.onnx", dynamic_shapes=dynamic)
    assert caught.value.code == "TM6014"
    assert not (tmp_path / "net.onnx").exists()


@pytest.mark.slow
def test_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "net.onnx"
    done = run("onnx", model("resnet18"), out, "--dynamic", "x:0=batch", "--dynamic", "x:-1=w", "--json")
    assert done.status == 0
    (described,) = done.json["inputs"]
    assert (described["name"], described["dtype"]) == ("x", "float32")
    # pooling of 2 x 2 gives the linear layer one element in the whole range, and the source fails elsewhere
    assert described["shape"] == ["batch", 3, 64, "w"]
    assert "w is at least 33 and at most 96: fc_out" in done.stderr
    assert done.json["ranges"] == ["w >= 33", "w <= 96"]


@pytest.mark.parametrize("text", ["x", "x=batch", ":0=n", "x:a=n", "x:0="])
def test_malformed_options(text: str, tmp_path: Path) -> None:
    done = run("onnx", model("resnet18"), tmp_path / "net.onnx", "--dynamic", text)
    assert done.status == 2 and "as in x:0=batch" in done.stderr
