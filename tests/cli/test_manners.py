"""Small comforts of the command line: doctor, --quiet, options of other tools, PowerShell."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest

from tests.cli.runner import model, run, spawn
from tmconvert._version import __version__
from tmconvert.inspection import environment as machine

CONV = model("op_s_conv_bn_relu")


def test_doctor() -> None:
    outcome = run("doctor")
    assert (outcome.status, outcome.stderr) == (0, "")
    lines = outcome.stdout.splitlines()
    assert lines[0].split() == ["tmconvert", __version__]
    assert any(line.split()[:2] == ["numpy", np.__version__] for line in lines)
    document = run("doctor", "--json").json
    assert document["packages"]["numpy"] == np.__version__
    assert document["python"].startswith(platform.python_version())


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        ("fpu avx2 avx512_vnni", "exact here"),
        ("fpu avx2 avx512f", "saturates"),
        (None, "unknown"),
    ],
)
def test_what_a_processor_means_for_integers(
    flags: str | None, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_cpuinfo", lambda: {} if flags is None else {"flags": flags})
    monkeypatch.setattr(machine.platform, "machine", lambda: "x86_64")
    assert word in machine.environment().integers
    monkeypatch.setattr(machine.platform, "machine", lambda: "arm64")
    assert machine.environment().integers.startswith("exact")


def test_missing_packages_are_shown_with_the_way_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_installed", lambda package: None)
    text = "\n".join(machine.environment().lines())
    assert "missing: pip install 'tmconvert[runtimes]'" in text


def test_quiet_prints_results_and_errors_only(tmp_path: Path) -> None:
    outcome = run("onnx", CONV, tmp_path / "o.onnx", "-q", "--no-verify")
    assert outcome.status == 0 and outcome.stderr == "" and "o.onnx  (ONNX" in outcome.stdout
    outcome = run("onnx", tmp_path / "none.tm", tmp_path / "o.onnx", "--quiet")
    assert outcome.status == 1 and outcome.stderr.startswith("error[TM1001]")
    assert run("onnx", CONV, tmp_path / "o.onnx", "--no-verify").stderr.startswith("not verified")


@pytest.mark.parametrize(
    ("target", "option", "use"),
    [
        ("onnx", "--fp16", ": use --float-type float16"),
        ("tflite", "--fp16", ": use --weights float16"),
        ("tflite", "--int8", ": use --quantized (--calibration DATA for float models)"),
        ("onnx", "--opset-version", ": use --opset N"),
        ("tflite", "--opset-version", ""),
        ("tflite", "--bf16", ""),
        ("caffe", "--skip-verify", ": use --no-verify"),
        ("onnx", "--silent", ": use --quiet"),
        ("onnx", "--opsett", ", did you mean --opset?"),
        ("calibrate", "--calibration", ": use --data DATA"),
        ("onnx", "--data", ": use --calibration DATA"),
    ],
)
def test_options_of_other_tools(target: str, option: str, use: str) -> None:
    outcome = run(target, "a.tm", "b.x", option)
    assert outcome.status == 2
    assert outcome.stderr.splitlines()[0] == f"error[TM6010]: unknown option {option}{use}"


def test_words_before_the_command() -> None:
    assert run("-q", "onnx").stderr.startswith("error[TM6010]: unknown option -q; options follow the command")
    assert "unknown command 'help', did you mean '--help'?" in run("help").stderr


def test_paths_that_are_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets/small.py").write_text("make = None")
    monkeypatch.chdir(tmp_path)
    assert "name the factory by its module: nets.small:make" in run("inspect", "nets/small:make").stderr
    assert "convert all of them: tmconvert convert nets" in run("inspect", "nets").stderr


def test_a_missing_argument_shows_the_example() -> None:
    outcome = run("run", "digits.onnx")
    assert outcome.status == 2
    assert " = example: tmconvert run model.tflite -i cat.png --std 1 -o y.npz" in outcome.stderr


@pytest.mark.slow
def test_completion_in_powershell() -> None:
    script = spawn(_TMCONVERT_COMPLETE="powershell_source").stdout
    assert script.startswith("Register-ArgumentCompleter -Native -CommandName ")
    words = {"COMP_WORDS": r"tmconvert onnx c:\models\a.tm o.onnx --integer-weights Mat", "COMP_CWORD": "Mat"}
    found = spawn(_TMCONVERT_COMPLETE="powershell_complete", **words).stdout
    assert found == "plain\tMatMulNBits\t\n"
