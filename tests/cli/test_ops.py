"""``tmconvert ops``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.runner import run
from tmconvert import api
from tmconvert.symbolics import target_names
from tmconvert.targets.options import DEFAULT_OPSET, DEFAULT_TFLITE_RUNTIME


def rows(*args: str) -> dict[str, str]:
    """Lines of the table by op."""
    outcome = run("ops", *args)
    assert (outcome.status, outcome.stderr) == (0, "")
    return {line.split()[0]: line for line in outcome.stdout.splitlines()}


def test_every_op_has_a_row() -> None:
    table = rows()
    header = table.pop("op")
    assert header.split("  ")[0] == "op"
    assert f"ONNX {DEFAULT_OPSET}" in header
    assert header.endswith("Caffe bvlc")
    assert list(table) == [support.op for support in api.supported_ops("onnx")]


def test_native_since_decomposed_and_reason() -> None:
    onnx = rows("--target", "onnx", "--opset", "7")
    assert onnx["aten::conv2d"].split()[1:] == ["floats;", "rank", "4", "native"]
    assert onnx["aten::batch_norm"].split()[1:] == ["floats", "native"]
    caffe = rows("--target", "caffe")
    assert caffe["aten::batch_norm"].split()[1:] == ["floats", "decomposed"]
    assert "no: Caffe has no loops" in caffe["tm::loop"]


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
def test_every_version_is_shown(target: str) -> None:
    table = rows("--target", target)
    for each in api.supported_ops(target):
        assert table[each.op].endswith(f"no: {each.reason}") == (not each.versions)
        for since, support in each.versions:
            assert support in table[each.op]
            assert (since <= 7) or str(since) in table[each.op]


@pytest.mark.slow
def test_one_opset() -> None:
    for each in api.supported_ops("onnx", 7):
        line = rows("--target", "onnx", "--opset", "7", "--search", each.op)[each.op]
        assert line.endswith(each.support if each.support != "no" else f"no: {each.reason}")


def test_80_columns() -> None:
    """Where no reason has to be told."""
    assert max(map(len, rows().values())) <= 80


def test_the_page_of_the_documentation_is_current() -> None:
    made = run("ops", "--markdown").stdout
    page = Path(__file__).parent.parent.parent / "docs/ops.md"
    assert made == page.read_text(encoding="utf-8"), "run: tmconvert ops --markdown > docs/ops.md"


def test_search() -> None:
    assert list(rows("--search", "CONV2"))[:2] == ["op", "aten::conv2d"]
    nothing = run("ops", "--search", "no_such_op")
    assert (nothing.status, nothing.stdout) == (0, "")
    assert nothing.stderr == "no op has 'no_such_op' in its name\n"
    assert run("ops", "--search", "no_such_op", "--json").json["ops"] == []


def test_json() -> None:
    document = run("ops", "--json").json
    assert document["targets"] == {
        "onnx": DEFAULT_OPSET,
        "tflite": f"2.{DEFAULT_TFLITE_RUNTIME}",
        "caffe": "bvlc",
    }
    (conv,) = [row for row in document["ops"] if row["op"] == "aten::conv2d"]
    assert conv["caffe"] == {
        "support": "native",
        "since": 0,
        "reason": None,
        "versions": [{"since": 0, "support": "native"}],
    }
    assert conv["signature"].startswith("aten::conv2d(x, weight, bias=None, stride=[1, 1]")
    x, weight, bias, stride, *_ = conv["arguments"]
    assert x == {
        "name": "x",
        "kind": "tensor",
        "required": True,
        "dtypes": ["float32", "float16", "float64"],
        "ranks": [4],
    }
    assert (weight["required"], bias["required"]) == (True, False)
    assert stride == {"name": "stride", "kind": "attribute", "required": False, "default": [1, 1]}
    only = run("ops", "--target", "onnx", "--opset", "9", "--json").json
    assert only["targets"] == {"onnx": 9}
    assert set(only["ops"][0]) == {"op", "signature", "arguments", "onnx"}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--target", "coreml"], "error[TM6010]: invalid value for '--target': 'coreml' is not one of"),
        (["--opset", "99"], "error[TM6001]: opset 99 is not supported"),
        (["--target", "caffe", "--opset", "9"], "error[TM6010]: --opset applies to --target onnx, not caffe"),
    ],
)
def test_wrong_usage(args: list[str], said: str) -> None:
    outcome = run("ops", *args)
    assert (outcome.status, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(said)


def test_one_form_at_a_time() -> None:
    outcome = run("ops", "--json", "--markdown")
    assert outcome.status == 2
    assert outcome.stderr.startswith("error[TM6010]: --json and --markdown exclude each other")


def test_an_unknown_target_is_answered_with_all_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(target_names._others, "toy", target_names.TargetWords("Toy"))
    outcome = run("ops", "--target", "toi")
    assert outcome.status == 2
    assert "'toi' is not one of 'onnx', 'tflite', 'caffe', 'toy'" in outcome.stderr


def test_a_search_shows_signatures() -> None:
    assert "aten::gelu(x, approximate='none')" in rows("--search", "gelu")["aten::gelu(x,"]
