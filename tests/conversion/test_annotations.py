"""Metadata and labels in written files, read as other programs read them: zipfile, onnx and flatbuffers."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from flatbuffers.encode import Get
from flatbuffers.number_types import Float32Flags, UOffsetTFlags
from flatbuffers.table import Table

import tmconvert
from tests.cli.runner import run
from tmconvert.errors import UsageError
from tmconvert.formats.tflite.metadata import buffer_named

LABELS = ["cat", "dog", "bärs"]
NAMES = '{"0": "cat", "1": "dog", "2": "bärs"}'


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 3, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 3)
    )
    path = tmp_path_factory.mktemp("annotations") / "net.onnx"
    tmconvert.to_onnx(net, path, example_inputs=[torch.zeros(1, 3, 8, 8)], metadata={"task": "classify"})
    return path


def props(model: onnx.ModelProto) -> dict[str, str]:
    found = {each.key: each.value for each in model.metadata_props}
    assert len(found) == len(model.metadata_props)
    return {key: text for key, text in found.items() if not key.startswith("tmconvert.")}


def archived(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None and archive.namelist()[0] == "metadata.json"
        found: dict[str, str] = json.loads(archive.read("metadata.json"))
    return found


def test_metadata_of_the_source_and_of_the_call(source: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("cat\ndog\nbärs\r\n", encoding="utf-8")
    (tmp_path / "more.json").write_text('{"stride": 32, "author": "me"}', encoding="utf-8")
    wanted = {"task": "classify", "stride": "32", "author": "you", "names": NAMES}
    more = ("--metadata", tmp_path / "more.json", "--metadata", "author=you", "--labels")
    for name in ("a.onnx", "a.tflite"):
        kind = name.rpartition(".")[2]
        result = run(kind, str(source), str(tmp_path / name), *map(str, more), str(tmp_path / "labels.txt"))
        assert result.status == 0, result.stderr
        shown = tmconvert.inspect(tmp_path / name)
        assert wanted.items() <= shown.metadata.items() and "author" in str(shown)
        given = {"stride": 32, "author": "you"}
        convert = tmconvert.to_onnx if kind == "onnx" else tmconvert.to_tflite
        report = convert(source, metadata=given, labels=LABELS)
        assert report.bytes == (tmp_path / name).read_bytes() and report.verified
    assert props(onnx.load(tmp_path / "a.onnx")) == wanted
    assert archived(tmp_path / "a.tflite") == wanted
    with zipfile.ZipFile(tmp_path / "a.tflite") as archive:
        assert archive.read("labels.txt").decode() == "cat\ndog\nbärs\n"
    assert props(tmconvert.to_onnx(tmp_path / "a.tflite").model) == wanted


def follow(table: Table, *slots: int) -> Table:
    """The table at a path of slots: those of vectors are the first element."""
    for slot in slots:
        at = table.Indirect(table.Pos + table.Offset(4 + 2 * abs(slot)))
        table = Table(table.Bytes, table.Indirect(at + 4) if slot < 0 else at)
    return table


def floats(table: Table, slot: int) -> list[float]:
    offset = table.Offset(4 + 2 * slot)
    start = table.Vector(offset)
    size = table.VectorLen(offset)
    return [float(table.Get(Float32Flags, start + 4 * number)) for number in range(size)]


@pytest.mark.parametrize(
    "options, mean, std",
    [
        ({"preprocess": "rgb, nhwc, float32, mean=0.5, std=0.25"}, [0.0], [1.0]),
        (
            {
                "quantized": True,
                "calibration": [np.zeros((1, 3, 8, 8), np.uint8)],
                "calibration_settings": {"mean": [0.5], "std": [0.25]},
            },
            [127.5],
            [63.75],
        ),
    ],
)
def test_mediapipe_normalizes_what_the_file_does_not(
    source: Path, tmp_path: Path, options: dict[str, Any], mean: list[float], std: list[float]
) -> None:
    tmconvert.to_tflite(source, tmp_path / "a.tflite", labels=LABELS, **options)
    content = bytes(buffer_named(tmp_path / "a.tflite", "TFLITE_METADATA") or b"")
    assert content[4:8] == b"M001"
    root = Table(bytearray(content), Get(UOffsetTFlags.packer_type, content, 0))
    unit = follow(root, -3, -2, -4, 1)  # subgraph, input tensor, process unit, options
    assert (floats(unit, 0), floats(unit, 1)) == (mean, std)
    file = follow(root, -3, -3, -6)  # subgraph, output tensor, associated file
    assert file.String(file.Pos + file.Offset(4)) == b"labels.txt"


@pytest.mark.parametrize("kind", ["Relu", "Mystery"])  # simplified, and copied
def test_simplify_keeps_and_adds_metadata(kind: str) -> None:
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2])
    domain = "" if kind == "Relu" else "own"
    nodes = [onnx.helper.make_node(kind, ["x"], ["y"], domain=domain)]
    imports = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("own", 1)]
    graph = onnx.helper.make_graph(nodes, "net", [value], [result])
    model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=9)
    onnx.helper.set_model_props(model, {"names": "{}", "author": "me"})
    made = tmconvert.simplify(model, metadata={"author": "you"}).model
    assert props(made) == {"names": "{}", "author": "you"}


@pytest.mark.parametrize(
    "options, message",
    [
        ({"metadata": {"tmconvert.options": "{}"}}, "is reserved"),
        ({"metadata": {"a": np.zeros(1)}}, "must be a text or a value of JSON"),
        ({"labels": "missing.txt"}, "missing.txt cannot be read: No such file"),
        ({"labels": ["a", ""]}, "one text for each class"),
        ({"labels": 7}, "must be a path or a list of texts"),
    ],
)
def test_refused(source: Path, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        tmconvert.to_tflite(source, tmp_path / "a.tflite", **options)
    assert caught.value.code == "TM6002" and not list(tmp_path.iterdir())


def test_labels_of_another_number_are_noted(source: Path) -> None:
    notes = tmconvert.to_onnx(source, labels=["a", "b"]).notes
    assert any("no output has the size 2, the number of labels" in note for note in notes)
