"""The reader of MegEngine pickles: real files, hostile files, damaged files."""

from __future__ import annotations

import json
import random
import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tmconvert.errors import LoadError
from tmconvert.frontends.megengine.pickle.stand_ins import (
    GlobalRef,
    Instance,
    Quantization,
    Tensor,
    quantization_of,
)
from tmconvert.frontends.megengine.pickle.unpickler import read_file, read_pickle
from tmconvert.frontends.megengine.recognize import is_pickle

DATA = Path(__file__).parents[2] / "data"
MODELS = sorted(path.stem for path in DATA.glob("*.tm") if not path.stem.startswith("hostile_"))
HOSTILE = sorted(path.stem for path in DATA.glob("hostile_*.tm"))
SMALL = [name for name in MODELS if (DATA / f"{name}.tm").stat().st_size < 25_000]
CANARY = Path("/tmp/PWNED")

TRACED_MODULE = b"cmegengine.traced_module.traced_module\nTracedModule\n"
F4 = b"cnumpy\ndtype\nX\x02\0\0\0f4\x89\x88\x87R(K\x03X\x01\0\0\0<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
FROM_BUFFER = b"cnumpy.core.numeric\n_frombuffer\n"


def load(name: str) -> Any:
    return read_file(str(DATA / f"{name}.tm"))


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def global_name(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def module_with(value: bytes, protocol: int = 4) -> bytes:
    """A TracedModule whose attribute x is what the opcodes in ``value`` leave."""
    header = bytes([0x80, protocol])
    return header + TRACED_MODULE + b")\x81}" + text("x") + value + b"sb."


def read_value(value: bytes, protocol: int = 4) -> object:
    return read_pickle(module_with(value, protocol), "made.tm").state["x"]


def failure(data: bytes) -> LoadError:
    start = time.process_time()
    with pytest.raises(LoadError) as caught:
        read_pickle(data, "made.tm")
    assert time.process_time() - start < 2
    return caught.value


def refusal(value: bytes) -> LoadError:
    return failure(module_with(value))


def reachable(root: object) -> list[object]:
    """Every value of a file once; the graph is cyclic and deep."""
    seen: dict[int, object] = {}
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, Instance):
            waiting.extend(value.state.values())
        elif isinstance(value, Tensor):
            waiting += [value.array, value.qparams]
        elif isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting.extend(value)
    return list(seen.values())


def top_graph(module: Instance) -> Any:
    (graph,) = module.state["argdef_graph_map"].values()
    return graph


def nodes_of(graph: Any, key: str) -> list[dict[str, Any]]:
    return [node.state for node in graph.state[key]]


# Real files


@pytest.mark.parametrize("name", MODELS)
def test_inputs_and_outputs_are_those_of_the_description(name: str) -> None:
    module = load(name)
    description = json.loads((DATA / f"{name}.json").read_text())
    graph = top_graph(module)
    inputs, outputs = nodes_of(graph, "_inputs")[1:], nodes_of(graph, "_outputs")
    assert [node["_name"] for node in inputs] == [item["node"] for item in description["inputs"]]
    assert [list(node["_shape"]) for node in inputs] == [item["shape"] for item in description["inputs"]]
    assert [node["_dtype"] for node in inputs] == [item["dtype"] for item in description["inputs"]]
    assert [node["_name"] for node in outputs] == [item["node"] for item in description["outputs"]]


@pytest.mark.parametrize("name", MODELS)
def test_every_tensor_is_sound_and_nothing_unfinished_is_left(name: str) -> None:
    values = reachable(load(name))
    for value in values:
        assert not type(value).__name__.startswith("Unfinished")
        if isinstance(value, Tensor):
            assert value.array.dtype == value.dtype
            assert not value.array.flags.writeable
        if isinstance(value, Instance):
            assert all(isinstance(key, str) for key in value.state)
    assert any(isinstance(value, Instance) and value.short_name == "TensorNode" for value in values)


def test_weights_compute_the_recorded_outputs() -> None:
    module = load("op_s_flatten_linear")
    golden = np.load(DATA / "op_s_flatten_linear.npz")
    first, second = (module.state[name].state["state"] for name in ("a", "b"))
    x = golden["in0"].reshape(len(golden["in0"]), -1)
    hidden = np.maximum(x @ first["weight"].array.T + first["bias"].array, 0)
    y = hidden @ second["weight"].array.T + second["bias"].array
    np.testing.assert_allclose(y, golden["out0"], rtol=1e-5, atol=1e-6)


def test_arrays_are_views_of_the_file() -> None:
    data = np.frombuffer((DATA / "resnet18.tm").read_bytes(), np.uint8)
    module = read_pickle(data.data, "resnet18.tm")
    tensors = [value for value in reachable(module) if isinstance(value, Tensor)]
    assert len(tensors) > 50
    assert all(np.shares_memory(tensor.array, data) for tensor in tensors)


def test_the_largest_net_loads_fast() -> None:
    start = time.process_time()
    load("resnet18")
    assert time.process_time() - start < 0.5


def test_quantized_dtypes_keep_scale_and_zero_point() -> None:
    values = reachable(load("quantized_small"))
    found = [quantization_of(value) for value in values if isinstance(value, np.dtype)]
    quantized = [item for item in found if item is not None]
    assert {item.name for item in quantized} == {"QuantizedS8"}
    assert all(item.scale is not None and 0 < item.scale < 1 for item in quantized)
    weights = [value for value in values if isinstance(value, Tensor) and value.dtype == np.int8]
    assert weights and all(quantization_of(weight.dtype) for weight in weights)
    assert quantization_of(np.dtype("int8")) is None


def test_records_name_their_fields() -> None:
    values = [value for value in reachable(load("qat_small_asym_quint8")) if isinstance(value, Instance)]
    by_class = {value.short_name: value.state for value in values}
    assert by_class["QuantMode"] == {"value": 2}
    assert by_class["QuantDtypeMeta"]["name"] == "quint8"
    assert by_class["QuantDtypeMeta"]["qmax"] == 255
    assert by_class["FullArgSpec"]["args"] == ["s", "x"]
    assert by_class["CompNode"] == {"device": "xpux:0"}
    assert set(by_class["QParams"]) == {"mode", "dtype_meta", "scale", "zero_point"}


def test_version_1_6_refers_to_functions_and_classes_by_name() -> None:
    graph = top_graph(load("v1_6_0_ops"))
    functions = [expr["func"] for expr in nodes_of(graph, "_exprs") if "func" in expr]
    assert GlobalRef("megengine.functional.tensor", "concat") in functions
    old_dtype = nodes_of(graph, "_inputs")[1]["_dtype"]
    assert old_dtype == np.dtype("float32")


def test_a_users_function_is_a_pair_of_names() -> None:
    expressions = nodes_of(top_graph(load("custom_user_function")), "_exprs")
    functions = [expr["func"] for expr in expressions if "func" in expr]
    assert any(not module.startswith("megengine") for module, _ in functions)


# Files that are refused as a whole


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name: str) -> None:
    with pytest.raises(LoadError):
        load(name)
    assert not CANARY.exists()


def test_refusals_name_the_global_and_the_offset() -> None:
    with pytest.raises(LoadError) as caught:
        load("hostile_os_system")
    lines = caught.value.render().splitlines()
    assert lines[0] == "error[TM1004]: refused global posix.system (at byte 9101)"
    assert lines[1].endswith("hostile_os_system.tm")
    assert lines[2].startswith("   = help: tmconvert does not run code from a model file")


def test_another_pickle_is_described() -> None:
    with pytest.raises(LoadError) as caught:
        load("hostile_not_a_module")
    assert caught.value.code == "TM1005"
    assert caught.value.message == "the file holds a dict with the keys state_dict, not a TracedModule"


def test_unreadable_files(tmp_path: Path) -> None:
    for path, reason in ((tmp_path, "it is a directory"), (tmp_path / "no.tm", "No such file or directory")):
        with pytest.raises(LoadError) as caught:
            read_file(str(path))
        assert caught.value.code == "TM1001"
        assert caught.value.message == f"cannot read the model file: {reason}"
    with pytest.raises(LoadError, match=r"null (byte|character)") as caught:
        read_file("a\0b")
    assert caught.value.code == "TM1001"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"PK\x03\x04rest", "not a MegEngine model: the file begins with"),
        (b"(lp0\n.", "not a MegEngine model: the file begins with"),
        (b"\x80\x01N.", "the file has protocol 1"),
        (b"\x80\x06N.", "the file has protocol 6"),
    ],
)
def test_files_of_another_kind(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "model.tm"
    path.write_bytes(content)
    with pytest.raises(LoadError) as caught:
        read_file(str(path))
    assert caught.value.code == "TM1002"
    assert message in caught.value.message
    assert not is_pickle(content)


# Protocols


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_protocols(protocol: int) -> None:
    assert is_pickle(bytes([0x80, protocol]))
    assert read_value(b"K\x07", protocol) == 7


@pytest.mark.parametrize("core", ["numpy.core", "numpy._core"])
def test_protocol_2_arrays_are_written_as_text(core: str) -> None:
    expected = np.array([[1.5, -2.0, 3.25], [0.0, -0.5, 1e30]], np.float32)
    latin1 = expected.tobytes().decode("latin-1").encode()
    encoded = b"X" + struct.pack("<I", len(latin1)) + latin1
    content = global_name("_codecs", "encode") + encoded + text("latin1") + b"\x86R"
    empty = global_name(f"{core}.multiarray", "_reconstruct") + global_name("numpy", "ndarray")
    empty += b"K\x00\x85" + global_name("_codecs", "encode") + text("b") + text("latin1") + b"\x86R\x87R"
    array = read_value(empty + b"q\x00(K\x01K\x02K\x03\x86" + F4 + b"\x89" + content + b"tb", 2)
    assert isinstance(array, np.ndarray)
    np.testing.assert_array_equal(array, expected)


def test_builtins_of_protocol_2() -> None:
    assert read_value(global_name("__builtin__", "long"), 2) == GlobalRef("builtins", "int")


def test_protocol_5_arrays_and_fortran_order() -> None:
    expected = np.arange(6, dtype=np.float32).reshape(2, 3)
    for order in ("C", "F"):
        content = b"\x96" + struct.pack("<Q", 24) + expected.tobytes(order)
        array = read_value(FROM_BUFFER + b"(" + content + F4 + b"K\x02K\x03\x86" + text(order) + b"tR", 5)
        np.testing.assert_array_equal(array, expected)


def test_a_memo_entry_of_an_array_becomes_the_array() -> None:
    empty = global_name("numpy.core.multiarray", "_reconstruct") + global_name("numpy", "ndarray")
    empty += b"K\x00\x85C\x01b\x87R\x94"
    value = read_value(b"]" + empty + b"(K\x01K\x01\x85" + F4 + b"\x89C\x04\0\0\0\0tbah\x00a")
    assert isinstance(value, list)
    assert value[0] is value[1]
    assert value[0].shape == (1,)


def test_big_lengths_and_wide_opcodes() -> None:
    assert read_value(b"\x8d" + struct.pack("<Q", 3) + b"abc") == "abc"
    assert read_value(b"\x8e" + struct.pack("<Q", 3) + b"abc") == b"abc"
    assert read_value(b"\x8b" + struct.pack("<I", 9) + b"\0" * 8 + b"\x01") == 2**64
    assert read_value(b"N\x940j" + struct.pack("<I", 0)) is None
    assert read_value(b"\x8f(K\x01K\x02\x90") == {1, 2}
    assert read_value(b"(K\x01\x91") == frozenset({1})
    assert read_value(global_name("builtins", "slice") + b"K\x01NN\x87R") == slice(1, None, None)


def test_values_with_a_quantized_dtype() -> None:
    inner = b"}(" + text("name") + text("QuantizedS8") + text("scale") + b"G" + struct.pack(">d", 0.25) + b"u"
    metadata = b"}" + text("mgb_dtype") + inner + b"s"
    state = b"(K\x04" + text("|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0" + metadata + b"tb"
    dtype = read_value(global_name("numpy", "dtype") + text("i1") + b"\x89\x88\x87R" + state)
    assert isinstance(dtype, np.dtype)
    assert quantization_of(dtype) == Quantization("QuantizedS8", 0.25, None)


# Hostile pickles


REFUSED_GLOBALS = [
    *("os.system", "posix.system", "nt.system", "subprocess.Popen", "builtins.eval", "__builtin__.eval"),
    *("builtins.exec", "builtins.getattr", "builtins.__import__", "builtins.open", "operator.attrgetter"),
    *("copyreg._reconstructor", "copy_reg._reconstructor", "functools.partial", "pickle.loads"),
    *("importlib.import_module", "numpy.load", "numpy.testing._private.utils.runstring"),
    "numpy.core.multiarray.fromstring",
]


@pytest.mark.parametrize("qualified_name", REFUSED_GLOBALS)
def test_refused_globals_even_if_never_called(qualified_name: str) -> None:
    module, _, name = qualified_name.rpartition(".")
    error = refusal(global_name(module, name))
    assert error.code == "TM1004"
    assert name in error.message


@pytest.mark.parametrize("opcodes", [b"(K\x01tR", b")R", b")\x81", b")}\x92"])
@pytest.mark.parametrize("module", ["mycode", "megengine.functional.nn", "megengine.utils"])
def test_names_that_may_be_held_are_never_called(module: str, opcodes: bytes) -> None:
    assert read_value(global_name(module, "f")) == GlobalRef(module, "f")
    assert refusal(global_name(module, "f") + opcodes).code == "TM1004"


@pytest.mark.parametrize(
    "opcodes",
    [
        *(
            b"(K\x01tR",
            b")R",
            b")\x81",
            b"K\x01\x85\x81",
            b")}\x92",
            b")\x81}b",
            b")\x81K\x01b",
            b")\x81N}\x86b",
        ),
        *(b")\x81(K\x01K\x02e", b")\x81K\x01a", b")\x81(K\x01K\x02u", b")\x81K\x01K\x02s"),
    ],
)
def test_objects_of_the_users_classes_are_held_without_what_is_in_them(opcodes: bytes) -> None:
    value = read_value(global_name("mycode.nets", "Outer.Inner") + opcodes)
    assert isinstance(value, Instance)
    assert value.class_name == "mycode.nets.Outer.Inner"
    assert value.state in ({}, {"arguments": ()}, {"arguments": (1,)})
    error = refusal(global_name("mycode", "Block") + b")\x81" + global_name("posix", "system") + b"b")
    assert error.message.startswith("refused global posix.system")


HINTS = [
    global_name("types", "GenericAlias") + global_name("builtins", "list") + b"K\x01\x85\x86R",
    global_name("functools", "reduce") + global_name("operator", "or_") + b"K\x01\x85\x86R",
    global_name("operator", "getitem") + global_name("collections.abc", "Sequence") + b"K\x01\x86R",
    *(global_name(*names) for names in (("numbers", "Real"), ("typing", "Literal"), ("abc", "ABCMeta"))),
]


@pytest.mark.parametrize("value", HINTS)
def test_type_hints_are_held(value: bytes) -> None:
    assert isinstance(read_value(value), (Instance, GlobalRef))


@pytest.mark.parametrize("name", ["typing.get_type_hints", "collections.abc.Sequence", "numbers.Real"])
def test_type_hints_are_never_called(name: str) -> None:
    module, _, name = name.rpartition(".")
    for opcodes in (b")R", b")\x81"):
        assert refusal(global_name(module, name) + opcodes).code == "TM1004"
    assert refusal(global_name("functools", "reduce") + b"K\x01K\x02\x86R").code == "TM1004"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (global_name("builtins", "type") + text("X") + b")}\x87R", "refused call of builtins.type"),
        (global_name("builtins", "type") + b"K\x01\x85R", "refused call of builtins.type"),
        (global_name("builtins", "dict") + b")R", "refused call of builtins.dict"),
        (text("f") + b")R", "refused to call a value that is not a named function"),
        (global_name("megengine.module.conv", "Conv2d") + b"K\x01\x85\x81", "1 constructor arguments"),
        (global_name("operator", "getitem") + b"}K\x01\x86R", "an object that is not a type hint"),
        (global_name("numpy", "dtype") + text("O8") + b"\x89\x88\x87R", "refused numpy dtype object"),
        (b"Pid\n", "refused pickle opcode PERSID"),
        (b"NQ", "refused pickle opcode BINPERSID"),
        (b"\x82\x01", "refused pickle opcode EXT1"),
        (b"\x83\x01\0", "refused pickle opcode EXT2"),
        (b"\x84\x01\0\0\0", "refused pickle opcode EXT4"),
        (b"\x97", "refused pickle opcode NEXT_BUFFER"),
        (b"N\x98", "refused pickle opcode READONLY_BUFFER"),
        (b"(ios\nsystem\n", "refused pickle opcode INST"),
        (b"(" + global_name("a", "B") + b"o", "refused pickle opcode OBJ"),
    ],
)
def test_refused_calls_and_opcodes(value: bytes, message: str) -> None:
    error = refusal(value)
    assert error.code == "TM1004"
    assert message in error.message


HUGE = struct.pack("<Q", 2**63)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"X\xff\xff\xff\x7f", "a value of 2147483647 bytes starts where"),
        (b"B\xff\xff\xff\xff", "a value of 4294967295 bytes starts where"),
        (b"\x8d" + HUGE, "a value of 9223372036854775808 bytes"),
        (b"\x8e" + HUGE, "a value of 9223372036854775808 bytes"),
        (b"\x96" + HUGE, "a value of 9223372036854775808 bytes"),
        (b"\x95" + HUGE, "a frame of 9223372036854775808 bytes"),
        (b"Nr\xff\xff\xff\xff", "memo entry 4294967295 is written after 0 others"),
        (b"h\x05", "memo entry 5 is read before it is written"),
        (b"j\xff\xff\xff\xff", "memo entry 4294967295 is read"),
        (b"0000", "takes more values than the stack holds"),
        (b"((\x87", "takes more values than the stack holds"),
        (b"t" * 9, "a mark that was never set"),
        (b"(K\x01e", "items are added to a str as if it were a list"),
        (b"}(Nu", "a dict key has no value"),
        (b"}]Ns", "a dictionary key or set element is a list"),
        (b"X\x01\0\0\0\xff", "not valid UTF-8"),
        (b"I01\n", "opcode INT belongs to protocols 0 and 1"),
        (b"\xfe", "byte 0xfe is not a pickle opcode"),
        (global_name("a b", "c"), "which is not a Python identifier"),
        (b"NN\x93", "the name of a global is not text"),
        (FROM_BUFFER + b"(C\x04abcd" + F4 + b"K\x02\x85" + text("C") + b"tR", "needs 8 bytes"),
        (FROM_BUFFER + b"(C\x04abcd" + F4 + b"J\xff\xff\xff\xff\x85" + text("C") + b"tR", "tuple of sizes"),
        (global_name("numpy", "dtype") + text("(9,9)f4") + b"\x89\x88\x87R", "unknown numpy dtype"),
        (global_name("numpy", "dtype") + text("f4") + b"\x89\x88\x87R", "never gets its content"),
        (global_name("numpy", "dtype") + text("f4") + b"\x89\x88\x87R\x94h\x00", "used before it has"),
        (TRACED_MODULE + b")\x81}K\x01Nsb", "an attribute of a TracedModule has no name"),
        (TRACED_MODULE + b")\x81Nb", "the state of megengine.traced_module.traced_module.TracedModule must"),
    ],
)
def test_damaged_pickles(value: bytes, message: str) -> None:
    error = refusal(value)
    assert error.code == "TM1003"
    assert message in error.message
    assert "(at byte " in error.message


def numbers(count: int, factor: int) -> bytes:
    """Integer keys; multiples of 2**61 - 1 all hash to zero."""
    keys = ((factor * (i + 1)).to_bytes(12, "little") for i in range(count))
    return b"".join(b"\x8a\x0c" + key + b"N" for key in keys)


SHARED_TUPLES = b")\x94" + b"".join(bytes([ord("h"), i, ord("h"), i, 0x86, 0x94]) for i in range(99))
LONG_TEXT = text("a" * 200_000) + text("latin1") + b"\x86\x940" + global_name("_codecs", "encode") + b"\x940"
LONG_LIST = b"(" + b"N" * 200_000 + b"l\x85\x940" + global_name("builtins", "set") + b"\x940"
CALL_AGAIN = b"h\x01h\x00R0" * 40_000


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"\x8b" + struct.pack("<I", 200_000) + b"\xff" * 200_000, "an integer of 200000 bytes"),
        (SHARED_TUPLES + b"0}h\x63Ns", "a dictionary key is a tuple that holds a tuple"),
        (SHARED_TUPLES + b"0(h\x63\x91", "a dictionary key is a tuple that holds a tuple"),
        (b"}(" + numbers(9_000, 2**61 - 1) + b"u", "more than 500 number or tuple keys"),
        (LONG_TEXT + CALL_AGAIN, "copies the same values again and again"),
        (LONG_LIST + CALL_AGAIN, "copies the same values again and again"),
        (b"(" * 1_000_000, "values are nested more than 100000 deep"),
        (FROM_BUFFER + b"(C\0" + F4 + b"(" + b"K\xff" * 32 + b"t" + text("C") + b"tR", "more bytes than any"),
        (FROM_BUFFER + b"(C\0" + F4 + b"(" + b"K\x01" * 65 + b"t" + text("C") + b"tR", "has 65 axes"),
    ],
)
def test_pickles_that_cost_too_much(value: bytes, message: str) -> None:
    error = refusal(value)
    assert error.code == "TM1006"
    assert message in error.message


MANY_OBJECTS = {
    "nested tuples": (b")", b"\x85"),
    "tuples": (b"", b")\x85"),
    "tuples of a repeated value": (b"N", b"2\x86"),
    "tuples between marks": (b"", b"(Nt"),
    "lists": (b"", b"]"),
    "lists between marks": (b"", b"(l"),
    "dicts": (b"", b"}"),
    "dicts between marks": (b"", b"(d"),
    "sets": (b"", b"\x8f"),
    "frozen sets": (b"", b"(\x91"),
    "bytes": (b"", b"C\0"),
    "long bytes": (b"", b"\x8e" + b"\0" * 8),
    "objects": (global_name("megengine.module.conv", "Conv2d") + b"\x94", b"h\0)\x81"),
    "objects of the user's": (global_name("user", "Thing") + b"\x94", b"h\0)\x81"),
    "calls": (global_name("collections", "OrderedDict") + b"\x94", b"h\0)R"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY_OBJECTS)
def test_objects_are_paid_for_by_the_size_of_the_file(name: str) -> None:
    """Each of these took 18 to 118 bytes of memory a byte of the file: 20 MB of tuples, 1 GB."""
    first, repeated = MANY_OBJECTS[name]
    value = first + repeated * 400_000  # four times as many as are free
    data = module_with(value)
    tracemalloc.start()
    try:
        with pytest.raises(LoadError, match="more objects than a model of its size has") as caught:
            read_pickle(data, "made.tm")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.code == "TM1006"
    assert peak < 20 * len(data) + 216 * 100_000


def test_class_tables_that_count_from_zero_may_be_large() -> None:
    items = b"".join(b"M" + struct.pack("<H", i) + b"N" for i in range(3_000))
    value = read_value(b"}(" + items + b"u")
    assert isinstance(value, dict)
    assert len(value) == 3_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "nest",
    [b"]" * 100_000 + b"a" * 99_999, b")" + b"\x85" * 100_000, b"}" + b"N}" * 100_000 + b"s" * 100_000],
)
def test_deep_nesting_is_no_recursion(nest: bytes) -> None:
    assert type(read_value(nest)) in (list, tuple, dict)


# Damage at random places


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_give_a_load_error_or_a_module(seed: int) -> None:
    rng = random.Random(seed)
    contents = {name: (DATA / f"{name}.tm").read_bytes() for name in SMALL}
    for _ in range(80):
        content = bytearray(contents[rng.choice(SMALL)])
        if rng.random() < 0.25:
            del content[rng.randrange(len(content)) :]
        else:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        start = time.process_time()
        try:
            module = read_pickle(bytes(content), "damaged.tm")
        except LoadError as error:
            assert error.code in ("TM1002", "TM1003", "TM1004", "TM1005", "TM1006")
        else:
            assert module.short_name == "TracedModule"
        assert time.process_time() - start < 2


@pytest.mark.slow
def test_truncated_files_are_errors() -> None:
    content = (DATA / "proto3_tiny.tm").read_bytes()
    for length in [*range(0, len(content), 151), len(content) - 1]:
        assert failure(content[:length]).code in ("TM1002", "TM1003")
