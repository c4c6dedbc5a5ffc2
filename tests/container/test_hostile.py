"""Containers that lie: refused by name, in little time and memory."""

from __future__ import annotations

import io
import json
import random
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tmconvert
from tests.container.forge import (
    DESCRIPTION,
    EXAMPLE,
    WEIGHTS,
    archive,
    members,
    safetensors,
    saved,
    with_checksums,
    with_document,
    with_weights,
)
from tmconvert.conversion.lowering import survey
from tmconvert.errors import LoadError, TmconvertError
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TargetOptions

NAME = "op_multi_io"
SECONDS = 2.0


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return saved(NAME, tmp_path_factory.mktemp("sound"))


def refused(folder: Path, data: bytes) -> LoadError:
    path = folder / "hostile.tm"
    path.write_bytes(data)
    started = time.process_time()
    with pytest.raises(LoadError) as caught:
        tmconvert.load(path)
    assert time.process_time() - started < SECONDS
    error = caught.value
    assert error.exit_status == 1
    assert error.source is not None and error.source.file == str(path)
    assert error.notes
    assert len(str(error)) < 2000
    return error


# ---- the archive


def zipped(parts: dict[str, bytes], **options: Any) -> bytes:
    """An archive as Python's own writer makes it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, content in parts.items():
            made.writestr(zipfile.ZipInfo(name), content, **options)
    return file.getvalue()


def patched(data: bytes, offset: int, form: str, value: int) -> bytes:
    result = bytearray(data)
    struct.pack_into(form, result, offset if offset >= 0 else len(data) + offset, value)
    return bytes(result)


def central(data: bytes, index: int) -> int:
    """Where the entry of a member begins in the directory."""
    position = struct.unpack_from("<L", data, len(data) - 6)[0]
    for _ in range(index):
        position += 46 + sum(struct.unpack_from("<3H", data, position + 28))
    return position


def sizes(data: bytes, value: int) -> bytes:
    """Another size in both headers of tm.json."""
    return patched(patched(data, 22, "<L", value), central(data, 0) + 24, "<L", value)


def counts(data: bytes, value: int) -> bytes:
    return patched(patched(data, -14, "<H", value), -12, "<H", value)


def unaligned(data: bytes) -> bytes:
    return zipped({name: content + b"   " for name, content in members(data).items()})


def reordered(data: bytes) -> bytes:
    return archive({**members(data), EXAMPLE: safetensors({}, b"")})


ARCHIVES: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("appended", lambda data: data + b"x", "TM1010"),
    ("appended much", lambda data: data + bytes(70_000), "TM1010"),
    ("prepended", lambda data: data[:100] + data, "TM1010"),
    ("cut", lambda data: data[:-1], "TM1010"),
    ("cut in half", lambda data: data[: len(data) // 2], "TM1010"),
    ("only the head", lambda data: data[:40], "TM1010"),
    ("a hole", lambda data: data[: central(data, 0)] + b"hole" + data[central(data, 0) :], "TM1010"),
    ("two in one", lambda data: data + data, "TM1010"),
    ("a comment", lambda data: patched(data, -2, "<H", 3) + b"abc", "TM1010"),
    ("a comment inside", lambda data: patched(data, -2, "<H", 3), "TM1011"),
    ("many disks", lambda data: patched(data, -18, "<H", 3), "TM1011"),
    ("many entries", lambda data: counts(data, 65535), "TM1011"),
    ("fewer entries", lambda data: counts(data, 1), "TM1010"),
    ("no entries", lambda data: counts(data, 0), "TM1010"),
    ("directory moved", lambda data: patched(data, -6, "<L", 5), "TM1010"),
    ("directory far", lambda data: patched(data, -6, "<L", 2**32 - 2), "TM1010"),
    ("directory in ZIP64", lambda data: patched(data, -6, "<L", 2**32 - 1), "TM1010"),
    ("compressed", lambda data: patched(patched(data, 8, "<H", 8), central(data, 0) + 10, "<H", 8), "TM1011"),
    ("method differs", lambda data: patched(data, 8, "<H", 8), "TM1010"),
    ("encrypted", lambda data: patched(patched(data, 6, "<H", 1), central(data, 0) + 8, "<H", 1), "TM1011"),
    ("length behind", lambda data: patched(data, central(data, 0) + 8, "<H", 8), "TM1011"),
    ("size differs", lambda data: patched(data, 22, "<L", 7), "TM1010"),
    ("size of both", lambda data: sizes(data, 7), "TM1010"),
    ("size is huge", lambda data: patched(data, central(data, 1) + 24, "<L", 2**32 - 2), "TM1010"),
    ("size is wide", lambda data: patched(data, central(data, 1) + 24, "<L", 2**32 - 1), "TM1010"),
    ("checksum differs", lambda data: patched(data, 14, "<L", 7), "TM1010"),
    ("overlap", lambda data: patched(data, central(data, 1) + 42, "<L", 0), "TM1010"),
    ("name differs", lambda data: data[:30] + b"tm.jsom" + data[37:], "TM1002"),
    ("extra field is cut", lambda data: patched(data, 28, "<H", 3), "TM1010"),
    ("deflated", lambda data: zipped(members(data), compress_type=zipfile.ZIP_DEFLATED), "TM1011"),
    ("not aligned", unaligned, "TM1014"),
    ("path trick", lambda data: archive({**members(data), "../../evil": b""}), "TM1011"),
    ("a folder", lambda data: archive({**members(data), "weights/": b""}), "TM1011"),
    ("another member", lambda data: archive({**members(data), "model.pkl": b"cos\nsystem"}), "TM1011"),
    ("a second name", lambda data: archive({DESCRIPTION: b"{}", "TM.JSON": b"", WEIGHTS: b""}), "TM1011"),
    ("no weights", lambda data: archive({DESCRIPTION: members(data)[DESCRIPTION]}), "TM1011"),
    ("an empty description", lambda data: archive({**members(data), DESCRIPTION: b""}), "TM1013"),
    ("empty weights", lambda data: archive({**members(data), WEIGHTS: b""}), "TM1014"),
    ("an odd order", reordered, "TM1010"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "code"), [row[1:] for row in ARCHIVES], ids=[row[0] for row in ARCHIVES])
def test_archives(sound: bytes, tmp_path: Path, change: Callable[[bytes], bytes], code: str) -> None:
    assert refused(tmp_path, change(sound)).code == code


def test_the_same_member_twice(sound: bytes, tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made, pytest.warns(UserWarning, match="Duplicate name"):
        for _ in range(2):
            made.writestr(zipfile.ZipInfo(DESCRIPTION), members(sound)[DESCRIPTION])
    error = refused(tmp_path, file.getvalue())
    assert (error.code, error.message) == ("TM1011", "the archive has two members named tm.json")


def test_a_plain_writer_of_archives_can_write_a_container(sound: bytes, tmp_path: Path) -> None:
    """Nothing in the format needs our own writer, as long as the data is aligned."""
    parts = members(sound)
    start = 30 + len(DESCRIPTION) + len(parts[DESCRIPTION]) + 30 + len(WEIGHTS)
    padded = {DESCRIPTION: parts[DESCRIPTION] + b" " * (-start % 64), WEIGHTS: parts[WEIGHTS]}
    path = tmp_path / "plain.tm"
    path.write_bytes(zipped(padded))
    assert str(tmconvert.load(path).graph)


# ---- tm.json


def at(*keys: Any, value: Any) -> Callable[[Any], None]:
    """Puts a value at a place of the document."""

    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = value

    return change


def without(*keys: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        del document[keys[-1]]

    return change


def tailed(tail: bytes) -> Callable[[Any], bytes]:
    """One more entry, as text."""
    return lambda document: json.dumps(document).encode()[:-1] + b", " + tail + b"}"


def first_graph(document: Any) -> Any:
    return document["modules"][-1]["graphs"][0]


def graph_twice(document: Any) -> None:
    document["modules"][-1]["graphs"] *= 2


def own_child(document: Any) -> None:
    document["modules"][-1]["children"]["x"] = len(document["modules"]) - 1


def own_argument(document: Any) -> None:
    expr = first_graph(document)["exprs"][0]
    expr["args"] = [expr["result"]]


def doubled_result(document: Any) -> None:
    expr = first_graph(document)["exprs"][0]
    expr["result"] = {"tuple": [expr["result"]] * 2}


def spare_node(document: Any) -> None:
    first_graph(document)["nodes"].append({"name": "z", "id": 1, "class": "x"})


GRAPH = ("modules", -1, "graphs", 0)
TENSOR = {"name": "self", "id": 0, "shape": [1], "dtype": "float32"}
EXPR = (*GRAPH, "exprs", 0)
DEEP = b"[" * 100_000 + b"]" * 100_000


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"tuple": [value, value]} if depth < 8 else [value]
    return value


def attribute(value: Any) -> Callable[[Any], None]:
    return at("modules", -1, "attributes", "x", value=value)


def object_of(arguments: Any) -> Any:
    return {"class": ["a", "B"], "arguments": arguments, "number": 1}


DOCUMENTS: list[tuple[str, Callable[[Any], Any], str]] = [
    ("not JSON", lambda document: b"hello", "TM1013"),
    ("not UTF-8", lambda document: b'{"format": "\xff"}', "TM1013"),
    ("UTF-16", lambda document: json.dumps(document).encode("utf-16"), "TM1013"),
    ("a tail", lambda document: json.dumps(document).encode() + b" x", "TM1013"),
    ("a list", lambda document: [document], "TM1013"),
    ("a null", lambda document: b"null", "TM1013"),
    ("deep", lambda document: DEEP, "TM1006"),
    ("deep in place", tailed(b'"x": ' + DEEP), "TM1006"),
    ("the same key twice", tailed(b'"version": 1'), "TM1013"),
    ("a NaN", tailed(b'"x": NaN'), "TM1013"),
    ("an infinity", tailed(b'"x": 1e999'), "TM1013"),
    ("endless digits", tailed(b'"x": ' + b"9" * 10**6), "TM1013"),
    ("half a character", at("modules", -1, "name", value="\ud800"), "TM1013"),
    ("another format", at("format", value="other"), "TM1013"),
    ("no version", without("version"), "TM1013"),
    ("version 0", at("version", value=0), "TM1013"),
    ("version true", at("version", value=True), "TM1013"),
    ("version text", at("version", value="1"), "TM1013"),
    ("version 4", at("version", value=4), "TM1012"),
    ("another vocabulary", at("vocabulary", value="jax"), "TM1012"),
    ("no vocabulary", at("vocabulary", value=None), "TM1015"),
    ("vocabulary 7", at("vocabulary", value=7), "TM1015"),
    ("an entry too many", at("more", value=1), "TM1015"),
    ("no source", without("source"), "TM1015"),
    ("source is text", at("source", value="x"), "TM1015"),
    ("producer is a number", at("source", "producer", value=1), "TM1015"),
    ("no modules", at("modules", value=[]), "TM1015"),
    ("modules are text", at("modules", value="abc"), "TM1015"),
    ("modules are numbers", at("modules", value=[1]), "TM1015"),
    ("no graph", at("modules", -1, "graphs", value=[]), "TM1015"),
    ("graphs is null", at("modules", -1, "graphs", value=None), "TM1015"),
    ("the same graph twice", graph_twice, "TM1015"),
    ("a child that is itself", own_child, "TM1015"),
    ("a child to come", at("modules", 0, "children", value={"x": 0}), "TM1015"),
    ("a child of no number", at("modules", -1, "children", value={"x": "0"}), "TM1015"),
    ("a child true", at("modules", -1, "children", value={"x": True}), "TM1015"),
    ("a child -1", at("modules", -1, "children", value={"x": -1}), "TM1015"),
    ("children are a list", at("modules", -1, "children", value=[0]), "TM1015"),
    ("a tensor that does not exist", at("modules", -1, "tensors", value={"x": "y"}), "TM1015"),
    ("a tensor of no name", at("modules", -1, "tensors", value={"x": ["y"]}), "TM1015"),
    ("a long name", at("modules", -1, "attributes", value={"x" * 70_000: 1}), "TM1015"),
    ("a module's name is a number", at("modules", -1, "name", value=1), "TM1015"),
    ("a class is null", at("modules", -1, "class", value=None), "TM1015"),
    ("a dtype of no tensor", at("dtypes", value={"x": "float32"}), "TM1015"),
    ("dtypes are a list", at("dtypes", value=["x"]), "TM1015"),
    ("two kinds in a value", attribute({"tuple": [], "list": []}), "TM1015"),
    ("no kind in a value", attribute({}), "TM1015"),
    ("an unknown kind", attribute({"pickle": "Y29z"}), "TM1015"),
    ("a node outside", attribute({"node": 0}), "TM1015"),
    ("a module to come", attribute({"module": 10**6}), "TM1015"),
    ("a wide integer", attribute(2**70), "TM1015"),
    ("a wider integer", attribute({"integer": "0x" + "f" * 5000}), "TM1015"),
    ("an integer of letters", attribute({"integer": "zz"}), "TM1015"),
    ("a float of letters", attribute({"float": "1.5"}), "TM1015"),
    ("a tuple of no list", attribute({"tuple": 7}), "TM1015"),
    ("a dict of singles", attribute({"dict": [[1]]}), "TM1015"),
    ("a key twice", attribute({"dict": [[1, 2], [1, 3]]}), "TM1015"),
    ("a key that is a list", attribute({"dict": [[[1], 2]]}), "TM1015"),
    ("a set of lists", attribute({"set": [[1]]}), "TM1015"),
    ("a slice of two", attribute({"slice": [1, 2]}), "TM1015"),
    ("half a complex number", attribute({"complex": [1.0]}), "TM1015"),
    ("a constant", attribute({"constant": "os"}), "TM1015"),
    ("bytes of no letters", attribute({"bytes": "?"}), "TM1015"),
    ("a reference of three", attribute({"reference": ["os", "system", "x"]}), "TM1015"),
    ("an object without a number", attribute({"object": {"class": ["a", "B"], "arguments": []}}), "TM1015"),
    ("an object of objects", attribute({"object": object_of([{"tuple": []}])}), "TM1015"),
    ("an object of text", attribute({"object": object_of("abc")}), "TM1015"),
    ("an object of no class", attribute({"object": {**object_of([]), "class": "B"}}), "TM1015"),
    ("a dtype of objects", attribute({"dtype": "object"}), "TM1015"),
    ("a dtype of records", attribute({"dtype": "f4,f4"}), "TM1015"),
    ("a quantization without a scale", attribute({"dtype": {"name": "int8", "quantization": {}}}), "TM1015"),
    ("a scalar of text", attribute({"scalar": ["float32", "x"]}), "TM1015"),
    ("a scalar of a tensor", attribute({"scalar": ["float32", {"tuple": []}]}), "TM1015"),
    ("a scalar out of range", attribute({"scalar": ["int8", 2**40]}), "TM1015"),
    ("deep values", attribute(nested(60)), "TM1006"),
    ("a graph's name", at(*GRAPH, "name", value=1), "TM1015"),
    ("a structure without end", at(*GRAPH, "structure", value="x" * 2_000_000), "TM1015"),
    ("an unknown expression", at(*EXPR, "kind", value="exec"), "TM1015"),
    ("an expression of no kind", without(*EXPR, "kind"), "TM1015"),
    ("an expression of kind [1]", at(*EXPR, "kind", value=[1]), "TM1015"),
    ("an expression is null", at(*EXPR, value=None), "TM1015"),
    ("a result used before", at(*EXPR, "args", value=[{"node": 3}]), "TM1015"),
    ("a result of itself", own_argument, "TM1015"),
    ("a node that does not exist", at(*EXPR, "args", value=[{"node": 10**9}]), "TM1015"),
    ("a node -1", at(*EXPR, "args", value=[{"node": -1}]), "TM1015"),
    ("a node true", at(*EXPR, "args", value=[{"node": True}]), "TM1015"),
    ("a result made before", at(*EXPR, "result", value={"node": 0}), "TM1015"),
    ("a result twice", doubled_result, "TM1015"),
    ("no result", at(*EXPR, "result", value={"tuple": []}), "TM1015"),
    ("a constant result", at(*EXPR, "result", value=1), "TM1015"),
    ("args are no list", at(*EXPR, "args", value={"node": 0}), "TM1015"),
    ("kwargs are no object", at(*EXPR, "kwargs", value=[]), "TM1015"),
    ("an id is a float", at(*EXPR, "id", value=1.5), "TM1015"),
    ("an id is huge", at(*EXPR, "id", value=2**64), "TM1015"),
    ("a node too many", spare_node, "TM1015"),
    ("nodes are missing", at(*GRAPH, "nodes", value=[]), "TM1015"),
    ("two nodes of one name", at(*GRAPH, "nodes", -1, "name", value="self"), "TM1015"),
    ("no inputs", at(*GRAPH, "inputs", value=[]), "TM1015"),
    ("self is a tensor", at(*GRAPH, "nodes", 0, value=TENSOR), "TM1015"),
    ("an input that is another", at(*GRAPH, "inputs", 0, "node", value=1), "TM1015"),
    ("the result is a node to come", at(*GRAPH, "result", value={"node": 10**6}), "TM1015"),
    ("a negative extent", at(*GRAPH, "nodes", 1, "shape", value=[1, -2]), "TM1015"),
    ("an extent of text", at(*GRAPH, "nodes", 1, "shape", value=["1"]), "TM1015"),
    ("many extents", at(*GRAPH, "nodes", 1, "shape", value=[1] * 40), "TM1015"),
    ("a huge shape", at(*GRAPH, "nodes", 1, "shape", value=[2**40, 2**40]), "TM1006"),
    ("a node's dtype", at(*GRAPH, "nodes", 1, "dtype", value="float31"), "TM1015"),
    ("a node's layout", at(*GRAPH, "nodes", 1, "layout", value="nchw"), "TM1015"),
    ("a node's qparams", at(*GRAPH, "nodes", 1, "qparams", value={"scale": [1.0]}), "TM1015"),
    ("a node's name", at(*GRAPH, "nodes", 1, "name", value=["x"]), "TM1015"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "code"), [row[1:] for row in DOCUMENTS], ids=[row[0] for row in DOCUMENTS]
)
def test_documents(sound: bytes, tmp_path: Path, change: Callable[[Any], Any], code: str) -> None:
    assert refused(tmp_path, with_document(sound, change)).code == code


def test_a_newer_file_says_who_made_it(sound: bytes, tmp_path: Path) -> None:
    def change(document: Any) -> None:
        document.update(version=7, writer="tmconvert 9.1", modules={"another": "form"})

    error = refused(tmp_path, with_document(sound, change))
    assert (
        error.message
        == "the file has version 7 of the format, written by tmconvert 9.1; this tmconvert reads 3"
    )
    assert error.notes == (("help", "read it with a newer tmconvert"),)


def test_a_changed_description_does_not_have_its_checksum(sound: bytes, tmp_path: Path) -> None:
    text = members(sound)[DESCRIPTION]
    place = sound.index(text) + text.index(b'"producer"')
    error = refused(tmp_path, sound[:place] + sound[place:].replace(b"MegEngine", b"MogEngine", 1))
    assert (error.code, error.message) == ("TM1013", "the content of tm.json does not match its checksum")


@pytest.mark.parametrize("name", ["op_multi_io", "quantized_small", "text_lstm"])
@pytest.mark.parametrize("place", [1, 40, 0.5])
def test_a_changed_weight_is_found_by_its_checksum(name: str, place: float, tmp_path: Path) -> None:
    """A bit of the first, of a later or of one in the middle of the data, for which any value makes sense."""
    sound = saved(name, tmp_path)
    content = members(sound)[WEIGHTS]
    behind = int(place) or len(content) // 3
    data = bytearray(sound)
    data[sound.index(content) + len(content) - behind] ^= 1
    error = refused(tmp_path, bytes(data))
    assert (error.code, error.message) == (
        "TM1014",
        "the content of weights.safetensors does not match its checksum",
    )


def test_modules_below_each_other_without_end(sound: bytes, tmp_path: Path) -> None:
    def change(document: Any) -> None:
        blank = {"name": "", "class": "", "tensors": {}, "attributes": {}, "graphs": []}
        chain = [{**blank, "children": {"x": i - 1} if i else {}} for i in range(5000)]
        document["modules"] = chain + document["modules"][-1:]

    assert refused(tmp_path, with_document(sound, change)).code == "TM1006"


def test_modules_that_share_without_end_are_few(sound: bytes, tmp_path: Path) -> None:
    """2**60 paths, sixty modules: read, and walked once each."""

    def change(document: Any) -> None:
        blank = {"class": "", "tensors": {}, "attributes": {}, "graphs": []}
        chain = [
            {**blank, "name": str(i), "children": {"x": i - 1, "y": i - 1} if i else {}} for i in range(60)
        ]
        last = document["modules"][-1]
        document["modules"] = chain + document["modules"][:-1]
        last["children"] = {name: number + 60 for name, number in last["children"].items()} | {"zz": 59}
        document["modules"].append(last)

    path = tmp_path / "shared.tm"
    path.write_bytes(with_document(sound, change))
    assert len(list(tmconvert.load(path).modules())) >= 60


def test_a_tensor_shown_without_end(tmp_path: Path) -> None:
    data = saved("op_subtensor", tmp_path)

    def change(document: Any) -> None:
        (expr,) = [each for each in document["modules"][-1]["graphs"][0]["exprs"] if "args" in each][:1]
        expr["args"] += [{"tensor": "many"}] * 20_000

    def weights(header: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        header["many"] = {"dtype": "U8", "shape": [2000], "data_offsets": [len(body), len(body) + 2000]}
        return header, body + bytes(2000)

    assert refused(tmp_path, with_document(with_weights(data, weights), change)).code == "TM1006"


# ---- weights


def entry(**changes: Any) -> Callable[[dict[str, Any], bytes], tuple[Any, bytes]]:
    """Changes the last tensor of the file."""

    def change(header: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        header[list(header)[-1]].update(changes)
        return header, body

    return change


TENSORS: list[tuple[str, Callable[[dict[str, Any], bytes], tuple[Any, bytes]], str]] = [
    ("a longer body", lambda header, body: (header, body + bytes(4)), "TM1014"),
    ("a shorter body", lambda header, body: (header, body[:-4]), "TM1014"),
    ("no body", lambda header, body: (header, b""), "TM1014"),
    ("a list", lambda header, body: ([header], body), "TM1014"),
    ("not JSON", lambda header, body: (b"hello", body), "TM1013"),
    ("the same tensor twice", lambda header, body: (b'{"a":{},"a":{}}', body), "TM1013"),
    ("deep", lambda header, body: (DEEP, body), "TM1006"),
    ("an entry too many", entry(more=1), "TM1014"),
    ("an unknown dtype", entry(dtype="F8"), "TM1014"),
    ("a dtype of no text", entry(dtype=["F32"]), "TM1014"),
    ("another dtype", entry(dtype="F64"), "TM1014"),
    ("another shape", entry(shape=[10**6]), "TM1014"),
    ("a huge shape", entry(shape=[2**62, 2**62, 0]), "TM1014"),
    ("a negative shape", entry(shape=[-1, -4]), "TM1014"),
    ("a float in a shape", entry(shape=[4.0]), "TM1014"),
    ("a true in a shape", entry(shape=[True]), "TM1014"),
    ("a shape of no list", entry(shape="4"), "TM1014"),
    ("many axes", entry(shape=[1] * 100), "TM1014"),
    ("offsets backwards", entry(data_offsets=[100, 4]), "TM1014"),
    ("offsets beyond", entry(data_offsets=[2**40, 2**40 + 16]), "TM1014"),
    ("negative offsets", entry(data_offsets=[-16, 0]), "TM1014"),
    ("three offsets", entry(data_offsets=[0, 0, 0]), "TM1014"),
    ("overlap", entry(data_offsets=[0, 24], shape=[6], dtype="F32"), "TM1014"),
    ("no tensors", lambda header, body: ({}, body), "TM1014"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "code"), [row[1:] for row in TENSORS], ids=[row[0] for row in TENSORS])
def test_tensors(sound: bytes, tmp_path: Path, change: Callable[..., Any], code: str) -> None:
    assert refused(tmp_path, with_weights(sound, change)).code == code


def test_more_hostile_tensors(sound: bytes, tmp_path: Path) -> None:
    parts = members(sound)

    def code(weights: bytes) -> str:
        return refused(tmp_path, archive({**parts, WEIGHTS: weights})).code

    one = {"dtype": "BOOL", "shape": [3], "data_offsets": [0, 3]}
    assert code(safetensors({"a": one}, b"\0\1\2")) == "TM1014"
    assert code(safetensors({"a": one}, b"\0\1\1", aligned=False)) == "TM1014"
    assert code(struct.pack("<Q", 2**63) + b"{}") == "TM1014"
    assert code(b"\0" * 7) == "TM1014"
    byte = {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}
    odd = {"dtype": "F32", "shape": [1], "data_offsets": [1, 5]}
    assert code(safetensors({"a": byte, "b": odd}, bytes(5))) == "TM1014"
    example = safetensors({"a": byte}, b"\0")
    in_order = {DESCRIPTION: parts[DESCRIPTION], EXAMPLE: example, WEIGHTS: parts[WEIGHTS]}
    assert refused(tmp_path, archive(in_order)).code == "TM1014"


# ---- fuzz

CODES = {"TM1002", "TM1006", *(f"TM10{number}" for number in range(10, 16))}
GOAL = TargetOptions("onnx", 17)


def read_all(path: Path) -> None:
    """Loads, prints and checks; any error must be one of ours, blamed on the file."""
    started = time.process_time()
    try:
        model = tmconvert.load(path)
    except LoadError as error:
        assert error.code in CODES, str(error)
    else:
        assert str(model.graph)
        try:
            survey(model, GOAL, catalogue())
        except TmconvertError as error:
            assert error.exit_status == 1, str(error)
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize("name", ["op_multi_io", "quantized_small", "text_lstm", "op_subtensor"])
@pytest.mark.parametrize("seed", range(2))
def test_changed_bytes_and_cuts(name: str, seed: int, tmp_path: Path) -> None:
    data = saved(name, tmp_path)
    generator = random.Random(seed)
    size, text = len(data), len(members(data)[DESCRIPTION])
    path = tmp_path / "fuzz.tm"
    for _ in range(150):
        changed = bytearray(data)
        for _ in range(generator.choice((1, 1, 1, 2, 8))):
            place = generator.choice((generator.randrange(size), generator.randrange(100 + text)))
            changed[place] = generator.choice(
                (generator.randrange(256), changed[place] ^ 1 << generator.randrange(8))
            )
        result = bytes(changed)
        if generator.random() < 0.1:
            result = result[: generator.randrange(size)]
        elif generator.random() < 0.9:
            result = with_checksums(result)
        path.write_bytes(result)
        read_all(path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_changed_documents(seed: int, tmp_path: Path) -> None:
    """Values of tm.json exchanged for others of the same document: sound JSON, any sense."""
    data = saved(("op_multi_io", "op_nested_reuse", "qat_small_tqt", "text_lstm")[seed], tmp_path)
    generator = random.Random(seed)
    path = tmp_path / "fuzz.tm"
    odd = [None, True, -1, 2**40, 0.5, "", "x", [], {}, {"node": 0}, {"module": 0}, {"tuple": [1]}, [[]]]
    for _ in range(150):

        def change(document: Any) -> None:
            places = list(_places(document))
            for _ in range(generator.choice((1, 1, 2))):
                holder, key = generator.choice(places)
                other_holder, other_key = generator.choice(places)
                value = generator.choice((generator.choice(odd), other_holder[other_key]))
                holder[key] = json.loads(json.dumps(value))

        path.write_bytes(with_document(data, change))
        read_all(path)


def _places(value: Any) -> Any:
    """Every (holder, key) of a document."""
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        for key in range(len(holder)) if isinstance(holder, list) else list(holder):
            yield holder, key
            if isinstance(holder[key], (list, dict)):
                waiting.append(holder[key])
