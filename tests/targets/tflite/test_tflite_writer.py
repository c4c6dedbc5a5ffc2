"""The layout of TFLite files: read back through LiteRT's generated schema, and run."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

import tmconvert
from tmconvert.errors import InternalError, WriteError
from tmconvert.formats.tflite import flatbuffer_writer as tflite_skeleton
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.tflite import writer as tflite_writer
from tmconvert.targets.tflite.runtime import LiteRtRuntime
from tmconvert.targets.tflite.writer import write_tflite

F32 = np.dtype(np.float32)


def tensor(name: str, *shape: int, dtype: Any = F32) -> Value:
    return Value(name, np.dtype(dtype), shape)


def constant(name: str, data: np.ndarray) -> Value:
    return Value(name, data.dtype, data.shape, data)


def graph_of(inputs: list[Value], operators: list[Operator], outputs: list[Value]) -> TargetGraph:
    return TargetGraph(
        target="tflite",
        version=20,
        name="net",
        inputs=inputs,
        outputs=outputs,
        operators=operators,
        input_names=[f"the_{value.name}" for value in inputs],
        output_names=[f"result_{index}" for index in range(len(outputs))],
        metadata={"TMCONVERT": "digest=1", "author": "Ä"},
    )


def two_layers() -> TargetGraph:
    """FULLY_CONNECTED by a transposed weight, then ADD; no length of a constant is a multiple of 16."""
    rng = np.random.default_rng(1)
    weight = constant("w", rng.normal(size=(7, 5)).astype(np.float32).T)
    bias = constant("b", rng.normal(size=5).astype(np.float32))
    shift = constant("s", rng.normal(size=(3, 1)).astype(np.float32))
    x, y, z = tensor("x", 3, 7), tensor("y", 3, 5), tensor("z", 3, 5)
    operators = [
        Operator("FULLY_CONNECTED", [x, weight, bias], [y], {}, "fc"),
        Operator("ADD", [y, shift], [z], {}, "add"),
    ]
    return graph_of([x], operators, [z])


def encode(graph: TargetGraph) -> bytes:
    file = io.BytesIO()
    write_tflite(graph, file)
    return file.getvalue()


def parse(graph: TargetGraph) -> Any:
    return schema.ModelT.InitFromPackedBuf(encode(graph))


def run(graph: TargetGraph, *arrays: np.ndarray) -> list[np.ndarray]:
    runner = Interpreter(model_content=encode(graph), num_threads=1).get_signature_runner("serving_default")
    results = runner(**dict(zip(graph.input_names, arrays, strict=True)))
    return [np.asarray(results[name]) for name in graph.output_names]


def contents(model: Any, index: int) -> bytes:
    return bytes(model.buffers[index].data)


def test_a_net_runs_under_the_users_names() -> None:
    graph = two_layers()
    x = np.random.default_rng(2).normal(size=(3, 7)).astype(np.float32)
    weight, bias, shift = (value.data for value in graph.constants())
    assert weight is not None
    assert bias is not None
    (got,) = run(graph, x)
    np.testing.assert_allclose(got, x @ weight.T + bias + shift, rtol=1e-5, atol=1e-5)


def test_header() -> None:
    data = encode(two_layers())
    assert data[4:8] == b"TFL3"
    model = schema.ModelT.InitFromPackedBuf(data)
    assert model.version == 3
    assert model.description == f"tmconvert {tmconvert.__version__}".encode()
    assert len(model.subgraphs) == 1
    assert model.subgraphs[0].name == b"net"
    assert [code.version for code in model.operatorCodes] == [1, 1]


def test_tensors_are_in_the_order_of_first_use() -> None:
    graph = two_layers()
    model = parse(graph)
    tensors = model.subgraphs[0].tensors
    assert [tensor.name for tensor in tensors] == [b"x", b"w", b"b", b"y", b"s", b"z"]
    assert [list(tensor.shape) for tensor in tensors] == [[3, 7], [5, 7], [5], [3, 5], [3, 1], [3, 5]]
    assert [tensor.buffer for tensor in tensors] == [0, 1, 2, 0, 3, 0]
    assert all(tensor.hasRank for tensor in tensors)
    for value, index in zip(graph.constants(), [1, 2, 3], strict=True):
        assert value.data is not None
        assert contents(model, index) == value.data.tobytes()


def test_buffers_are_aligned_and_the_first_is_empty() -> None:
    sizes = [1, 15, 16, 17, 100]
    constants = [constant(f"c{size}", np.arange(size, dtype=np.uint8)) for size in sizes]
    data = encode(graph_of([], [], constants))
    root = schema.Model.GetRootAs(data)
    assert root.Buffers(0).DataIsNone()
    for index, value in enumerate(constants, start=1):
        buffer = root.Buffers(index)
        start = buffer._tab.Vector(buffer._tab.Offset(4))
        assert start % 16 == 0
        assert value.data is not None
        assert data[start : start + buffer.DataLength()] == value.data.tobytes()


def test_signature() -> None:
    x, y = tensor("x", 2, 3), tensor("y", 3)
    z = tensor("z", 2, 3)
    graph = graph_of([y, x], [Operator("MUL", [x, y], [z], {}, "mul")], [z, y])
    (signature,) = parse(graph).signatureDefs
    assert signature.signatureKey == b"serving_default"
    assert [(entry.name, entry.tensorIndex) for entry in signature.inputs] == [(b"the_y", 0), (b"the_x", 1)]
    assert [(entry.name, entry.tensorIndex) for entry in signature.outputs] == [
        (b"result_0", 2),
        (b"result_1", 0),
    ]


def test_metadata() -> None:
    model = parse(two_layers())
    entries = {entry.name: contents(model, entry.buffer) for entry in model.metadata}
    runtime = b"1.5.0".ljust(16, b"\0")
    assert entries == {
        b"TMCONVERT": b"digest=1",
        b"author": "Ä".encode(),
        b"min_runtime_version": runtime,
    }


def test_equal_constants_share_a_buffer() -> None:
    zeros = [constant(f"z{n}", np.zeros(3, dtype)) for n, dtype in enumerate(["f4", "f4", "i4", "f8"])]
    large = np.arange(40_000, dtype=np.float32).reshape(200, 200)
    views = [constant(f"v{n}", view) for n, view in enumerate([large, large[:], large.T, large.copy()])]
    tensors = parse(graph_of([], [], [*zeros, *views, zeros[0]])).subgraphs[0].tensors
    assert [tensor.buffer for tensor in tensors] == [1, 1, 1, 2, 3, 3, 4, 5]


def test_outputs_that_are_inputs_or_constants() -> None:
    x, y = tensor("x", 2, 3), tensor("y", 2, 3)
    table = constant("table", np.arange(15, dtype=np.float32).reshape(5, 3).T)
    data = np.random.default_rng(3).normal(size=(2, 3)).astype(np.float32)
    relu = Operator("RELU", [x], [y], {}, "relu")
    got = run(graph_of([x], [relu], [x, y, table, y]), data)
    wanted = [data, np.maximum(data, 0), table.data, np.maximum(data, 0)]
    for one, expected in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(one, expected)
    (got_alone,) = run(graph_of([x], [], [x]), data)
    np.testing.assert_array_equal(got_alone, data)


def test_an_unused_input_and_a_scalar() -> None:
    x, unused, y = tensor("x"), tensor("unused", 5), tensor("y")
    graph = graph_of([x, unused], [Operator("NEG", [x], [y], {}, "neg")], [y])
    (got,) = run(graph, np.array(2.5, np.float32), np.zeros(5, np.float32))
    assert got.shape == ()
    assert got == -2.5


def test_graphs_inside_are_subgraphs() -> None:
    """Each has tensors of its own; a constant of several is one buffer, an operator of several one code."""
    factor, pred = constant("f", np.array([3], np.float32)), tensor("p", dtype=np.bool_)

    def branch(name: str, type: str) -> TargetGraph:
        x, y = tensor("x", 2), tensor("y", 2)
        operator = Operator(type, [x, factor], [y], {}, name)
        return TargetGraph("tflite", 20, name, [x], [y], [operator])

    x, y, z = tensor("x", 2), tensor("y", 2), tensor("z", 2)
    branches = {
        "then_subgraph_index": branch("times", "MUL"),
        "else_subgraph_index": branch("plus", "ADD"),
    }
    operators = [
        Operator("ADD", [x, factor], [y], {}, "before"),
        Operator("IF", [pred, y], [z], {**branches}, "choice"),
    ]
    graph = graph_of([pred, x], operators, [z])
    model = parse(graph)
    assert [subgraph.name for subgraph in model.subgraphs] == [b"net", b"times", b"plus"]
    assert len(model.operatorCodes) == 3
    shared = {subgraph.tensors[subgraph.operators[0].inputs[1]].buffer for subgraph in model.subgraphs}
    assert len(shared) == 1 and 0 not in shared
    for taken, expected in ((True, [12, 15]), (False, [7, 8])):
        (result,) = run(graph, np.array(taken), np.array([1, 2], np.float32))
        assert result.tolist() == expected


def test_float16_weights() -> None:
    weight = np.random.default_rng(4).normal(size=(7, 5)).astype(np.float16).T
    x, wide, y = tensor("x", 3, 7), tensor("wide", 5, 7), tensor("y", 3, 5)
    operators = [
        Operator("DEQUANTIZE", [constant("w", weight)], [wide], {}, "widen"),
        Operator("FULLY_CONNECTED", [x, wide, None], [y], {}, "fc"),
    ]
    data = np.random.default_rng(5).normal(size=(3, 7)).astype(np.float32)
    (got,) = run(graph_of([x], operators, [y]), data)
    np.testing.assert_allclose(got, data @ weight.T.astype(np.float32), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "dtype",
    [
        "f2",
        "f4",
        "f8",
        "i1",
        "i2",
        "i4",
        "i8",
        "u1",
        "u2",
        "u4",
        "u8",
        "?",
        "c8",
        "c16",
        ">f4",
        ">i8",
        "bfloat16",
    ],
)
def test_types_and_byte_orders(dtype: str) -> None:
    data = np.arange(15).reshape(3, 5).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    model = parse(graph_of([], [], [constant("c", data)]))
    (only,) = model.subgraphs[0].tensors
    assert contents(model, only.buffer) == data.astype(data.dtype.newbyteorder("<")).tobytes()
    if dtype == "bfloat16":
        assert only.type == schema.TensorType.BFLOAT16
        return
    (got,) = run(graph_of([], [], [constant("c", data)]))
    np.testing.assert_array_equal(got, data)
    assert got.dtype == data.dtype.newbyteorder("=")


def test_an_empty_constant() -> None:
    x, y = tensor("x", 1), tensor("y")
    shape = constant("shape", np.zeros(0, np.int32))
    graph = graph_of([x], [Operator("RESHAPE", [x, shape], [y], {"new_shape": []}, "to_scalar")], [y])
    (got,) = run(graph, np.array([7], np.float32))
    assert got.shape == ()
    assert got == 7


class WriteOnly:
    """A file that can do nothing but write, and remembers how."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: Any) -> int:
        self.data += data
        return len(data)


def test_the_file_needs_only_write() -> None:
    file: Any = WriteOnly()
    write_tflite(two_layers(), file)
    assert bytes(file.data) == encode(two_layers())


def test_one_tensor_at_a_time_is_made_contiguous(tmp_path: Path) -> None:
    base = np.ones((8, 500, 1000), np.float32)
    graph = graph_of([], [], [constant(f"w{index}", part.T) for index, part in enumerate(base)])
    with (tmp_path / "large.tflite").open("wb") as file:
        tracemalloc.start()
        write_tflite(graph, file)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 1.25 * base[0].nbytes


def wide_layers() -> TargetGraph:
    """A transposed weight and one as it lies in memory, both too large for a lowered limit."""
    rng = np.random.default_rng(3)
    first = constant("first", rng.normal(size=(70, 50)).astype(np.float32).T)
    second = constant("second", rng.normal(size=(33, 50)).astype(np.float32))
    shift = constant("shift", rng.normal(size=33).astype(np.float32))
    x, y, z = tensor("x", 3, 70), tensor("y", 3, 50), tensor("z", 3, 33)
    operators = [
        Operator("FULLY_CONNECTED", [x, first, None], [y], {}, "first"),
        Operator("FULLY_CONNECTED", [y, second, shift], [z], {}, "second"),
    ]
    return graph_of([x], operators, [z])


def test_weights_behind_the_flatbuffer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As above 2 GiB: runs the same from memory and from a file, with delegates and without."""
    graph, path = wide_layers(), tmp_path / "far.tflite"
    x = np.random.default_rng(4).normal(size=(3, 70)).astype(np.float32)
    (near,) = run(graph, x)
    monkeypatch.setattr(tflite_writer, "_MOST_WITHIN", 1 << 12)
    data = encode(graph)
    path.write_bytes(data)
    buffers = schema.ModelT.InitFromPackedBuf(data).buffers
    far = [buffer for buffer in buffers if buffer.offset]
    weights = [value.data for value in graph.constants() if value.data is not None and value.data.size > 100]
    assert [data[each.offset : each.offset + each.size] for each in far] == [w.tobytes() for w in weights]
    assert all(each.offset % 16 == 0 and each.data is None for each in far)
    assert len([buffer for buffer in buffers if buffer.data is not None]) == 4  # the shift and metadata
    np.testing.assert_array_equal(run(graph, x)[0], near)
    for delegates in (True, False):
        (got,) = LiteRtRuntime(delegates=delegates).run([path], {"the_x": x}, ["result_0"])
        np.testing.assert_allclose(got, near, atol=1e-6 * np.abs(near).max())


def test_a_flatbuffer_above_two_gib_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tflite_skeleton, "_SIZE_LIMIT", 10_000)
    file: Any = WriteOnly()
    with pytest.raises(WriteError) as caught:
        write_tflite(wide_layers(), file)
    assert caught.value.code == "TM5002"
    assert "the flatbuffer would be 0.0 GiB, but the limit is 2 GiB" in str(caught.value)
    assert not file.data
    monkeypatch.setattr(tflite_writer, "_MOST_WITHIN", 1 << 12)
    write_tflite(wide_layers(), file)
    assert len(file.data) > 10_000


def test_refusals() -> None:
    x, y, z = tensor("x", 2), tensor("y", 2), tensor("z", 2)
    wrong_shape = Value("w", F32, (3,), np.zeros(2, np.float32))
    wrong_type = Value("w", F32, (2,), np.zeros(2, np.int32))
    text = tensor("text", 2, dtype="S4")
    early = [Operator("NEG", [y], [z], {}, "early"), Operator("NEG", [x], [y], {}, "late")]
    cases = [
        (graph_of([x], early, [z]), "operator 'early': its input 'y' is not computed before it"),
        (graph_of([x], [], [y]), "nothing computes the output 'y'"),
        (graph_of([text], [], []), "TFLite has no type for the tensor 'text': |S4"),
        (graph_of([], [], [wrong_shape]), "constant 'w' is declared float32[3], but is float32[2]"),
        (graph_of([], [], [wrong_type]), "constant 'w' is declared float32[2], but is int32[2]"),
    ]
    for graph, message in cases:
        with pytest.raises(InternalError) as caught:
            encode(graph)
        assert caught.value.code == "TM9001"
        assert message in str(caught.value)


def test_the_runtime_checks_what_it_reads() -> None:
    """A hole patched wrongly would not go unseen by the tests above."""
    data = encode(two_layers())
    Interpreter(model_content=data)
    with pytest.raises(ValueError):
        Interpreter(model_content=data[:-1])


SCRIPT = """
import hashlib, io
import numpy as np
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.tflite.writer import write_tflite

F32 = np.dtype("f4")
x, y = Value("x", F32, (2, 5, 7, 3)), Value("y", F32, (2, 5, 7, 4))
weight = Value("w", F32, (4, 1, 1, 3), np.arange(12, dtype="f4").reshape(3, 1, 1, 4).T)
bias = Value("b", F32, (4,), np.zeros(4, "f4"))
attributes = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "fused_activation_function": "RELU"}
conv = Operator("CONV_2D", [x, weight, bias], [y], attributes, "conv")
metadata = {name: name for name in ("author", "source", "licence")}
file = io.BytesIO()
write_tflite(TargetGraph("tflite", 20, "net", [x], [y, x], [conv], ["x"], ["y", "c"], metadata), file)
print(len(file.getvalue()), hashlib.sha256(file.getvalue()).hexdigest())
"""


@pytest.mark.slow
def test_same_graph_same_bytes() -> None:
    assert encode(two_layers()) == encode(two_layers())
    printed = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    ]
    assert printed[0].strip()
    assert len(set(printed)) == 1


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "i1", ">i8", "?"])
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (3, 0, 2), (2, 3, 5, 7), (700, 7, 3, 33)])
def test_constants_in_another_order_are_copied_by_rows(shape: tuple[int, ...], dtype: str) -> None:
    data = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    moved = data.transpose(0, *reversed(range(1, data.ndim))) if data.ndim else data
    merged = (len(moved), moved[0].size) if moved.ndim > 2 and moved.size else moved.shape
    rows = Value("rows", data.dtype, merged, moved)
    model = parse(graph_of([], [], [rows]))
    assert contents(model, 1) == moved.astype(moved.dtype.newbyteorder("<")).tobytes()


def test_a_constant_in_fewer_axes_is_refused() -> None:
    rows = Value("rows", np.dtype(np.float32), (2, 3, 1), np.zeros((2, 3), np.float32))
    with pytest.raises(InternalError, match=r"declared float32\[2, 3, 1\], but is float32\[2, 3\]"):
        encode(graph_of([], [], [rows]))
