"""Messages and arrays of ONNX files, compared with the package onnx."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from onnx import TensorProto, helper

from tmconvert.errors import LoadError
from tmconvert.formats.onnx.element_types import ELEMENT_TYPES, REFUSED_TYPES, type_name
from tmconvert.formats.onnx.mapped_weights import OWN_FILE
from tmconvert.formats.onnx.metadata import onnx_options
from tmconvert.formats.onnx.model import Initializers, read_model, read_whole_model
from tmconvert.formats.onnx.tap import tapped_onnx, with_outputs
from tmconvert.targets.onnx.written_model import written_onnx


def saved(path: Path, *, external: bool) -> Path:
    """A model with a large and a small initializer, and a large constant of a subgraph."""
    large = onnx.numpy_helper.from_array(np.arange(3000, dtype=np.float32), "large")
    small = onnx.numpy_helper.from_array(np.arange(3, dtype=np.int64), "small")
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value=onnx.numpy_helper.from_array(np.arange(2000.0), "c"))],
        "inner",
        [],
        [helper.make_tensor_value_info("c", TensorProto.DOUBLE, [2000])],
    )
    nodes = [
        helper.make_node("Add", ["x", "large"], ["y"]),
        helper.make_node("If", ["flag"], ["z"], then_branch=inner, else_branch=inner),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [3000]),
            helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("z", TensorProto.DOUBLE, [2000])],
        [large, small],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, path, save_as_external_data=external, location="net.data", convert_attribute=True)
    return path


def loaded(path: Path) -> onnx.ModelProto:
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        tensor.ClearField("data_location")
    for node in model.graph.node:
        for attribute in node.attribute:
            for inner in attribute.g.node:
                inner.attribute[0].t.ClearField("data_location")
    return model


@pytest.mark.parametrize("external", [False, True])
def test_a_whole_model_has_all_weights(external: bool, tmp_path: Path) -> None:
    path = saved(tmp_path / "net.onnx", external=external)
    assert read_whole_model(str(path)) == loaded(path)
    assert onnx.ModelProto.FromString(with_outputs(path, ["z"])[0]) == loaded(path)
    large = next(each for each in read_model(str(path)).graph.initializer if each.name == "large")
    assert not large.HasField("raw_data")


@pytest.mark.parametrize("external", [False, True])
def test_a_tapped_model_has_all_weights(external: bool, tmp_path: Path) -> None:
    path, folder = saved(tmp_path / "net.onnx", external=external), tmp_path / "tapped"
    folder.mkdir()
    wanted = loaded(path).graph  # before the file has another link, which onnx refuses
    tapped = read_whole_model(str(tapped_onnx(path, ["y"], folder)))
    assert [each.name for each in tapped.graph.output] == ["y"]
    assert tapped.graph.initializer == wanted.initializer
    assert tapped.graph.node == wanted.node


def test_tensors_that_share_the_bytes_of_the_file_are_refused(tmp_path: Path) -> None:
    """A small file must not become a large model."""
    path = saved(tmp_path / "net.onnx", external=False)
    model = onnx.load(path)
    shared = model.graph.initializer.add(name="shared", data_type=TensorProto.FLOAT, dims=[3000])
    shared.data_location = TensorProto.EXTERNAL
    shared.external_data.add(key="location", value=OWN_FILE)
    for number in range(3):
        model.graph.initializer.add().CopyFrom(shared)
        model.graph.initializer[-1].name += str(number)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(LoadError, match="more bytes than the file"):
        read_whole_model(str(path))


def test_arrays_have_the_types_of_the_file(tmp_path: Path) -> None:
    numbers = np.array([0, 1, 0, 1, 1])
    tensors = []
    for number in ELEMENT_TYPES:
        dtype = helper.tensor_dtype_to_np_dtype(number)
        tensors.append(onnx.numpy_helper.from_array(numbers.astype(dtype), TensorProto.DataType.Name(number)))
    model = helper.make_model(helper.make_graph([], "net", [], [], tensors), ir_version=13)
    onnx.save(model, tmp_path / "net.onnx")
    found = Initializers(str(tmp_path / "net.onnx"))
    for tensor in tensors:
        wanted = onnx.numpy_helper.to_array(tensor)
        assert found[tensor.name].dtype == wanted.dtype, tensor.name
        assert found[tensor.name].tobytes() == wanted.tobytes(), tensor.name


@pytest.mark.parametrize("number", [*ELEMENT_TYPES, *REFUSED_TYPES])
def test_names_of_types(number: int) -> None:
    assert type_name(number) == np.dtype(helper.tensor_dtype_to_np_dtype(number)).name


def test_damaged_files_are_clean_errors(tmp_path: Path) -> None:
    path = saved(tmp_path / "net.onnx", external=False)
    data, rng = path.read_bytes(), np.random.default_rng(0)
    path.write_bytes(data[:200])
    with pytest.raises(LoadError, match="TM1009"):
        written_onnx(path)
    readers = (written_onnx, onnx_options, lambda path: read_whole_model(str(path)))
    for _ in range(50):
        mutated = bytearray(data)
        for position in (*rng.integers(0, len(data), 3), rng.integers(0, 60)):
            mutated[position] = rng.integers(0, 256)
        path.write_bytes(mutated)
        for read in readers:
            try:
                read(path)
            except LoadError as error:
                assert error.code in ("TM1009", "TM1031", "TM1032", "TM1033")
