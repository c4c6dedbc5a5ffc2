"""Weights stay in the mapped file of a model; what is parsed of it is otherwise the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import tmconvert
from tests.frontends.onnx.models import of_nodes
from tmconvert.errors import LoadError
from tmconvert.formats.onnx.mapped_weights import OWN_FILE, SMALLEST, without_weights
from tmconvert.formats.onnx.tensors import TensorReader

TYPES = ("float32", "float16", "int8", "int64", "bool")


def model(*weights: np.ndarray) -> onnx.ModelProto:
    """A model that returns its weights, after one node."""
    stored = {f"w{number}": each for number, each in enumerate(weights)}
    made: onnx.ModelProto = of_nodes([helper.make_node("Identity", ["x"], ["y"])], {"x": [2]}, ["y"], stored)
    return made


def parsed(data: bytes) -> Any:
    """The message, without those weights; None where it is none."""
    found = onnx.ModelProto()
    try:
        found.ParseFromString(without_weights(memoryview(data)))
    except DecodeError:
        return None
    return found


def filled(found: onnx.ModelProto, data: bytes) -> onnx.ModelProto:
    """The message with the weights of its own file put back."""
    for tensor in found.graph.initializer:
        said = {each.key: each.value for each in tensor.external_data}
        if said.get("location") == OWN_FILE:
            start = int(said["offset"])
            tensor.raw_data = data[start : start + int(said["length"])]
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
    return found


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(TYPES), st.sampled_from([0, 1, 7, 4095, 4096, 5000])), max_size=5),
    st.text(max_size=9),
)
def test_the_message_is_the_same(weights: list[tuple[str, int]], doc: str) -> None:
    whole = model(*(np.arange(count).astype(dtype) for dtype, count in weights))
    whole.graph.doc_string = whole.doc_string = doc
    data = whole.SerializeToString()
    rest = without_weights(memoryview(data))
    cut = [np.dtype(dtype).itemsize * count for dtype, count in weights]
    assert len(rest) < len(data) - sum(size - 99 for size in cut if size >= SMALLEST) + 1
    assert filled(parsed(data), data) == whole


def test_arrays_are_views_of_the_mapped_file(tmp_path: Path) -> None:
    weights = [np.random.default_rng(0).standard_normal((40, 50)).astype(dtype) for dtype in TYPES]
    path = tmp_path / "net.onnx"
    path.write_bytes(model(*weights).SerializeToString())
    found, reader = parsed(path.read_bytes()), TensorReader(str(path))
    for tensor, wanted in zip(found.graph.initializer, weights, strict=True):
        array = reader.array(tensor)
        np.testing.assert_array_equal(array, wanted)
        assert array.dtype == wanted.dtype and not array.flags.writeable


def test_the_same_network_computes_the_same(tmp_path: Path) -> None:
    weight = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    net = of_nodes([node], {"x": [2, 64]}, ["y"], {"w": weight})
    path = tmp_path / "net.onnx"
    path.write_bytes(net.SerializeToString())
    for target in ("onnx", "tflite"):
        report = getattr(tmconvert, f"to_{target}")(path, tmp_path / f"out.{target}")
        assert report.verified


def odd_forms() -> dict[str, bytes]:
    """Bytes of models in which a field is cut, doubled, of another kind, or of an odd length."""
    data = model(np.arange(2000.0)).SerializeToString()
    tensor = helper.make_tensor("w0", TensorProto.FLOAT, [2000], np.arange(2000.0))
    both = model(np.arange(2000.0))
    both.graph.initializer[0].double_data.extend([1.0])
    external = model(np.arange(2000.0))
    external.graph.initializer[0].data_location = TensorProto.EXTERNAL
    twice = model(np.arange(2000.0))
    twice.graph.initializer[0].raw_data += bytes(8)
    fields = model()
    fields.graph.initializer.append(tensor)
    forms = {
        "two graphs": data + data,
        "raw and typed data": both.SerializeToString(),
        "external as well": external.SerializeToString(),
        "too much data": twice.SerializeToString(),
        "typed data": fields.SerializeToString(),
        "a group": data + b"\x0b\x0c",
        "an unknown field": data + b"\xfa\x7f\x02ab",
        "a number of eleven digits": data + b"\x78" + b"\xff" * 11,
        "the graph as a number": b"\x38\x01" + bytes(SMALLEST),
        "zeros": bytes(2 * SMALLEST),
    }
    return forms | {f"cut at {end}": data[:end] for end in (0, 1, 5000, len(data) - 9, len(data) - 1)}


@pytest.mark.parametrize("name", odd_forms())
def test_odd_forms_are_judged_by_the_parser(name: str) -> None:
    data = odd_forms()[name]
    try:
        wanted = onnx.ModelProto.FromString(data)
    except DecodeError:
        wanted = None
    found = parsed(data)
    assert (found if found is None else filled(found, data)) == wanted


def test_data_of_another_length_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    net = of_nodes([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [1]}, ["y"], {"w": np.arange(2000.0)})
    net.graph.initializer[0].raw_data += bytes(8)
    path.write_bytes(net.SerializeToString())
    with pytest.raises(LoadError, match="a tensor needs 16000 bytes, but has 16008"):
        tmconvert.load(path)


def test_the_commands_do_not_import_the_rest_of_onnx(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(model(np.arange(2000.0)).SerializeToString())
    code = f"""
import sys
from tmconvert.__main__ import main
sys.argv = ["tmconvert", "tflite", {str(path)!r}, {str(tmp_path / "net.tflite")!r}, "--no-verify"]
try:
    main()
except SystemExit as ended:
    assert not ended.code
assert "onnx" not in sys.modules and "onnx.onnx_ml_pb2" in sys.modules
import onnx
assert onnx.ModelProto is sys.modules["onnx.onnx_ml_pb2"].ModelProto
onnx.helper.make_node("Relu", ["x"], ["y"])
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
