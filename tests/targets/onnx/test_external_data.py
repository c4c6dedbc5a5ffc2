"""ONNX models with their weights in a file beside them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import tmconvert
from tests.opsets import newest_runnable
from tests.targets.onnx.test_onnx_writer import constant, conv_net, graph_of, tensor
from tmconvert.errors import WriteError
from tmconvert.lowering.target_graph import Operator, TargetGraph
from tmconvert.targets.onnx import target as onnx_target
from tmconvert.targets.onnx.writer import check_onnx, write_onnx

DATA = Path(__file__).parents[2] / "data"
MODEL = DATA / "resnet18.tm"


def wide_net(opset: int) -> tuple[TargetGraph, np.ndarray, np.ndarray]:
    """A MatMul by a transposed matrix, an Add of a row, and an Add of a small constant."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(40, 30)).astype(np.float32).T  # [30, 40]
    row = rng.normal(size=(8, 40)).astype(np.float32)
    x, y, z, out = tensor("x", 8, 30), tensor("y", 8, 40), tensor("z", 8, 40), tensor("out", 8, 40)
    small = np.array([2], np.float32)
    operators = [
        Operator("MatMul", [x, constant("matrix", matrix)], [y], {}, "matmul"),
        Operator("Add", [y, constant("row", row)], [z], {}, "add"),
        Operator("Add", [z, constant("small", small)], [out], {}, "small"),
    ]
    image = rng.normal(size=(8, 30)).astype(np.float32)
    return graph_of(opset, [x], operators, [out]), image, image @ matrix + row + small


def written(graph: TargetGraph, folder: Path) -> Path:
    path = folder / "net.onnx"
    with path.open("wb") as file, (folder / "net.onnx.data").open("wb") as weights:
        write_onnx(graph, file, weights, "net.onnx.data")
    return path


@pytest.mark.parametrize("opset", [7, 9, 13, newest_runnable()])
def test_the_runtime_finds_the_weights(opset: int, tmp_path: Path) -> None:
    graph, image, expected = wide_net(opset)
    path = written(graph, tmp_path)
    check_onnx(path, graph)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"x": image})[0], expected, rtol=1e-5, atol=1e-5)


def test_where_each_tensor_lies(tmp_path: Path) -> None:
    graph, _, _ = wide_net(13)
    path = written(graph, tmp_path)
    model = onnx.load(path, load_external_data=False)
    found = {
        each.name: {entry.key: entry.value for entry in each.external_data}
        for each in model.graph.initializer
    }
    name = "net.onnx.data"
    assert found == {
        "matrix": {"location": name, "offset": "0", "length": "4800"},
        "row": {"location": name, "offset": "8192", "length": "1280"},
        "small": {},
    }
    data = (tmp_path / name).read_bytes()
    assert len(data) == 8192 + 1280
    assert data[4800:8192] == bytes(8192 - 4800)
    matrix = next(each.data for each in graph.constants() if each.name == "matrix")
    assert matrix is not None and data[:4800] == matrix.tobytes()


@pytest.mark.slow
def test_a_conversion_writes_both_files(tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    report = tmconvert.to_onnx(MODEL, out, external_data=True)
    assert report.verified
    assert report.paths == (out, tmp_path / "out.onnx.data")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.onnx", "out.onnx.data"]
    onnx.checker.check_model(str(out), full_check=True)
    assert tmconvert.verify(MODEL, out).max_error < 1e-4
    first = [path.read_bytes() for path in report.paths]
    tmconvert.to_onnx(MODEL, out, external_data=True)
    assert [path.read_bytes() for path in report.paths] == first


def test_weights_that_one_file_cannot_hold_go_into_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_target, "MOST_INLINE", 1 << 16)
    report = tmconvert.to_onnx(MODEL, tmp_path / "out.onnx")
    assert [path.name for path in report.paths] == ["out.onnx", "out.onnx.data"]
    assert report.verified


def test_a_model_without_weights_stays_one_file(tmp_path: Path) -> None:
    report = tmconvert.to_onnx(DATA / "op_s_elemwise.tm", tmp_path / "out.onnx", external_data=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out.onnx"] == [path.name for path in report.paths]


def test_neither_file_appears_when_one_cannot(tmp_path: Path) -> None:
    (tmp_path / "out.onnx").write_text("older")
    (tmp_path / "out.onnx.data").mkdir()
    with pytest.raises(WriteError, match=r"out\.onnx\.data"):
        tmconvert.to_onnx(MODEL, tmp_path / "out.onnx", external_data=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.onnx", "out.onnx.data"]
    assert (tmp_path / "out.onnx").read_text() == "older"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="create the folder first"):
        tmconvert.to_onnx(MODEL, tmp_path / "no" / "out.onnx", external_data=True)


def test_the_model_itself_holds_no_weights() -> None:
    graph, _, _ = conv_net(13)
    model, weights = io.BytesIO(), io.BytesIO()
    write_onnx(graph, model, weights, "w")
    assert len(weights.getvalue()) == 0  # all below 1 KiB
    graph, _, _ = wide_net(13)
    model = io.BytesIO()
    write_onnx(graph, model, weights, "w")
    assert len(model.getvalue()) < 1000


def test_metadata_records_the_options(tmp_path: Path) -> None:
    tmconvert.to_onnx(MODEL, tmp_path / "out.onnx", external_data=True, opset=13, verify=False)
    entries = {each.key: each.value for each in onnx.load(tmp_path / "out.onnx").metadata_props}
    assert entries["tmconvert.options"] == '{"external_data": true, "io_layout": "source", "onnx": 13}'
    assert len(entries["tmconvert.source_sha256"]) == 64
    assert "MegEngine" in entries["tmconvert.source"]
