"""ONNX files against the onnx package, its checker, ONNX Runtime, and loops."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest

import tmconvert
from tests.opsets import newest_runnable
from tmconvert.errors import InternalError, WriteError
from tmconvert.errors.source import Source
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.onnx.writer import check_onnx, ir_version, write_onnx

F32 = np.dtype(np.float32)

# the checker goes up to the onnx package's own newest
OPSETS = sorted({7, 8, 9, 13, 17, 20, newest_runnable()})


def constant(name: str, data: np.ndarray) -> Value:
    return Value(name, data.dtype, data.shape, data)


def tensor(name: str, *shape: int, dtype: Any = F32) -> Value:
    return Value(name, np.dtype(dtype), shape)


def graph_of(
    opset: int, inputs: list[Value], operators: list[Operator], outputs: list[Value], *names: str
) -> TargetGraph:
    return TargetGraph(
        target="onnx",
        version=opset,
        name="net",
        inputs=inputs,
        outputs=outputs,
        operators=operators,
        input_names=[value.name for value in inputs],
        output_names=list(names) or [value.name for value in outputs],
    )


def encode(graph: TargetGraph) -> bytes:
    file = io.BytesIO()
    write_onnx(graph, file)
    return file.getvalue()


def parse(graph: TargetGraph) -> onnx.ModelProto:
    model = onnx.load_model_from_string(encode(graph))
    onnx.checker.check_model(model, full_check=True)
    return model


def run(graph: TargetGraph, *arrays: np.ndarray) -> list[Any]:
    session = onnxruntime.InferenceSession(encode(graph), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return list(session.run(None, dict(zip(names, arrays, strict=True))))


def conv_net(opset: int) -> tuple[TargetGraph, np.ndarray, np.ndarray]:
    """Conv with a transposed weight and a reversed bias, then LeakyRelu and MatMul."""
    rng = np.random.default_rng(3)
    weight = rng.normal(size=(2, 4, 3, 5)).astype(np.float32).transpose(3, 2, 1, 0)  # [5, 3, 4, 2]
    bias = rng.normal(size=5).astype(np.float32)[::-1]
    right = rng.normal(size=(7, 9)).astype(np.float32).T[:, ::2]  # [9, 4]
    x, y, z, out = (
        tensor("x", 2, 3, 8, 11),
        tensor("y", 2, 5, 3, 9),
        tensor("z", 2, 5, 3, 9),
        tensor("out", 2, 5, 3, 4),
    )
    attributes: dict[str, Any] = {"strides": [3, 1], "pads": [1, 0, 1, 1], "dilations": [1, 3]}
    operators = [
        Operator("Conv", [x, constant("w", weight), constant("b", bias)], [y], attributes, "conv"),
        Operator("LeakyRelu", [y], [z], {"alpha": 0.25}, "leaky"),
        Operator("MatMul", [z, constant("right", right)], [out], {}, "matmul"),
    ]
    image = rng.normal(size=x.shape).astype(np.float32)
    padded = np.pad(image.astype(np.float64), [(0, 0), (0, 0), (1, 1), (0, 1)])
    expected = np.zeros((2, 5, 3, 9))
    for n, c, i, j in np.ndindex(expected.shape):
        window = padded[n, :, 3 * i : 3 * i + 4, j : j + 4 : 3]
        expected[n, c, i, j] = (window * weight[c]).sum() + bias[c]
    expected = np.where(expected > 0, expected, 0.25 * expected) @ right
    return graph_of(opset, [x], operators, [out]), image, expected


@pytest.mark.parametrize("opset", OPSETS)
def test_a_net_computes_what_loops_compute(opset: int) -> None:
    graph, image, expected = conv_net(opset)
    parse(graph)
    (got,) = run(graph, image)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_newest_opset_passes_the_checker(tmp_path: Path) -> None:
    newest = onnx.defs.onnx_opset_version()
    graph, _, _ = conv_net(newest)
    path = tmp_path / "net.onnx"
    path.write_bytes(encode(graph))
    check_onnx(path)
    assert onnx.load(path).opset_import[0].version == newest


@pytest.mark.parametrize(
    ("opset", "expected"),
    # ONNX's Versioning.md, "Released Versions", up to onnx 1.16
    [
        (7, 3),
        (8, 3),
        (9, 4),
        (10, 5),
        (11, 6),
        (12, 7),
        (13, 7),
        (14, 7),
        (15, 8),
        (18, 8),
        (19, 9),
        (21, 10),
    ],
)
def test_ir_version_is_that_of_the_opsets_release(opset: int, expected: int) -> None:
    assert ir_version(opset) == expected
    graph, _, _ = conv_net(opset)
    assert parse(graph).ir_version == expected


def test_only_old_ir_lists_weights_as_inputs() -> None:
    old, new = parse(conv_net(8)[0]), parse(conv_net(9)[0])
    assert [value.name for value in old.graph.input] == ["x", "w", "b", "right"]
    assert [value.name for value in new.graph.input] == ["x"]
    assert [tensor.name for tensor in new.graph.initializer] == ["w", "b", "right"]


def test_names_shapes_producer_and_metadata() -> None:
    graph, _, _ = conv_net(13)
    graph.metadata = {"source": "net.tm", "doc_string": "a net for é", "author": "someone"}
    model = parse(graph)
    assert (model.producer_name, model.producer_version) == ("tmconvert", tmconvert.__version__)
    assert model.doc_string == "a net for é"
    assert {entry.key: entry.value for entry in model.metadata_props} == {
        "source": "net.tm",
        "author": "someone",
    }
    assert model.graph.name == "net"
    assert [node.name for node in model.graph.node] == ["conv", "leaky", "matmul"]
    shapes = [
        [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in [*model.graph.input, *model.graph.output]
    ]
    assert shapes == [[2, 3, 8, 11], [2, 5, 3, 4]]


def test_bytes_are_those_that_protobuf_writes() -> None:
    """Field order and lengths: parsing and writing again changes nothing."""
    for opset in (7, 21):
        encoded = encode(conv_net(opset)[0])
        assert onnx.load_model_from_string(encoded).SerializeToString(deterministic=True) == encoded
        assert encode(conv_net(opset)[0]) == encoded


# Numbers of TensorProto.DataType in onnx.proto
DTYPES: dict[Any, int] = {
    "f4": 1, "u1": 2, "i1": 3, "u2": 4, "i2": 5, "i4": 6, "i8": 7, "?": 9, "f2": 10, "f8": 11, "u4": 12,
    "u8": 13, "c8": 14, "c16": 15, ml_dtypes.bfloat16: 16, ml_dtypes.float8_e4m3fn: 17,
    ml_dtypes.float8_e4m3fnuz: 18, ml_dtypes.float8_e5m2: 19, ml_dtypes.float8_e5m2fnuz: 20,
    ">f4": 1, ">i8": 7,
}  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "number"), [(np.dtype(dtype), number) for dtype, number in DTYPES.items()], ids=str
)
@pytest.mark.parametrize("layout", ["plain", "transposed", "broadcast", "scalar", "empty"])
def test_constants_of_every_dtype(dtype: np.dtype, number: int, layout: str) -> None:
    data = np.random.default_rng(5).uniform(0, 3, size=(2, 3, 5)).astype(dtype)
    data = {
        "plain": data,
        "transposed": data.transpose(2, 0, 1),
        "broadcast": np.broadcast_to(data[:, :1], (2, 7, 5)),
        "scalar": data[1, 2, 4:].reshape(()),
        "empty": data[:, :0],
    }[layout]
    x = tensor("x", 1)
    model = onnx.load_model_from_string(encode(graph_of(21, [x], [], [constant("c", data)], "out")))
    (initializer,) = model.graph.initializer
    assert tuple(initializer.dims) == data.shape
    assert initializer.data_type == number
    little = dtype.newbyteorder("<") if dtype.isbuiltin != 2 else dtype
    got = np.frombuffer(initializer.raw_data, little).reshape(data.shape)
    np.testing.assert_array_equal(got.astype(np.complex128), data.astype(np.complex128))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i4", "i8", "u1", "?"])
def test_constants_as_the_runtime_reads_them(dtype: str) -> None:
    data = np.random.default_rng(6).uniform(-3, 3, size=(3, 5, 2)).astype(dtype).T
    (got,) = run(graph_of(13, [], [], [constant("c", data)], "out"))
    np.testing.assert_array_equal(got, data)


def test_attributes_of_every_type_as_the_schema_wants_them() -> None:
    x = tensor("x", 2, 3, 5, 7)
    values = [tensor(f"v{i}", 2, 3, 5, 7) for i in range(4)]
    filler = tensor("filler", 3)
    strings = tensor("strings", 2, dtype=np.int64)
    operators = [
        Operator("LeakyRelu", [x], [values[0]], {"alpha": 1}, "int for a float"),
        Operator("Softmax", [x], [values[1]], {"axis": np.int64(2)}, "numpy int"),
        Operator("Resize", [x, None, None, constant("sizes", np.array([2, 3, 5, 7]))], [values[2]],
                 {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}, "strings"),
        Operator("Conv", [x, constant("w", np.ones((3, 1, 1, 1), "f4"))], [values[3]],
                 {"group": 3, "strides": (1, 1)}, "tuple"),
        Operator("ConstantOfShape", [constant("n", np.array([3]))], [filler],
                 {"value": np.array([2.5], ">f4")}, "tensor"),
        Operator("Constant", [], [strings], {"value_ints": [3, True]}, "constant"),
    ]  # fmt: skip
    graph = graph_of(13, [x], operators, [*values, filler, strings])
    nodes = {node.name: node for node in parse(graph).graph.node}
    assert nodes["int for a float"].attribute[0].f == 1.0
    assert nodes["numpy int"].attribute[0].i == 2
    assert nodes["strings"].attribute[0].s == b"linear"
    assert list(nodes["tuple"].attribute[1].ints) == [1, 1]
    np.testing.assert_array_equal(run(graph, np.ones(x.shape, "f4"))[4], np.full(3, 2.5, "f4"))


def test_left_out_inputs_are_empty_and_trailing_ones_dropped() -> None:
    x, y, z = tensor("x", 2, 3), tensor("y", 2, 3), tensor("z", 2, 3)
    limit = constant("limit", np.array(0.5, "f4"))
    operators = [
        Operator("Clip", [x, None, limit], [y], {}, "upper"),
        Operator("Clip", [y, constant("low", np.array(-0.5, "f4")), None], [z], {}, "lower"),
    ]
    graph = graph_of(13, [x], operators, [z])
    upper, lower = parse(graph).graph.node
    assert list(upper.input) == ["x", "", "limit"]
    assert list(lower.input) == ["y", "low"]
    (got,) = run(graph, np.array([[-2, -0.25, 0], [0.25, 0.75, 3]], "f4"))
    np.testing.assert_array_equal(got, np.array([[-0.5, -0.25, 0], [0.25, 0.5, 0.5]], "f4"))


@pytest.mark.parametrize("opset", OPSETS)
def test_outputs_that_no_node_computes_under_that_name(opset: int) -> None:
    x, y = tensor("x", 2, 3), tensor("y", 2, 3)
    c = constant("c", np.arange(5, dtype="f4")[::-1])
    negate = [Operator("Neg", [x], [y], {}, "negate")]
    graph = graph_of(opset, [x], negate, [y, x, x, c, c, y], "y", "x", "x copy", "c", "c copy", "y copy")
    parse(graph)
    image = np.arange(6, dtype="f4").reshape(2, 3)
    got = run(graph, image)
    for array, expected in zip(got, [-image, image, image, c.data, c.data, -image], strict=True):
        np.testing.assert_array_equal(array, expected)


def test_above_two_gibibytes_is_refused_before_anything_is_written() -> None:
    data = np.broadcast_to(np.float32(1), (2**15, 2**14))
    file = io.BytesIO()
    with pytest.raises(WriteError) as caught:
        write_onnx(graph_of(13, [], [], [constant("c", data)], "out"), file)
    assert str(caught.value) == (
        "error[TM5002]: the model takes 2.0 GiB, and an ONNX file can hold 2 GiB\n"
        "   = help: store the weights in a separate file: --external-data"
    )
    assert file.getvalue() == b""


@pytest.mark.parametrize(
    ("opset", "kind", "attributes", "message"),
    [
        (13, "Relu6", {}, "opset 13 has no operator Relu6"),
        (13, "HardSwish", {}, "opset 13 has no operator HardSwish"),
        (13, "Upsample", {}, "opset 13 has no operator Upsample any more"),
        (13, "Relu", {"alpha": 1.0}, "Relu of opset 13 has no attribute 'alpha'"),
        (13, "Softmax", {"axis": 1.0}, "attribute 'axis' of Softmax is INT, not 1.0"),
        (13, "Elu", {"alpha": "1"}, "attribute 'alpha' of Elu is FLOAT, not '1'"),
        (13, "Transpose", {"perm": [0, "1"]}, "attribute 'perm' of Transpose is INTS, not [0, '1']"),
        (13, "ConstantOfShape", {"value": [1]}, "attribute 'value' of ConstantOfShape is TENSOR, not [1]"),
    ],
)
def test_a_node_that_does_not_fit(opset: int, kind: str, attributes: dict[str, Any], message: str) -> None:
    x, y = tensor("x", 2, 3), tensor("y", 2, 3)
    operator = Operator(kind, [x], [y], attributes, "act", Source("net.py", 7, "head"))
    with pytest.raises(InternalError) as caught:
        encode(graph_of(opset, [x], [operator], [y]))
    assert str(caught.value) == f"error[TM9001]: node 'act': {message}\n  --> net.py:7, in head"
    assert caught.value.exit_status == 3


def test_graphs_that_do_not_fit() -> None:
    x, y = tensor("x", 2, 3), tensor("y", 2, 3)
    relu = [Operator("Relu", [x], [y], {}, "relu")]
    with pytest.raises(InternalError, match="the name 'x' is empty, or used by another value"):
        encode(graph_of(13, [x, tensor("x", 5)], relu, [y]))
    with pytest.raises(InternalError, match="the output name 'x' is another value's name"):
        encode(graph_of(13, [x], relu, [y], "x"))
    with pytest.raises(InternalError, match="the installed onnx does not know opset 999"):
        encode(graph_of(999, [x], relu, [y]))
    with pytest.raises(InternalError, match="not 'bvlc'"):
        encode(TargetGraph("onnx", "bvlc", "net"))
    wrong = Value("c", F32, (3, 2), np.zeros((2, 3), "f4"))
    with pytest.raises(InternalError, match=r"'c' is declared float32\[3, 2\], but is float32\[2, 3\]"):
        encode(graph_of(13, [x], relu, [y, wrong]))
    with pytest.raises(InternalError, match="ONNX has no data type for 'c': object"):
        encode(graph_of(13, [x], relu, [y, constant("c", np.array(["a"], dtype=object))]))


def test_the_checker_finds_what_the_writer_does_not(tmp_path: Path) -> None:
    x, y = tensor("x", 2, 3), tensor("y", 5, 7)
    path = tmp_path / "net.onnx"
    path.write_bytes(encode(graph_of(13, [x], [Operator("Relu", [x], [y], {}, "relu")], [y])))
    with pytest.raises(InternalError, match="the written ONNX model is not valid") as caught:
        check_onnx(path)
    assert caught.value.code == "TM9002"
