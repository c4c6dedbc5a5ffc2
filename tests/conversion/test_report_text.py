"""What ``print`` of a report shows is what the command prints."""

from __future__ import annotations

from pathlib import Path

import pytest

import tmconvert
from tests.cli.runner import run
from tests.models import corpus
from tmconvert.passes.manager import PassOptions

MODEL = corpus.model("op_s_conv_bn_relu")
QUANTIZED = corpus.model("qat_small_ema")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def printed(*args: str | Path) -> str:
    outcome = run(*args)
    assert outcome.status == 0, outcome.stderr
    return outcome.stderr + outcome.stdout


def test_a_report_is_printed_as_by_the_command() -> None:
    assert f"{tmconvert.to_onnx(MODEL, 'o.onnx')}\n" == printed("onnx", MODEL, "o.onnx")
    assert f"{tmconvert.to_tflite(MODEL, 'o.tflite')}\n" == printed("tflite", MODEL, "o.tflite")
    assert f"{tmconvert.to_caffe(MODEL, 'o.prototxt')}\n" == printed("caffe", MODEL, "o.prototxt")


def test_notes_are_part_of_it() -> None:
    report = tmconvert.to_tflite(QUANTIZED, "o.tflite", quantized=True)
    assert report.notes
    assert all(note in str(report) for note in report.notes)
    assert f"{report}\n" == printed("tflite", QUANTIZED, "o.tflite", "--quantized")


def test_a_report_of_what_was_not_verified() -> None:
    text = str(tmconvert.to_onnx(MODEL, "o.onnx", verify=False))
    assert text.startswith("not verified: verify=False was given\no.onnx  (ONNX opset 17, ")


def test_a_report_of_a_conversion_that_was_stopped() -> None:
    report = tmconvert.to_onnx(MODEL, "o.onnx", pass_options=PassOptions(stop_after="fuse_conv_bn"))
    assert str(report) == "stopped after fuse_conv_bn: no model was written"


def test_a_report_is_one_text_without_control_characters() -> None:
    report = tmconvert.to_onnx(MODEL, "o\n\x1b[31m.onnx", verify=False)
    assert str(report).splitlines()[1].startswith("o\\n\\x1b[31m.onnx  (")


def test_other_results_are_printed_as_by_their_commands() -> None:
    tmconvert.to_onnx(QUANTIZED, "o.onnx", qparams="o.json", verify=False)
    assert f"{tmconvert.inspect('o.onnx')}\n" == printed("inspect", "o.onnx")
    assert f"{tmconvert.compare(MODEL, MODEL)}\n" == printed("compare", MODEL, MODEL)
    assert f"{tmconvert.params('o.json')}\n" == printed("params", "show", "o.json")
