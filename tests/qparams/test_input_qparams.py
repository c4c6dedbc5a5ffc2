"""Quantization parameters for inputs without a stub: --input-type, --input-scale, --input-zero-point."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import tmconvert
from tests.cli.runner import run
from tests.models import corpus
from tmconvert.errors import UsageError

WITHOUT_STUB = "qat_small_minmax_nostub"
TYPES = ("--input-type", "qint8", "--input-scale", "0.0078")


@pytest.mark.parametrize("target", ["tflite", "onnx"])
def test_the_whole_model_is_in_integers(target: str, tmp_path: Path) -> None:
    model, out = corpus.model(WITHOUT_STUB), tmp_path / f"o.{target}"
    before = run(target, model, out, "--quantized", "--json").json
    outcome = run(target, model, out, "--quantized", *TYPES, "--json")
    assert outcome.status == 0 and outcome.json["verified"]
    assert run("verify", model, out).status == 0
    if target == "tflite":
        assert before["inputs"][0]["dtype"] == "float32"
        assert outcome.json["inputs"][0]["dtype"] == "int8"
        assert not any("in float" in note for note in outcome.json["notes"])


# the second is an earlier name, which is not documented
@pytest.mark.parametrize("keyword", ["input_qparams", "input_grids"])
def test_they_are_in_the_file_of_parameters(keyword: str, tmp_path: Path) -> None:
    file, given = tmp_path / "q.json", {keyword: {"x": ("quint8", 0.125, 128)}}
    tmconvert.to_onnx(corpus.model(WITHOUT_STUB), tmp_path / "o.onnx", qparams=file, **given)
    tmconvert.to_target(
        corpus.model(WITHOUT_STUB), "onnx", tmp_path / "o.onnx", qparams=tmp_path / "again.json", **given
    )
    assert (tmp_path / "again.json").read_text() == file.read_text()
    assert keyword in inspect.signature(tmconvert.to_onnx).parameters or keyword == "input_grids"
    text = file.read_text()
    assert '"scale": 0.125' in text and '"zero_point": 128' in text


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"y": ("qint8", 0.1, 0)}, "no input 'y'"),
        ({"*": ("qint7", 0.1, 0)}, "the type is 'qint7'"),
        ({"x": ("qint8", 0.0, 0)}, "the scale of 'x' is 0.0"),
        ({"x": ("quint8", 0.1, 256)}, "the zero point of 'x' is 256, and quint8 has 0 to 255"),
    ],
)
def test_what_is_no_grid(grid: dict[str, tuple[str, float, int]], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        tmconvert.to_tflite(corpus.model(WITHOUT_STUB), tmp_path / "o", quantized=True, input_qparams=grid)
    assert caught.value.code == "TM6014" and message in str(caught.value)


def test_the_options_go_together(tmp_path: Path) -> None:
    outcome = run(
        "tflite", corpus.model(WITHOUT_STUB), tmp_path / "o", "--quantized", "--input-type", "qint8"
    )
    assert outcome.status == 2 and "--input-type and --input-scale require each other" in outcome.stderr
