"""tmconvert params, and --qparams of the conversions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.runner import run
from tests.models import corpus

MODEL = str(corpus.model("qat_small_ema"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with its parameters: m.onnx and q.json."""
    made = tmp_path_factory.mktemp("params")
    outcome = run("onnx", MODEL, str(made / "m.onnx"), "--qparams", str(made / "q.json"))
    assert outcome.status == 0
    assert (
        f"quantization parameters of 13 activations, 5 weights and 4 biases in {made}/q.json"
        in outcome.stderr
    )
    return made


def test_show(folder: Path) -> None:
    outcome = run("params", "show", str(folder / "q.json"))
    first, header, *rows = outcome.stdout.splitlines()
    assert first == f"{folder}/q.json: mgeconvert JSON, 22 tensors"
    assert header.split() == ["tensor", "role", "type", "scale", "zero", "point", "range"]
    assert rows[1].split()[:4] == ["c1.weight", "weight", "int8_narrow", "0.00595882"]
    document = json.loads(run("params", "show", str(folder / "q.json"), "--json").stdout)
    assert document["format"] == "mgeconvert" and document["tensors"][0]["name"] == "x"


DIRECT = (
    *("aimet", "aimet-1.0", "aimet-2.0", "tensorrt", "tensorrt-ranges", "tensorrt-json", "onnxruntime"),
    *("ncnn", "mnn", "ppq", "ascend", "tpu-mlir"),
)


@pytest.mark.parametrize("format", DIRECT)
def test_converted_it_is_what_the_conversion_writes(format: str, folder: Path, tmp_path: Path) -> None:
    direct, out = tmp_path / "direct", tmp_path / "out"
    options = ("--qparams", str(direct), "--qparams-format", format, "--no-verify")
    assert run("onnx", MODEL, str(tmp_path / "m.onnx"), *options).status == 0
    arguments = (
        str(folder / "q.json"),
        str(out),
        "--to",
        format,
        "--model",
        str(folder / "m.onnx"),
        "--partial",
    )
    outcome = run("params", "convert", *arguments)
    assert outcome.status == 0 and outcome.stdout.startswith(f"{out}  (")
    assert out.read_bytes() == direct.read_bytes()
    for model in (str(folder / "m.onnx"), MODEL):
        assert run("params", "check", str(out), model).stdout.startswith("ok: ")


def test_what_has_no_place_ends_the_conversion(folder: Path, tmp_path: Path) -> None:
    arguments = ("params", "convert", str(folder / "q.json"), str(tmp_path / "q.cache"), "--to", "tensorrt")
    outcome = run(*arguments)
    assert outcome.status == 2 and not any(tmp_path.iterdir())
    assert (
        "TensorRT calibration cache: this format cannot store the weight 'c1.weight' (and 8 more)"
        in outcome.stderr
    )
    outcome = run(*arguments, "--partial")
    assert outcome.stdout.strip().endswith("13 activations); left out: 5 weights and 4 biases")


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
def test_what_a_format_has_no_place_for_is_counted(target: str, tmp_path: Path) -> None:
    arguments = (target, MODEL, str(tmp_path / "m"), "--qparams", str(tmp_path / "q.cache"))
    outcome = run(*arguments, "--qparams-format", "tensorrt")
    assert outcome.status == 0
    assert "5 weights and 4 biases left out, which the format cannot store" in outcome.stderr


def changed(folder: Path, out: Path, old: str, new: str) -> str:
    out.write_text((folder / "q.json").read_text().replace(f'"{old}"', f'"{new}"'))
    return str(out)


def test_check_finds_what_is_wrong(folder: Path, tmp_path: Path) -> None:
    wrong = changed(folder, tmp_path / "q.json", "c2.weight", "c2.wieght")
    outcome = run("params", "check", wrong, str(folder / "m.onnx"))
    assert outcome.status == 1
    assert outcome.stdout.splitlines() == [
        "wrong: c2.wieght: the model has no tensor of that name, did you mean 'c2.weight'?",
        "note: c2.weight: the weight of a Conv has no parameters",
    ]
    outcome = run("params", "check", wrong, MODEL, "--json")
    document = json.loads(outcome.stdout)
    assert outcome.status == 1 and document["ok"] is False
    texts = [finding["text"] for finding in document["findings"]]
    assert texts == [
        "the model does not quantize a tensor of that name",
        "the weight is quantized in the model, but not in the file",
    ]


def test_check_counts_channels_and_knows_scales(folder: Path, tmp_path: Path) -> None:
    document = json.loads((folder / "q.json").read_text())
    document["c1.weight"] |= {"scale": [0.5, 0.25, 0.125]}
    document["c2_out"]["scale"] *= 2
    document["fc.weight"]["is_weight"] = False
    (tmp_path / "q.json").write_text(json.dumps(document))
    lines = run("params", "check", str(tmp_path / "q.json"), str(folder / "m.onnx")).stdout.splitlines()
    # 3 is an extent of the weight, if not that of its outputs
    assert lines == ["wrong: fc.weight: it is an activation in the file, but a constant in the model"]
    lines = run("params", "check", str(tmp_path / "q.json"), MODEL).stdout.splitlines()
    assert lines[:2] == [
        "wrong: c1.weight: it has 3 scales, but the model has 1",
        "wrong: c2_out: its scales or zero points differ from those of the model",
    ]
    document["c1.weight"] |= {"scale": [0.5] * 7}
    (tmp_path / "q.json").write_text(json.dumps(document))
    lines = run("params", "check", str(tmp_path / "q.json"), str(folder / "m.onnx")).stdout.splitlines()
    assert lines[0] == "wrong: c1.weight: it has 7 scales, but the tensor has shape [8, 3, 3, 3]"


def test_layers_are_checked_by_name(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "q.table").write_text("conv_param_0 1.0\nconv 2.0\n")
    outcome = run("params", "check", str(tmp_path / "q.table"), str(folder / "m.onnx"))
    assert outcome.status == 1
    assert outcome.stdout.startswith("wrong: conv: the model has no layer of that name")


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (
            ("params", "show", "none.json"),
            2,
            "error[TM6042]: cannot read the quantization parameters: No such file",
        ),
        (("params", "show", MODEL), 2, "error[TM6042]"),
        (("params", "check", "{q}", "none.onnx"), 1, "error[TM1001]"),
        (("params", "check", "{q}", "{q}"), 1, "error[TM1009]"),
        (("params", "check", "{q}", str(corpus.model("op_pad"))), 2, "error[TM6040]"),
        (("params", "check", "{q}", "{m}", "--target", "onnx"), 2, "error[TM6002]: target is 'onnx'"),
        (("params", "convert", "{q}", "{o}", "--to", "yaml"), 2, "error[TM6002]: there is no format 'yaml'"),
        (("params", "convert", "{q}", "{o}", "--to", "ncnn"), 2, "error[TM6041]"),
        (("onnx", MODEL, "{o}", "--qparams", "{o}"), 2, "error[TM6007]: two outputs would be the same file"),
        (("onnx", MODEL, "{o}", "--qparams-format", "aimet"), 2, "error[TM6002]"),
        (
            ("onnx", MODEL, "{o}", "--qparams", "{p}", "--quantized"),
            2,
            "error[TM6002]: qparams applies to a plain",
        ),
        (("onnx", str(corpus.model("op_pad")), "{o}", "--qparams", "{p}"), 2, "error[TM6040]"),
        (("tflite", MODEL, "{o}", "--qparams", "{p}", "--qparams-format", "ncnn"), 2, "error[TM6041]: ncnn"),
        (
            ("onnx", MODEL, "{o}", "--qparams", "/nowhere/q.json"),
            1,
            "error[TM5001]: cannot write /nowhere/q.json",
        ),
    ],
)
def test_errors(arguments: tuple[str, ...], status: int, text: str, folder: Path, tmp_path: Path) -> None:
    names = {"q": folder / "q.json", "m": folder / "m.onnx", "o": tmp_path / "o", "p": tmp_path / "p"}
    outcome = run(*(each.format(**names) if each.startswith("{") else each for each in arguments))
    assert (outcome.status, text in outcome.stderr) == (status, True), outcome.stderr
    assert not any(tmp_path.iterdir())


def test_other_parameters_are_not_of_the_model(folder: Path, tmp_path: Path) -> None:
    wrong = changed(folder, tmp_path / "q.json", "x", "y")
    outcome = run(
        "params", "convert", wrong, str(tmp_path / "o"), "--to", "aimet", "--model", str(folder / "m.onnx")
    )
    assert (
        outcome.status == 2
        and "error[TM6043]: the parameters do not belong to this model: y: the model has no tensor"
        in outcome.stderr
    )


@pytest.mark.parametrize(("target", "suffix"), [("onnx", "onnx"), ("tflite", "tflite")])
def test_a_file_with_rounded_weights_is_verified_as_such(target: str, suffix: str, tmp_path: Path) -> None:
    out = str(tmp_path / f"m.{suffix}")
    assert run(target, MODEL, out, "--fake-quant-weights").status == 0
    assert run("verify", MODEL, out).status == 0


def test_the_group_alone_shows_its_help() -> None:
    outcome = run("params")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert outcome.stderr == run("params", "--help").stdout
