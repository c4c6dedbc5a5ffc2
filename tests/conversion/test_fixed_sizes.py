"""Sizes that cannot stay dynamic are errors, and ``fix`` gives them numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import tmconvert
from tests.cli.runner import run
from tmconvert.errors import UnsupportedError, UsageError

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'


def saved(text: str, folder: Path) -> Path:
    onnx.save(parser.parse_model(HEAD + text), folder / "net.onnx")
    return folder / "net.onnx"


def converted(text: str, folder: Path, **options: Any) -> Any:
    return tmconvert.to_onnx(saved(text, folder), folder / "out.onnx", **options)


STATE = "net (float[batch, 3] x) => (float[a, b] y) <int64[2] s = {1, 3}> { y = Reshape (x, s) }"
PICTURE = """net (float[batch, 1, h, w] x, float[784, 10] weight) => (float[a, b] y)
    { f = Flatten (x)  y = MatMul (f, weight) }"""


def test_a_batch_of_one_is_tried_before_an_open_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="runs at batch = 1, but not at batch = 2") as caught:
        converted(STATE, tmp_path)
    assert caught.value.code == "TM2031" and "--fix batch=1 " in caught.value.notes[-1][1]
    assert not (tmp_path / "out.onnx").exists()
    assert converted(STATE, tmp_path, fix={"batch": 1}).inputs[0]["shape"] == [1, 3]


def test_common_sizes_of_images_are_tried(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="runs at h = 28, w = 28, but not at h = 64, w = 64") as caught:
        converted(PICTURE, tmp_path)
    assert caught.value.code == "TM2031"
    report = converted(PICTURE, tmp_path, fix={"h": 28, "w": 28})
    assert report.inputs[0]["shape"] == ["batch", 1, 28, 28]


@pytest.mark.parametrize("name", ["unk__7", "None", "unknown"])
def test_names_that_say_nothing_are_names_of_their_own(name: str, tmp_path: Path) -> None:
    text = f"net (float[{name}, 3] x, float[{name}, 3] z) => (float[a, b] y, float[c, d] v)"
    report = converted(f"{text} {{ y = Relu (x)  v = Relu (z) }}", tmp_path)
    assert [each["shape"] for each in report.inputs] == [["x_0", 3], ["z_0", 3]]


def test_one_name_for_two_axes_says_nothing_unless_the_model_needs_it(tmp_path: Path) -> None:
    report = converted("net (float[n, n] x) => (float[a, b] y) { y = Relu (x) }", tmp_path)
    assert report.inputs[0]["shape"] == ["n", "x_1"]
    text = "net (float[n, n] x) => (float[a, b] y) { t = Transpose (x)  y = Add (t, x) }"
    assert converted(text, tmp_path).inputs[0]["shape"] == ["n", "n"]


def test_q_is_the_name_of_an_axis(tmp_path: Path) -> None:
    report = converted("net (float[q, 3] x) => (float[a, b] y) { y = Relu (x) }", tmp_path)
    assert report.inputs[0]["shape"] == ["q", 3] and report.outputs[0]["shape"] == ["q", 3]


def test_fix_on_the_command_line(tmp_path: Path) -> None:
    path, out = saved(STATE, tmp_path), tmp_path / "out.onnx"
    assert run("onnx", path, out).status != 0
    outcome = run("onnx", path, out, "--fix", "batch=1", "--json")
    assert outcome.status == 0 and outcome.json["inputs"][0]["shape"] == [1, 3]
    assert run("verify", path, out).status == 0
    assert "must be a positive integer" in run("onnx", path, out, "--fix", "batch=0").stderr
    assert "no dynamic size is called" in run("onnx", path, out, "--fix", "rows=1").stderr


def test_fix_of_a_part_of_a_sum_and_of_a_module(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    sizes = {"past": {0: "past"}, "x": {0: "n"}, "mask": {0: "past+n"}}
    inputs = torch.rand(2, 4), torch.rand(3, 4), torch.rand(5, 1)
    model = lambda past, x, mask: torch.cat([past, x]) * mask  # noqa: E731
    traced = tmconvert.trace(model, *inputs, dynamic_shapes=sizes, fix={"past": 6})
    report = tmconvert.to_onnx(traced, tmp_path / "m.onnx")
    assert [each["shape"] for each in report.inputs] == [[6, 4], ["n", 4], ["n+6", 1]]
    traced = tmconvert.trace(model, *inputs, dynamic_shapes=sizes)
    report = tmconvert.to_onnx(traced, tmp_path / "m.onnx", fix={"n": 1})
    assert [each["shape"] for each in report.inputs] == [["past", 4], [1, 4], ["past+1", 1]]


@pytest.mark.parametrize("fix", [{"n": 0}, {"n": 2.0}, {"n": "2"}, {3: 2}, [2]])
def test_numbers_that_no_size_has(fix: Any) -> None:
    with pytest.raises(UsageError):
        tmconvert.trace(np.negative, fix=fix)
