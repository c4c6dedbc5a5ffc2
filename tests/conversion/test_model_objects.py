"""Models that are objects in memory, in and out of every public function."""

from __future__ import annotations

import gc
import importlib.resources
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tmconvert
from tmconvert.errors import TmconvertError, UsageError

DIGITS = Path(__file__).parents[2] / "samples" / "digits.tm"


@pytest.fixture(scope="module")
def proto() -> Any:
    return tmconvert.to_onnx(DIGITS).model


@pytest.fixture(scope="module")
def tflite() -> bytes:
    return tmconvert.to_tflite(DIGITS).bytes


def _onnx_ir(proto: Any) -> Any:
    return pytest.importorskip("onnx_ir").serde.deserialize_model(proto)


class _Program:
    """As ``torch.onnx.ONNXProgram``: a function that has an ``onnx_ir.Model``."""

    def __init__(self, proto: Any) -> None:
        self.model = _onnx_ir(proto)

    def __call__(self) -> None:
        raise AssertionError


OBJECTS: dict[str, Callable[[Any], Any]] = {
    "ModelProto": lambda proto: proto,
    "bytes": lambda proto: proto.SerializeToString(),
    "bytearray": lambda proto: bytearray(proto.SerializeToString()),
    "memoryview": lambda proto: memoryview(proto.SerializeToString()),
    "BytesIO": lambda proto: io.BytesIO(proto.SerializeToString()),
    "onnx_ir.Model": _onnx_ir,
    "ONNXProgram": _Program,
}
USES: dict[str, Callable[[Any, Any], Any]] = {
    "to_onnx": lambda model, proto: tmconvert.to_onnx(model).verified,
    "to_tflite": lambda model, proto: tmconvert.to_tflite(model).verified,
    "to_caffe": lambda model, proto: tmconvert.to_caffe(model).verified,
    "load": lambda model, proto: tmconvert.load(model).graph,
    "check": lambda model, proto: not tmconvert.check(model, "onnx"),
    "run": lambda model, proto: tmconvert.run(model, "float32[1,1,8,8]"),
    "compare": lambda model, proto: tmconvert.compare(model, proto).ok,
    "verify": lambda model, proto: tmconvert.verify(DIGITS, model).tells,
    "inspect": lambda model, proto: tmconvert.inspect(model),
    "view": lambda model, proto: str(tmconvert.view(model)),
}


@pytest.mark.parametrize("use", USES)
def test_functions_take_objects(use: str, proto: Any) -> None:
    for name in ("ModelProto", "BytesIO"):
        assert USES[use](OBJECTS[name](proto), proto), name


@pytest.mark.parametrize("name", OBJECTS)
def test_kinds_of_objects(name: str, proto: Any) -> None:
    x = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    expected = tmconvert.run(DIGITS, x)
    found = tmconvert.run(OBJECTS[name](proto), x)
    for one, two in zip(expected.values(), found.values(), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


def test_open_files_and_resources(tflite: bytes, tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(tflite)
    with (tmp_path / "net.tflite").open("rb") as file:
        assert tmconvert.to_onnx(file).verified
    with DIGITS.open("rb") as file, tempfile.TemporaryFile() as written:
        assert tmconvert.to_tflite(file, written).verified
        written.seek(0)
        assert written.read() == tflite
    resource = importlib.resources.files("tmconvert.errors") / "explanations.toml"
    with pytest.raises(TmconvertError, match="not a model file"):
        tmconvert.load(resource)
    with DIGITS.open(encoding="latin-1") as text, pytest.raises(UsageError, match="is open for text"):
        tmconvert.load(text)


def test_streams_are_written(proto: Any, tmp_path: Path) -> None:
    stream = io.BytesIO()
    tmconvert.to_onnx(DIGITS, stream)
    tmconvert.to_onnx(DIGITS, tmp_path / "net.onnx")
    assert stream.getvalue() == (tmp_path / "net.onnx").read_bytes()
    prototxt, caffemodel = io.BytesIO(), io.BytesIO()
    tmconvert.to_caffe(DIGITS, prototxt, caffemodel)
    assert (prototxt.getvalue(), caffemodel.getvalue()) == tmconvert.to_caffe(DIGITS).model
    with pytest.raises(UsageError, match=r"further file, model\.caffemodel"):
        tmconvert.to_caffe(DIGITS, io.BytesIO())
    container = io.BytesIO()
    tmconvert.save(DIGITS, container)
    assert tmconvert.load(container.getvalue()).graph


def test_external_data_and_ir(proto: Any) -> None:
    report = tmconvert.to_onnx(proto, external_data=True)
    assert report.verified
    assert report.model.graph.initializer[0].raw_data  # the weights are in the object
    assert pytest.importorskip("onnx_ir").Model is type(report.ir())
    with pytest.raises(UsageError, match="ir\\(\\) is for ONNX"):
        tmconvert.to_tflite(DIGITS).ir()


def test_files_live_as_long_as_the_result(proto: Any) -> None:
    model = tmconvert.load(proto)
    assert tmconvert.to_onnx(model).verification.reference  # the source file is run
    report = tmconvert.to_onnx(DIGITS)
    folder = report.paths[0].parent
    assert folder.is_dir()
    del report
    gc.collect()
    assert not folder.exists()


def test_large_weights_are_not_copied(tmp_path: Path) -> None:
    weight = onnx.numpy_helper.from_array(np.random.rand(512, 512).astype(np.float32), "w")
    float_data = onnx.helper.make_tensor("b", onnx.TensorProto.FLOAT, [512], [0.5] * 512)
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("MatMul", ["x", "w"], ["m"]),
            onnx.helper.make_node("Add", ["m", "b"], ["y"]),
        ],
        "net",
        [value("x", 1, [2, 512])],
        [value("y", 1, [2, 512])],
        [weight, float_data],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    before = model.SerializeToString()
    assert tmconvert.to_tflite(model).verified
    assert model.SerializeToString() == before
