"""ONNX models load, run, and convert to all targets."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import tmconvert
from tests.frontends.onnx.models import in_onnx_runtime, network, of_nodes, saved
from tests.frontends.onnx.one_node import model_of
from tmconvert.errors import UnsupportedError, UsageError

X = np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    onnx.save(network(), str(tmp_path / "net.onnx"))
    return tmp_path / "net.onnx"


def test_a_model_computes_what_onnx_runtime_does(path):
    np.testing.assert_allclose(tmconvert.load(path)(X), in_onnx_runtime(path, X)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opset", [7, 9, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24])
def test_models_of_all_opsets_load(tmp_path, opset):
    onnx.save(network(opset), str(tmp_path / "net.onnx"))
    made = tmconvert.load(tmp_path / "net.onnx")(X)
    np.testing.assert_allclose(made, in_onnx_runtime(tmp_path / "net.onnx", X)[0], rtol=1e-5, atol=1e-6)


def test_a_model_converts_to_all_targets(path, tmp_path):
    assert tmconvert.to_onnx(path, tmp_path / "out.onnx", opset=13).verified
    assert tmconvert.to_tflite(path, tmp_path / "out.tflite").verified
    assert tmconvert.to_caffe(path, tmp_path / "out.prototxt", input_shapes={"x": (1, 3, 8, 8)}).verified


def test_the_open_batch_stays_open(path, tmp_path):
    report = tmconvert.to_onnx(path, tmp_path / "out.onnx")
    assert report.inputs[0]["shape"] == ["batch", 3, 8, 8]
    five = np.concatenate([X, X, X[:1]])
    (made,) = in_onnx_runtime(tmp_path / "out.onnx", five)
    np.testing.assert_allclose(made, in_onnx_runtime(path, five)[0], rtol=1e-5, atol=1e-6)


def test_names_of_the_file_are_those_of_the_graph(path):
    model = tmconvert.load(path)
    assert sorted(name for name, _ in model.named_parameters()) == [
        "conv.bias",
        "conv.weight",
        "fc.bias",
        "fc.weight",
    ]
    assert [node.name for node in model.graph.inputs] == ["self", "x"]
    assert [node.name for node in model.graph.outputs] == ["y"]


@pytest.mark.slow
def test_the_same_file_gives_the_same_bytes(path, tmp_path):
    digests = set()
    for name in ("a", "b"):
        tmconvert.to_onnx(path, tmp_path / f"{name}.onnx")
        digests.add(hashlib.sha256((tmp_path / f"{name}.onnx").read_bytes()).hexdigest())
    assert len(digests) == 1


def test_a_saved_model_converts_as_the_file_does(path, tmp_path):
    tmconvert.load(path).save(tmp_path / "net.tm")
    again = tmconvert.load(tmp_path / "net.tm")
    np.testing.assert_array_equal(again(X), tmconvert.load(path)(X))
    assert tmconvert.to_onnx(again, tmp_path / "again.onnx").verified


def test_the_reference_is_onnx_runtime_on_the_file(path, tmp_path, monkeypatch):
    """An adapter that were wrong is found."""
    from tmconvert.frontends.onnx.adapters.standard.elementwise import OPERATORS

    monkeypatch.setitem(OPERATORS["onnx.Relu"], 1, lambda g, X: g.call("aten::abs", X))
    with pytest.raises(tmconvert.errors.VerificationError, match="TM4001"):
        tmconvert.to_onnx(path, tmp_path / "out.onnx")


def test_an_edited_model_is_compared_with_itself(path, tmp_path):
    model = tmconvert.load(path)
    model.graph.get_node_by_name("r").as_unique().expr.function = "onnx.Abs"
    model.graph.compile()
    assert tmconvert.to_onnx(model, tmp_path / "out.onnx").verified


def test_an_error_names_the_node(tmp_path):
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], "/layer1/words", mode="TF")
    onnx.save(of_nodes([node], {"x": [2]}, ["y"]), str(tmp_path / "net.onnx"))
    with pytest.raises(UnsupportedError) as caught:
        tmconvert.to_onnx(tmp_path / "net.onnx", tmp_path / "out.onnx")
    assert "no target has tensors of strings" in str(caught.value)
    assert "net.onnx: node /layer1/words (TfIdfVectorizer)" in str(caught.value)


def test_functions_of_the_model_are_inlined(tmp_path):
    path = saved(
        tmp_path / "net.onnx",
        """<ir_version: 10, opset_import: ["": 17, "own": 1]>
        net (float[2, 3] x) => (float[2, 3] y) { y = own.twice <by: float = 2.0> (x) }
        <opset_import: ["": 17], domain: "own">
        twice <by> (a) => (c) {
            factor = Constant <value_float: float = @by> ()
            b = Mul (a, factor)
            c = Relu (b)
        }""",
    )
    x = X[0, 0, :2, :3]
    np.testing.assert_array_equal(tmconvert.load(path)(x), np.maximum(2 * x, 0))
    assert tmconvert.to_tflite(path, tmp_path / "out.tflite").verified


def test_shapes_are_followed_through_shape_arithmetic(tmp_path):
    path = saved(
        tmp_path / "net.onnx",
        """<ir_version: 10, opset_import: ["": 17]>
        net (float[n, 6] x) => (float[m, 3] y)
        <int64[1] zero = {0}, int64[1] two = {2}, int64[1] last = {3}> {
            shape = Shape (x)
            rows = Gather (shape, zero)
            more = Mul (rows, two)
            wanted = Concat <axis = 0> (more, last)
            y = Reshape (x, wanted)
        }""",
    )
    report = tmconvert.to_onnx(path, tmp_path / "out.onnx")
    assert not report.notes
    assert [node.op_type for node in onnx.load(str(tmp_path / "out.onnx")).graph.node] == ["Reshape"]


def test_results_that_nobody_uses_are_not_computed(tmp_path):
    path = saved(
        tmp_path / "net.onnx",
        """<ir_version: 10, opset_import: ["": 17]>
        net (float[1, 2, 4, 4] x) => (float[1, 2, 2, 2] y) {
            y, places = MaxPool <kernel_shape = [2, 2], strides = [2, 2], storage_order = 1> (x)
        }""",
    )
    assert tmconvert.to_tflite(path, tmp_path / "out.tflite").verified


@pytest.mark.parametrize(("start", "end"), [(0, 10), (-3, 100), (2, -1)])
def test_a_slice_with_bounds_from_the_data(tmp_path, start, end):
    path = saved(
        tmp_path / "net.onnx",
        """<ir_version: 10, opset_import: ["": 17]>
        net (float[10, 2] x, int64[1] start, int64[1] end) => (float[n, 2] y) <int64[1] axes = {0}> {
            y = Slice (x, start, end, axes)
        }""",
    )
    inputs = np.arange(20, dtype=np.float32).reshape(10, 2), np.array([start]), np.array([end])
    tmconvert.to_onnx(path, tmp_path / "out.onnx", verify=False)
    np.testing.assert_array_equal(in_onnx_runtime(tmp_path / "out.onnx", *inputs)[0], inputs[0][start:end])


@pytest.mark.parametrize(("type_", "wanted"), [(17, [1.125, 448, -2]), (22, [1, -8, -2])])
def test_casts_to_narrow_types(tmp_path, type_, wanted):
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=type_),
        helper.make_node("Cast", ["a"], ["y"], to=1),
    ]
    onnx.save(of_nodes(nodes, {"x": [3]}, ["y"], opset=23), str(tmp_path / "net.onnx"))
    x = np.array([1.1, 1000, -2], np.float32)
    np.testing.assert_array_equal(tmconvert.load(tmp_path / "net.onnx")(x), wanted)


def test_slices_to_the_ends_of_an_axis_keep_its_size_open(tmp_path):
    path = saved(
        tmp_path / "net.onnx",
        """<ir_version: 10, opset_import: ["": 17]>
        net (float[n, 2] x) => (float[a, 2] last, float[b, 2] reversed, float[c, 2] but_last) <
            int64[1] four = {-4}, int64[1] one = {-1}, int64[1] axis = {0},
            int64[1] most = {9223372036854775807}, int64[1] least = {-9223372036854775807}
        > {
            last = Slice (x, four, most, axis)
            reversed = Slice (x, one, least, axis, one)
            but_last = Slice (x, least, one, axis)
        }""",
    )
    report = tmconvert.to_tflite(path, tmp_path / "out.tflite")
    assert [each["shape"] for each in report.inputs] == [["n", 2]] and report.verified


@pytest.mark.parametrize("name", ["n*m", "n-9", "q", "n//2"])
def test_sizes_of_any_name_stay_open(tmp_path, name):
    """What looks like a product of sizes is a name, where these sizes do not follow from the inputs."""
    onnx.save(
        of_nodes([helper.make_node("Relu", ["x"], ["y"])], {"x": [name, 4]}, ["y"]), tmp_path / "net.onnx"
    )
    report = tmconvert.to_onnx(tmp_path / "net.onnx", tmp_path / "out.onnx")
    assert isinstance(report.inputs[0]["shape"][0], str) and report.verified


def test_caffe_says_how_sizes_are_made_static(path, tmp_path):
    with pytest.raises(UsageError, match=r"--input-shape x=2,3,8,8"):
        tmconvert.to_caffe(path, tmp_path / "out.prototxt")


# ---- wide unsigned integers, and functions that depend on types


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Less", "Max", "BitwiseXor"])
def test_wide_unsigned_integers_wrap_and_compare(tmp_path, op, dtype):
    """NumPy is the reference: ONNX Runtime has few of these kernels; the written file runs there."""
    top = np.iinfo(dtype).max
    a, b = np.array([0, 1, top, top - 1, 7], dtype), np.array([top, 2, top, 3, 7], dtype)
    path = tmp_path / "one.onnx"
    onnx.save(model_of(op, [a, b], opset=18), str(path))
    of = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Less": np.less, "Max": np.maximum}
    with np.errstate(over="ignore"):
        wanted = of.get(op, np.bitwise_xor)(a, b)
    np.testing.assert_array_equal(tmconvert.load(path)(a, b), wanted)
    tmconvert.to_onnx(path, tmp_path / "out.onnx", opset=18, verify=False)
    np.testing.assert_array_equal(in_onnx_runtime(tmp_path / "out.onnx", a, b)[0], wanted)


@pytest.mark.parametrize("name", ["x:0", "x/y", "x.0"])
def test_an_input_with_an_open_size_keeps_its_name(tmp_path, name):
    model = of_nodes([helper.make_node("Relu", [name], ["y"])], {name: ["batch", 3]}, ["y"])
    onnx.save(model, str(tmp_path / "net.onnx"))
    tmconvert.to_onnx(tmp_path / "net.onnx", tmp_path / "out.onnx", verify=False)
    (given,) = onnx.load(str(tmp_path / "out.onnx")).graph.input
    assert given.type.tensor_type.shape.dim[0].dim_param == "batch"


@pytest.mark.parametrize("size", ["?", -1])
def test_sizes_without_a_name_are_different_ones(tmp_path, size):
    model = of_nodes([helper.make_node("Relu", ["x"], ["y"])], {"x": [size, 3, size]}, ["y"])
    onnx.save(model, str(tmp_path / "net.onnx"))
    sizes = tmconvert.load(tmp_path / "net.onnx").dynamic_shapes["x"]
    assert set(sizes) == {0, 2} and sizes[0] != sizes[2]


def test_an_end_that_no_axis_has_keeps_its_size_open(tmp_path):
    weights = {"a": np.array([0]), "b": np.array([10**9]), "axis": np.array([0])}
    nodes = [helper.make_node("Slice", ["x", "a", "b", "axis"], ["y"])]
    onnx.save(of_nodes(nodes, {"x": ["n", 3]}, ["y"], weights), str(tmp_path / "net.onnx"))
    report = tmconvert.to_onnx(tmp_path / "net.onnx", tmp_path / "out.onnx", verify=False)
    assert report.inputs[0]["shape"] == ["n", 3] and not report.ranges
