"""TFLite files with open sizes: one interpreter, resized again and again, beside the source's interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import tmconvert
from tests.cli.runner import model
from tests.models.corpus import relative_error
from tmconvert.conversion.report import Report
from tmconvert.errors import UnsupportedError
from tmconvert.ir.tree import leaves

IMAGE = {0: "batch", 2: "height", 3: "width"}
TOLERANCE = 1e-4


def converted(name: str, folder: Path, axes: Mapping[int, str], **options: Any) -> Report:
    source = tmconvert.load(model(name))
    assert source.graph is not None
    shapes = {source.graph.inputs[1].name: axes}
    return tmconvert.to_tflite(source, folder / "net.tflite", dynamic_shapes=shapes, **options)


def assert_runs_at(name: str, folder: Path, *shapes: tuple[int, ...]) -> None:
    """The file, whose inputs and outputs are in the source's order, computes what the source does."""
    kinds = (OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    for interpreter in [
        Interpreter(str(folder / "net.tflite"), experimental_op_resolver_type=kind) for kind in kinds
    ]:
        (given,), results = interpreter.get_input_details(), interpreter.get_output_details()
        for seed, shape in enumerate((*shapes, tuple(given["shape"]))):
            x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
            x = np.abs(x * 3).astype(np.int32) if given["dtype"] == np.int32 else x
            interpreter.resize_tensor_input(given["index"], list(shape))
            interpreter.allocate_tensors()
            interpreter.set_tensor(given["index"], x)
            interpreter.invoke()
            expected = [np.asarray(leaf) for leaf in leaves(tmconvert.load(model(name))(x))]
            for result, wanted in zip(results, expected, strict=True):
                actual = interpreter.get_tensor(result["index"])
                assert actual.shape == wanted.shape
                assert relative_error(actual, wanted) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("mobilenet_v2", "shufflenet_v2", "efficientnet_se", "op_conv_variants", "sr_espcn"),
        *("op_s_bilinear", "op_s_pool_chain"),
    ],
)
def test_images_of_any_size(name: str, tmp_path: Path) -> None:
    report = converted(name, tmp_path, IMAGE, io_layout="source")
    channels = report.inputs[0]["shape"][1]
    assert report.inputs[0]["shape"] == ["batch", channels, "height", "width"]
    assert not any("fixed" in note for note in report.notes)
    assert_runs_at(name, tmp_path, (1, channels, 64, 40), (3, channels, 37, 50))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["unet", "det_yolox_focus", "det_fpn_scale_stride"])
def test_sizes_that_must_be_multiples(name: str, tmp_path: Path) -> None:
    accepts = name == "det_fpn_scale_stride"  # which runs at 63, too
    report = converted(name, tmp_path, IMAGE, io_layout="source", accept_range=accepts)
    assert report.inputs[0]["shape"] == ["batch", 3, "height", "width"]
    assert_runs_at(name, tmp_path, (1, 3, 96, 64), (3, 3, 64, 128))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("resnet18", [(5, 3, 64, 64), (1, 3, 64, 64)]),
        ("shufflenet_v2", [(3, 3, 64, 64)]),
        ("op_pooling", [(1, 4, 16, 16), (4, 4, 16, 16)]),
        ("op_s_flatten_linear", [(7, 2, 3, 4)]),
        ("text_lstm", [(1, 6), (5, 6)]),
    ],
)
def test_batches_of_any_size(name: str, shapes: list[tuple[int, ...]], tmp_path: Path) -> None:
    report = converted(name, tmp_path, {0: "n"}, io_layout="source")
    assert report.inputs[0]["shape"][0] == report.outputs[0]["shape"][0] == "n"
    assert [note for note in report.notes if "LiteRT's GPU" not in note] == []
    assert_runs_at(name, tmp_path, *shapes)


def test_signatures_of_shapes(tmp_path: Path) -> None:
    """An open size is -1 in the signature, and that of the example until it is resized."""
    report = converted("mobilenet_v2", tmp_path, {0: "batch"})
    assert report.inputs[0]["shape"] == ["batch", 64, 64, 3]
    subgraph = schema.ModelT.InitFromPackedBuf((tmp_path / "net.tflite").read_bytes()).subgraphs[0]
    given = subgraph.tensors[subgraph.inputs[0]]
    assert given.shapeSignature.tolist() == [-1, 64, 64, 3]
    assert given.shape.tolist()[1:] == [64, 64, 3]
    assert all(tensor.shapeSignature is None for tensor in subgraph.tensors if tensor.buffer)


def test_what_fixes_a_size_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"height, width cannot stay dynamic: fc_out \(meg") as caught:
        converted("resnet18", tmp_path, IMAGE)
    assert caught.value.code == "TM2031"
    report = converted("resnet18", tmp_path, IMAGE, fix={"height": 64, "width": 64})
    assert report.inputs[0]["shape"] == ["batch", 64, 64, 3]
