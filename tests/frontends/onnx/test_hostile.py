"""Damaged and hostile ONNX files are clean errors."""

from __future__ import annotations

import contextlib
import os
import time

import numpy as np
import pytest
from onnx import TensorProto, helper

import tmconvert
from tests.frontends.onnx.models import network, of_nodes
from tmconvert.errors import LoadError, TmconvertError


def load(tmp_path, model):
    path = tmp_path / "net.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return tmconvert.load(path)


def error(tmp_path, model):
    with pytest.raises(LoadError) as caught:
        load(tmp_path, model)
    return caught.value


def relu(name="x", out="y"):
    return helper.make_node("Relu", [name], [out], f"/{out}")


def test_a_truncated_file(tmp_path):
    data = network().SerializeToString()
    assert error(tmp_path, data[: len(data) // 2]).code == "TM1031"


def test_a_value_that_nothing_computes(tmp_path):
    found = error(tmp_path, of_nodes([relu("nowhere")], {"x": [2]}, ["y"]))
    assert found.code == "TM1031"
    assert "nothing computes 'nowhere'" in str(found)
    assert "/y" in str(found)


def test_a_cycle(tmp_path):
    model = of_nodes([relu("b", "a"), relu("a", "b")], {"x": [2]}, ["a"])
    assert error(tmp_path, model).code == "TM1031"


def test_a_value_that_two_nodes_compute(tmp_path):
    assert error(tmp_path, of_nodes([relu(), relu()], {"x": [2]}, ["y"])).code == "TM1031"


def test_functions_that_call_each_other(tmp_path):
    own = [helper.make_opsetid("own", 1)]
    node = helper.make_node("f", ["x"], ["y"], domain="own")
    function = helper.make_function("own", "f", ["x"], ["y"], [node], own)
    model = of_nodes([node], {"x": [2]}, ["y"], functions=[function])
    found = error(tmp_path, model)
    assert found.code == "TM1031"
    assert "functions call each other" in str(found)


def test_a_tensor_with_fewer_bytes_than_its_shape(tmp_path):
    model = of_nodes(
        [helper.make_node("Add", ["x", "w"], ["y"])], {"x": [2]}, ["y"], {"w": np.ones(2, np.float32)}
    )
    model.graph.initializer[0].dims[:] = [1 << 40, 1 << 40]
    assert error(tmp_path, model).code == "TM1031"
    model.graph.initializer[0].dims[:] = [-1]
    assert error(tmp_path, model).code == "TM1031"


def test_an_unknown_element_type(tmp_path):
    model = of_nodes([relu()], {"x": [2]}, ["y"], {"w": np.ones(2, np.float32)})
    model.graph.input[0].type.tensor_type.elem_type = 77
    assert error(tmp_path, model).code == "TM1031"
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    assert error(tmp_path, model).code == "TM1033"


def test_an_input_without_rank(tmp_path):
    model = of_nodes([relu()], {"x": [2]}, ["y"])
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert error(tmp_path, model).code == "TM1033"


def test_an_opset_that_is_newer_than_onnx(tmp_path):
    model = of_nodes([relu()], {"x": [2]}, ["y"])
    model.opset_import[0].version = 9999
    assert error(tmp_path, model).code == "TM1033"


# ---- external data


def external(tmp_path, location, size=8):
    model = of_nodes(
        [helper.make_node("Add", ["x", "w"], ["y"])], {"x": [2]}, ["y"], {"w": np.ones(2, np.float32)}
    )
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": "0", "length": str(size)}.items():
        weight.external_data.add(key=key, value=value)
    return model


def test_external_data_are_mapped(tmp_path):
    (tmp_path / "w.bin").write_bytes(np.array([3, 4], np.float32).tobytes())
    model = load(tmp_path, external(tmp_path, "w.bin"))
    np.testing.assert_array_equal(model(np.ones(2, np.float32)), [4, 5])
    weight = model.get_parameter("w")
    assert not weight.flags.owndata and not weight.flags.writeable


@pytest.mark.parametrize("location", ["/etc/passwd", "../w.bin", "a/../../w.bin", "", "missing.bin", "a\0b"])
def test_external_data_outside_of_the_folder(tmp_path, location):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(8))
    assert error(folder, external(folder, location)).code == "TM1032"


def test_external_data_through_a_symbolic_link(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(8))
    (folder / "w.bin").symlink_to(tmp_path / "w.bin")
    assert error(folder, external(folder, "w.bin")).code == "TM1032"


def test_external_data_that_are_too_short(tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes(4))
    assert error(tmp_path, external(tmp_path, "w.bin")).code == "TM1032"


def test_external_data_of_a_device(tmp_path):
    os.mkfifo(tmp_path / "w.bin")
    assert error(tmp_path, external(tmp_path, "w.bin")).code == "TM1032"


def test_mutated_files_are_clean_errors_or_models(tmp_path):
    data = network().SerializeToString()
    rng = np.random.default_rng(0)
    x = np.ones((2, 3, 8, 8), np.float32)
    for _ in range(150):
        mutated = bytearray(data)
        for place in rng.integers(0, len(data), 3):
            mutated[place] = rng.integers(0, 256)
        before = time.perf_counter()
        with contextlib.suppress(TmconvertError):
            load(tmp_path, bytes(mutated))(x)
        assert time.perf_counter() - before < 5


# ---- sparse tensors


def sparse(indices, dims=(2, 3), values=(5.0, 7.0)):
    model = of_nodes([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [1]}, ["y"])
    values = helper.make_tensor("w", TensorProto.FLOAT, [len(values)], values)
    indices = np.array(indices, np.int64)
    places = helper.make_tensor("", TensorProto.INT64, indices.shape, indices.reshape(-1))
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, dims))
    return model


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
def test_sparse_tensors_are_stored_with_their_zeros(tmp_path, indices):
    made = load(tmp_path, sparse(indices))(np.zeros(1, np.float32))
    np.testing.assert_array_equal(made, [[0, 5, 0], [0, 0, 7]])


@pytest.mark.parametrize("indices", [[1, 6], [-1, 2], [[0, 3], [0, 0]], [0], [[0, 1, 2], [0, 0, 0]]])
def test_indices_outside_of_a_sparse_tensor(tmp_path, indices):
    assert error(tmp_path, sparse(indices)).code == "TM1031"


def test_a_sparse_tensor_that_no_memory_holds(tmp_path):
    assert error(tmp_path, sparse([1, 5], (1 << 20, 1 << 20))).code == "TM1033"


def test_a_sparse_constant(tmp_path):
    model = sparse([1, 5])
    value = model.graph.sparse_initializer[0]
    model.graph.node.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=value))
    del model.graph.sparse_initializer[:]
    np.testing.assert_array_equal(load(tmp_path, model)(np.zeros(1, np.float32)), [[0, 5, 0], [0, 0, 7]])
