"""``tmconvert ops``."""

from __future__ import annotations

import pytest

from tests.cli.runner import run
from tmconvert import api
from tmconvert.targets import DEFAULT_OPSET


def rows(*args: str) -> dict[str, str]:
    """Lines of the table by op."""
    outcome = run("ops", *args)
    assert (outcome.status, outcome.stderr) == (0, "")
    return {line.split()[0]: line for line in outcome.stdout.splitlines()}


def test_every_op_has_a_row() -> None:
    table = rows()
    header = table.pop("op")
    assert header.split("  ")[0] == "op"
    assert f"ONNX opset {DEFAULT_OPSET}" in header
    assert header.endswith("Caffe, dialect bvlc")
    assert list(table) == [support.op for support in api.supported_ops("onnx")]


def test_native_since_decomposed_and_reason() -> None:
    onnx = rows("--target", "onnx", "--opset", "7")
    assert onnx["aten::conv2d"].split()[1:] == ["native"]
    assert onnx["aten::batch_norm"].split()[1:] == ["native"]
    caffe = rows("--target", "caffe")
    assert caffe["aten::batch_norm"].split()[1:] == ["decomposed"]
    assert "no: BVLC Caffe has no layer for it" in caffe["aten::floor"]
    missing = [each for each in api.supported_ops("onnx", 7) if each.support == "no" and each.since]
    for each in missing:
        assert onnx[each.op].endswith(f"no: {each.reason}")
        newest = rows("--target", "onnx")[each.op]
        assert newest.endswith(f"since {each.since}") or "no: " in newest


def test_search() -> None:
    assert list(rows("--search", "CONV2"))[:2] == ["op", "aten::conv2d"]
    nothing = run("ops", "--search", "no_such_op")
    assert (nothing.status, nothing.stdout) == (0, "")
    assert nothing.stderr == "no op has 'no_such_op' in its name\n"
    assert run("ops", "--search", "no_such_op", "--json").json["ops"] == []


def test_json() -> None:
    document = run("ops", "--json").json
    assert document["targets"] == {"onnx": DEFAULT_OPSET, "tflite": "2.18", "caffe": "bvlc"}
    (conv,) = [row for row in document["ops"] if row["op"] == "aten::conv2d"]
    assert conv["caffe"] == {"support": "native", "since": 0, "reason": None}
    only = run("ops", "--target", "onnx", "--opset", "9", "--json").json
    assert only["targets"] == {"onnx": 9}
    assert set(only["ops"][0]) == {"op", "onnx"}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--target", "coreml"], "error[TM6010]: invalid value for '--target': 'coreml' is not one of"),
        (["--opset", "99"], "error[TM6001]: opset 99 is not supported"),
        (["--target", "caffe", "--opset", "9"], "error[TM6010]: --opset goes with --target onnx, not caffe"),
    ],
)
def test_wrong_usage(args: list[str], said: str) -> None:
    outcome = run("ops", *args)
    assert (outcome.status, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(said)
