"""What a container can hold, and what not."""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tmconvert
import tmconvert.container  # registers the formats of TracedModule.save
from tests.container.same import assert_same
from tmconvert.errors import WriteError
from tmconvert.errors.source import Source
from tmconvert.formats.tm import archive as reading
from tmconvert.formats.tm import stored_zip
from tmconvert.frontends.megengine.vocabulary import VOCABULARY
from tmconvert.ir import (
    CallFunction,
    CallMethod,
    Constant,
    GetAttr,
    InternalGraph,
    ModuleNode,
    QParams,
    TensorNode,
    TracedModule,
)
from tmconvert.ir.inert import GlobalRef, Instance, Opaque
from tmconvert.ir.ownership import assign_owners
from tmconvert.ir.traced_module import Example
from tmconvert.output.metadata import metadata

F32 = np.dtype("float32")
QUANTIZED = {"name": "QuantizedS8", "scale": 0.0125, "zero_point": None}
S8 = np.dtype("int8", metadata={"mgb_dtype": QUANTIZED})  # type: ignore[call-overload]


def model(name: str = "Net") -> TracedModule:
    """A module that returns its input."""
    made = TracedModule(name, f"user.{name}", vocabulary=VOCABULARY)
    graph = made.graphs["((M,T,),{})"] = InternalGraph(name)
    graph.add_input(ModuleNode("self", made.class_name))
    graph.set_result(graph.add_input(TensorNode("x", (1, 2), F32)))
    assign_owners(graph, made)
    return made


def leaf(name: str) -> TracedModule:
    return TracedModule(name, "megengine.module.activation.ReLU", vocabulary=VOCABULARY)


def again(made: TracedModule, folder: Path) -> TracedModule:
    """The model after a round trip, compared."""
    path = folder / "saved.tm"
    made.save(path)
    read = tmconvert.load(path)
    assert_same(made, read)
    return read


ODD: list[Any] = [
    *(None, True, False, 0, -1, 2**63 - 1, 2**63, -(2**63), -(2**70), 10**300),
    *(0.1, -0.0, 1e-300, 5e-324, math.inf, -math.inf, math.nan, 1.0, 1e22),
    *("", "text", "\u4e16\u754c \U0001f600", "\n\t\x00\x1b", '"\\'),
    *((), (1,), ((1, [2]), {}), [], [1, (2,)], {}, {"a": 1}, {1: 2, None: 3, "b": (), 2.5: [], False: 0}),
    *(slice(None), slice(1, None, -2), Ellipsis, (Ellipsis, None, slice(0, 2))),
    *(complex(1, -2), complex(math.inf, 0), b"", b"bytes\xff"),
    *({1, 2, 3}, frozenset({"a", "b"}), set(), {("a", 1), ("b", 2)}),
    *(F32, np.dtype(bool), np.dtype(ml_dtypes.bfloat16), S8),
    *(
        np.float32(0.1),
        np.float64(math.nan),
        np.int8(-3),
        np.bool_(True),
        np.complex64(1 + 2j),
        np.float16(6e-8),
    ),
    *(GlobalRef("user.net", "Block.Inner"), {GlobalRef("a", "b"): 1}),
    *(Opaque(GlobalRef("nets", "Mode"), ("scale", 1.5)), [Opaque(GlobalRef("nets", "Config"), (), 3)]),
    Instance(GlobalRef("megengine.quantization.utils", "QuantMode"), {"value": 1, "deep": [{"x": (None,)}]}),
]


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_values(value: Any, tmp_path: Path) -> None:
    made = model()
    made.attributes["odd"] = value
    found = again(made, tmp_path).attributes["odd"]
    assert isinstance(value, Instance) or repr(found) == repr(value)


@pytest.mark.parametrize(
    "dtype",
    [
        *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128", ml_dtypes.bfloat16, S8),
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0, 4), (2, 0)], ids=str)
def test_tensors(dtype: Any, shape: tuple[int, ...], tmp_path: Path) -> None:
    made = model()
    numbers = np.random.default_rng(0).integers(0, 2, shape)
    made.tensors["first"] = np.zeros(3, np.uint8)
    made.tensors["weight"] = np.asarray(numbers, dtype)
    made.attributes["list"] = [np.asarray(numbers, dtype), made.tensors["weight"]]
    read = again(made, tmp_path)
    assert read.attributes["list"][1] is read.tensors["weight"]
    assert not read.tensors["weight"].flags.writeable


def test_tensors_in_any_order_of_memory(tmp_path: Path) -> None:
    made = model()
    whole = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    made.tensors |= {
        "fortran": np.asfortranarray(whole),
        "part": whole[:, ::2, 1:],
        "swapped": whole.astype(">f4"),
        "broadcast": np.broadcast_to(whole[0, 0], (5, 4)),
    }
    made.save(tmp_path / "saved.tm")
    read = tmconvert.load(tmp_path / "saved.tm")
    for name, array in made.tensors.items():
        np.testing.assert_array_equal(read.tensors[name], array)
        assert read.tensors[name].dtype == F32


def test_what_is_shared_stays_shared(tmp_path: Path) -> None:
    made, child, weight = model(), leaf("child"), np.ones((4, 4), np.float32)
    made.children |= {"a": child, "b": child}
    made.tensors |= {"u": weight, "v": weight}
    child.tensors["w"] = weight
    child.attributes["cells"] = [[leaf("child.cells.0.0")], {"again": weight}]
    read = again(made, tmp_path)
    assert read.children["a"] is read.children["b"]
    assert read.tensors["u"] is read.tensors["v"] is read.children["a"].tensors["w"]
    with zipfile.ZipFile(tmp_path / "saved.tm") as file:
        assert file.getinfo("weights.safetensors").file_size < 300


def test_graphs_of_every_kind_of_expression(tmp_path: Path) -> None:
    made, child = model(), leaf("act")
    made.children["act"] = child
    made.tensors["w"] = np.ones((1, 2), np.float32)
    graph = InternalGraph("Net")
    self_node = graph.add_input(ModuleNode("self", made.class_name), id=1)
    x = graph.add_input(TensorNode("x", None, None, id=3), "other", id=2)
    act, held = ModuleNode("act", child.class_name), ModuleNode("held", "user.Held")
    graph.insert(GetAttr(self_node, "act", result=act, id=4, source=Source("net.py", 7, "a.b", "Block")))
    graph.insert(Constant(leaf("held"), None, result=held, id=5, made_by="a_pass"))
    w = graph.insert(GetAttr(self_node, "w", result=TensorNode("w", (1, 2), S8), id=6)).outputs[0]
    q = QParams("int8_narrow", (0.5, 0.25), (0, -3), -127, 127, 1)
    y = TensorNode("y", (1, 2), F32, qparams=q, layout="nhwc")
    graph.insert(
        CallMethod("__call__", (act, x, {"k": [w, (1, slice(x, None))]}), {"b": 1, "a": w}, result=y)
    )
    parts = {"one": TensorNode("one", (), F32), "two": [TensorNode("two", (0,), F32)]}
    graph.insert(CallFunction("user.f", (y,), {"mode": "x"}, label="user.f", result=parts, id=-9))
    constant = graph.insert(Constant(np.float32([1]), "c", result=TensorNode("c", (1,), F32)))
    graph.set_result({"out": (parts["one"], parts["two"]), "c": constant.outputs[0], "none": None})
    made.graphs["another"] = graph
    assign_owners(graph, made)
    assert list(again(made, tmp_path).graphs) == ["((M,T,),{})", "another"]


def test_a_trace_is_known_by_the_digest_of_its_tensors(tmp_path: Path) -> None:
    model().save(tmp_path / "model.tm")
    with zipfile.ZipFile(tmp_path / "model.tm") as archive:
        digest = hashlib.sha256(archive.read("weights.safetensors")).hexdigest()
    read = tmconvert.load(tmp_path / "model.tm")
    assert read.source_sha256 == digest
    assert metadata(read, None, {})["tmconvert.source_sha256"] == digest


def test_examples_and_sources(tmp_path: Path) -> None:
    made = model()
    made.producer, made.source_sha256 = "PyTorch 9", "ab" * 32
    inputs, outputs = (np.ones((1, 2), np.float32), np.array(True)), (np.zeros(0, ml_dtypes.bfloat16),)
    made.example = Example(inputs, outputs)
    read = again(made, tmp_path)
    assert (read.producer, read.source_sha256) == ("PyTorch 9", "ab" * 32)
    assert read.example is not None
    for found, wanted in zip((*read.example.inputs, *read.example.outputs), (*inputs, *outputs), strict=True):
        assert (found.dtype, found.shape, found.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())
    made.save(tmp_path / "other.tm")
    assert (tmp_path / "other.tm").read_bytes() == (tmp_path / "saved.tm").read_bytes()
    made.example = Example((np.ones(2, np.complex64),), ())
    with pytest.raises(WriteError, match=r"TM5004.*example inputs\.0"):
        made.save(tmp_path / "other.tm")


def cyclic(made: TracedModule) -> None:
    made.children["self"] = made


def deep_modules(made: TracedModule) -> None:
    for i in range(150):
        made.children["child"] = leaf(str(i))
        made = made.children["child"]


def deep_values(made: TracedModule) -> None:
    value: Any = 1
    for _ in range(60):
        value = [value]
    made.attributes["x"] = value


def attribute(value: Any) -> Any:
    return lambda made: made.attributes.update(x=value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cyclic, "Net is a module that contains itself"),
        (deep_modules, "is a module nested more than 100 deep"),
        (deep_values, "x is nested more than 50 deep"),
        (attribute(object()), "x is a object"),
        (attribute(lambda: 1), "x is a function"),
        (attribute([{"a": Path()}]), "x is a PosixPath"),
        (attribute(np.array([None])), "x has the element type object"),
        (attribute(np.dtype("M8[s]")), "x has the element type datetime64"),
        (attribute("\ud800"), "is half a character"),
        (lambda made: setattr(made, "vocabulary", None), "has calls of an unknown vocabulary"),
    ],
)
def test_what_it_cannot_hold(change: Any, message: str, tmp_path: Path) -> None:
    made = model()
    change(made)
    with pytest.raises(WriteError, match=message) as caught:
        made.save(tmp_path / "saved.tm")
    assert caught.value.code == "TM5004"
    assert not list(tmp_path.iterdir())


def test_large_members_are_in_zip64(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of 32 bits, set low."""
    made = model()
    made.tensors["w"] = np.arange(5000, dtype=np.float32)
    for module in (stored_zip, reading):
        monkeypatch.setattr(module, "WIDE", 3000)
    again(made, tmp_path)
    data = (tmp_path / "saved.tm").read_bytes()
    assert b"PK\x06\x06" in data and b"PK\x06\x07" in data
    (tmp_path / "saved.tm").write_bytes(data.replace(struct.pack("<Q", 20_000 + 128), struct.pack("<Q", 9)))
    with pytest.raises(tmconvert.errors.LoadError, match="TM1010"):
        tmconvert.load(tmp_path / "saved.tm")


def test_other_programs_read_it(tmp_path: Path) -> None:
    made = model()
    made.tensors |= {"b": np.ones(3, np.int8), "a": np.ones((2, 2))}
    again(made, tmp_path)
    with zipfile.ZipFile(tmp_path / "saved.tm") as file:
        assert file.testzip() is None
        assert [info.date_time for info in file.infolist()] == [(1980, 1, 1, 0, 0, 0)] * 2
        assert json.loads(file.read("tm.json"))["modules"][-1]["tensors"] == {"b": "b", "a": "a"}
        weights = file.read("weights.safetensors")
    (length,) = struct.unpack_from("<Q", weights)
    header = json.loads(weights[8 : 8 + length])
    assert header == {
        "a": {"dtype": "F64", "shape": [2, 2], "data_offsets": [0, 32]},
        "b": {"dtype": "I8", "shape": [3], "data_offsets": [32, 35]},
    }
    assert (8 + length) % 64 == 0
    assert (tmp_path / "saved.tm").read_bytes().index(weights) % 64 == 0
