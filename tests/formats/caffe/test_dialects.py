"""Ops for which a dialect has a layer that BVLC lacks, in the dialect's runtime or by definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.symbolics.ops.harness import assert_target_matches, normal, prepared, reference
from tmconvert.formats.caffe.schema import schema
from tmconvert.symbolics.dialects import DIALECTS
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.caffe.writer import write_caffe
from tmconvert.targets.registry import lower

IMAGE = normal(0, 2, 3, 8, 10)
WINDOWS = {"kernel_size": [3, 2], "stride": [2, 3], "padding": [1, 0]}
CORNERS = {"output_size": [5, 17], "align_corners": True}
# op, attributes, the layers that each dialect takes
CASES: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    (
        "aten::permute",
        {"dims": [0, 2, 3, 1]},
        {
            **dict.fromkeys(("opencv", "ascend", "mnn"), "Permute"),
            **dict.fromkeys(("nnie", "ncnn", "snpe", "trt"), "Reshape Permute Reshape"),
        },
    ),
    ("aten::permute", {"dims": [0, 3, 1, 2]}, {"nnie": "Reshape Permute Reshape"}),
    ("aten::permute", {"dims": [0, 2, 1, 3]}, {"nnie": "Slice Reshape Reshape Reshape Concat"}),
    (
        "aten::relu6",
        {},
        {**dict.fromkeys(("opencv", "ascend", "mnn", "ncnn"), "ReLU6"), "nnie": "ReLU Power ReLU Power"},
    ),
    ("aten::hardswish", {}, {"opencv": "HardSwish"}),
    ("aten::mish", {}, dict.fromkeys(("opencv", "ncnn"), "Mish")),
    ("aten::silu", {}, dict.fromkeys(("opencv", "ncnn"), "Swish")),
    ("aten::gelu", {}, {"opencv": "Gelu"}),
    ("aten::gelu", {"approximate": "tanh"}, {"opencv": "GeluApproximation"}),
    (
        "aten::channel_shuffle",
        {"groups": 3},
        dict.fromkeys(("opencv", "ascend", "mnn", "ncnn"), "ShuffleChannel"),
    ),
    ("aten::max_pool2d", WINDOWS, dict.fromkeys(("opencv", "ascend", "trt"), "Pooling")),
    (
        "aten::avg_pool2d",
        WINDOWS,
        {**dict.fromkeys(("opencv", "ascend", "trt"), "Pooling"), "ncnn": "Convolution"},
    ),
    ("aten::mean", {"dim": [2, 3], "keepdim": True}, {"ncnn": "Pooling", "snpe": "Pooling"}),
    ("aten::abs", {}, {"snpe": "Power Eltwise"}),
    ("aten::slice", {"dim": 2, "start": 1, "end": 4}, {"trt": "Convolution"}),
    ("aten::upsample_bilinear2d", CORNERS, dict.fromkeys(("opencv", "ascend", "mnn"), "Interp")),
]


@pytest.mark.parametrize(
    ("name", "attributes", "dialect", "layers"),
    [(name, attributes, *item) for name, attributes, each in CASES for item in each.items()],
)
def test_layers_of_a_dialect(name: str, attributes: dict[str, Any], dialect: str, layers: str) -> None:
    version = DIALECTS.index(dialect)
    lowering = lower(prepared("caffe", version, name, [IMAGE], attributes), catalogue(), "caffe", version)
    assert [operator.type for operator in lowering.graph.operators] == layers.split()
    assert_target_matches("caffe", version, name, [IMAGE], attributes, reference(name, [IMAGE], attributes))


def test_more_axes_than_a_chip_has() -> None:
    x, attributes = np.ascontiguousarray(normal(0, 2, 2, 3, 2, 2)), {"dims": [4, 3, 2, 1, 0]}
    for dialect in DIALECTS:
        version = DIALECTS.index(dialect)
        assert_target_matches(
            "caffe", version, "aten::permute", [x], attributes, reference("aten::permute", [x], attributes)
        )


@pytest.mark.parametrize("dialect", ["opencv", "ascend"])
def test_numbers_that_nobody_confirms_are_not_in_the_caffemodel(dialect: str, tmp_path: Path) -> None:
    """Of these Interp's is Huawei's, and OpenCV reads it in the text only."""
    version = DIALECTS.index(dialect)
    graph = lower(
        prepared("caffe", version, "aten::upsample_bilinear2d", [IMAGE], CORNERS),
        catalogue(),
        "caffe",
        version,
    ).graph
    paths = [tmp_path / "net.prototxt", tmp_path / "net.caffemodel"]
    with paths[0].open("wb") as prototxt, paths[1].open("wb") as caffemodel:
        write_caffe(graph, prototxt, caffemodel)
    assert "interp_param" in paths[0].read_text()
    net = schema(dialect).NetParameter.FromString(paths[1].read_bytes())
    assert net.layer[-1].HasField("interp_param") == (dialect == "ascend")
