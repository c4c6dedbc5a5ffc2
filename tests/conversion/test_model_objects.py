"""Models that are objects in memory, in and out of every public function."""

from __future__ import annotations

import gc
import importlib.resources
import io
import subprocess
import sys
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


class _Resource:
    """As a file of ``importlib.resources``."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def read_bytes(self) -> bytes:
        return self.content


def _exported_program() -> Any:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU()).eval()
    return torch.export.export(net, (torch.zeros(1, 1, 8, 8),))


# each makes a model of an ONNX and a TFLite file
OBJECTS: dict[str, Callable[[Any, bytes], Any]] = {
    "ModelProto": lambda proto, tflite: proto,
    "bytes": lambda proto, tflite: proto.SerializeToString(),
    "bytearray": lambda proto, tflite: bytearray(proto.SerializeToString()),
    "memoryview": lambda proto, tflite: memoryview(proto.SerializeToString()),
    "BytesIO": lambda proto, tflite: io.BytesIO(proto.SerializeToString()),
    "resource": lambda proto, tflite: _Resource(proto.SerializeToString()),
    "onnx_ir.Model": lambda proto, tflite: _onnx_ir(proto),
    "ONNXProgram": lambda proto, tflite: _Program(proto),
    "TFLite bytes": lambda proto, tflite: tflite,
    "TFLite BytesIO": lambda proto, tflite: io.BytesIO(tflite),
    "ExportedProgram": lambda proto, tflite: _exported_program(),
    "TracedModule": lambda proto, tflite: tmconvert.load(proto),
    "path": lambda proto, tflite: DIGITS,
}
OF_ONNX = list(OBJECTS)[:8]


def _to_stream(model: Any) -> bool:
    stream = io.BytesIO()
    assert tmconvert.to_onnx(model, stream).verified
    return tmconvert.load(stream.getvalue()).graph is not None


# each returns whether a model is right, or what is made of it
USES: dict[str, Callable[[Any], Any]] = {
    "to_onnx": lambda model: tmconvert.to_onnx(model).verified,
    "to_onnx, a stream": _to_stream,
    "to_tflite": lambda model: tmconvert.to_tflite(model).verified,
    "to_caffe": lambda model: tmconvert.to_caffe(model).verified,
    "simplify": lambda model: tmconvert.simplify(model).verified,
    "load": lambda model: tmconvert.load(model).graph,
    "check": lambda model: not tmconvert.check(model, "onnx"),
    "run": lambda model: tmconvert.run(model, "float32[1,1,8,8]"),
    "inspect": tmconvert.inspect,
    "view": lambda model: str(tmconvert.view(model)),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", OBJECTS)
def test_functions_take_objects(use: str, kind: str, proto: Any, tflite: bytes) -> None:
    """``simplify`` takes ONNX models only, and what is loaded cannot be loaded again."""
    model = OBJECTS[kind](proto, tflite)
    if (use != "simplify" or kind in OF_ONNX) and (use, kind) != ("load", "TracedModule"):
        assert USES[use](model)
    else:
        with pytest.raises(TmconvertError) as caught:
            USES[use](model)
        assert caught.value.code in ("TM6008", "TM6009", "TM1031")


@pytest.mark.parametrize("kind", OBJECTS)
def test_two_objects_are_compared(kind: str, proto: Any, tflite: bytes) -> None:
    def make() -> Any:
        return OBJECTS[kind](proto, tflite)

    assert tmconvert.compare(make(), tmconvert.to_onnx(make()).model).ok
    if kind in OF_ONNX:
        assert tmconvert.verify(DIGITS, make()).tells


@pytest.mark.parametrize("kind", [*OF_ONNX, "TFLite bytes", "TracedModule"])
def test_kinds_of_objects(kind: str, proto: Any, tflite: bytes) -> None:
    x = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    expected = tmconvert.run(DIGITS, x)
    found = tmconvert.run(OBJECTS[kind](proto, tflite), x)
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


_PEAK = """
import sys, numpy as np, onnx, tmconvert
from pathlib import Path

def model(count):
    helper, random = onnx.helper, np.random.default_rng(0)
    arrays = [random.standard_normal((2048, 2048), np.float32) for _ in range(count)]
    weights = [onnx.numpy_helper.from_array(array, f"w{number}") for number, array in enumerate(arrays)]
    nodes = [helper.make_node("MatMul", [f"x{n}", f"w{n}"], [f"x{n + 1}"]) for n in range(count)]
    edges = [[helper.make_tensor_value_info(f"x{n}", 1, [1, 2048])] for n in (0, count)]
    graph = helper.make_graph(nodes, "net", *edges, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)

def status(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(key))

use = getattr(tmconvert, sys.argv[1])
assert use(model(1)).verified  # imports what the function needs
large = model(8)
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
assert use(large).verified
print(status("VmHWM") - before, large.ByteSize() >> 20)
"""


@pytest.mark.parametrize("use", ["to_onnx", "to_tflite", "simplify"])
def test_the_memory_of_a_large_object(use: str) -> None:
    """A file of the object is written, which takes the size of the model while it is serialized."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("peaks of memory are read from /proc")
    made = subprocess.run([sys.executable, "-c", _PEAK, use], check=True, capture_output=True, text=True)
    peak, size = map(int, made.stdout.split())
    assert peak < size + 64
