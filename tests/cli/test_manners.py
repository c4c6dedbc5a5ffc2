"""Small comforts of the command line: doctor, --quiet, options of other tools, PowerShell."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import numpy as np
import pytest

from tests.cli.runner import model, run, spawn
from tmconvert._version import __version__
from tmconvert.cli.batch.configuration import tomllib
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


def test_the_way_to_a_package_is_an_extra_with_it() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    for package, (_, install) in machine.PACKAGES.items():
        extra = install.partition("[")[2].partition("]")[0]
        requirements = project["optional-dependencies"][extra] if extra else project["dependencies"]
        assert any(re.match(rf"{package}\b(?!-)", each) for each in requirements), package


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
        ("onnx", "--int4", ": use --weights int4"),
        ("tflite", "--int4", ": use --weights int4"),
        ("caffe", "--int4", ""),
    ],
)
def test_options_of_other_tools(target: str, option: str, use: str) -> None:
    outcome = run(target, "a.tm", "b.x", option)
    assert outcome.status == 2
    assert outcome.stderr.splitlines()[0] == f"error[TM6010]: unknown option {option}{use}"


def test_words_before_the_command() -> None:
    assert run("-q", "onnx").stderr.startswith("error[TM6010]: unknown option -q; options follow the command")
    assert "unknown command 'help', did you mean '--help'?" in run("help").stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("benchmark a.onnx", "unknown command 'benchmark', did you mean 'bench'?"),
        ("onxn a.tm a.onnx", "unknown command 'onxn', did you mean 'onnx'?"),
        (
            "quantize a.tm",
            "unknown command 'quantize', did you mean 'tflite MODEL OUT.tflite --quantized --calibration "
            "DATA'?",
        ),
        (
            "completion bash",
            "unknown command 'completion': the end of `tmconvert --help` shows how to complete commands in a "
            "shell",
        ),
        ("a.tm", "'a.tm' is a model: write a command, as in `tmconvert inspect a.tm`"),
        ("b.tm o.onnx", "there is no model 'b.tm', and no command of that name"),
        ("b.tm", "there is no model 'b.tm', and no command of that name"),
        ("xyzzy", "'xyzzy' is neither a command nor a model"),
        ("a.tm o.tflite --opset 3", "unknown option --opset"),
        (
            "a.tm o.engine",
            "the suffix of o.engine does not name a target: use one of .onnx, .tflite, .lite, .prototxt, "
            ".caffemodel, .tm, .html, .htm, or write the command first, as in `tmconvert onnx a.tm o.engine`",
        ),
    ],
)
def test_words_that_are_not_a_command(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.tm").write_bytes(b"")
    outcome = run(*words.split())
    assert outcome.status == 2
    assert outcome.stderr.splitlines()[0] == f"error[TM6010]: {said}"


@pytest.mark.parametrize(
    ("words", "files"),
    [
        (["--opset", "13", "o.onnx"], ["o.onnx"]),
        (["-o", "o.tflite"], ["o.tflite"]),
        (["o.prototxt"], ["o.caffemodel", "o.prototxt"]),
        (["o.caffemodel"], ["o.caffemodel", "o.prototxt"]),
    ],
)
def test_the_suffix_of_the_output_chooses_the_target(
    words: list[str], files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = run(CONV, *words, "--no-verify")
    assert outcome.status == 0, outcome.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_the_suffix_tm_saves(tmp_path: Path) -> None:
    assert run(CONV, tmp_path / "o.tm").stdout.startswith(f"{tmp_path / 'o.tm'}  (")


def test_suffixes_of_pages(tmp_path: Path) -> None:
    said = run("view", CONV, "-o", tmp_path / "net.svg").stderr
    assert "the suffix .svg; that of pages is .html" in said and "the SVG button of the page" in said
    assert "or use `tmconvert onnx`" in run("view", CONV, "-o", tmp_path / "net.onnx").stderr
    assert list(tmp_path.iterdir()) == []


def test_parts_of_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net").mkdir()
    for name, content in (
        ("net.prototxt", b""),
        ("net.caffemodel", b"\n\x03net"),
        ("alone.safetensors", b'\x02\0\0\0\0\0\0\0{"a": 1}'),
        ("net/model.safetensors", b'\x02\0\0\0\0\0\0\0{"a": 1}'),
        ("net/config.json", b'{"model_type": "bert"}'),
    ):
        Path(name).write_bytes(content)
    for path, help in (
        ("net.caffemodel", "pass its prototxt: net.prototxt"),
        (
            "alone.safetensors",
            "write a function that makes the module and calls safetensors.torch.",
        ),
        ("net/model.safetensors", "pass the folder, in which config.json states the computation: net"),
        ("net/config.json", "pass the folder, in which config.json states the computation: net"),
    ):
        lines = run("onnx", path, "o.onnx").stderr.splitlines()
        assert lines[0].startswith("error[TM1002]") and lines[-1].startswith(f"   = help: {help}"), lines


def test_paths_that_are_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets/small.py").write_text("make = None")
    monkeypatch.chdir(tmp_path)
    assert "name the factory by its module: nets.small:make" in run("inspect", "nets/small:make").stderr
    assert "convert all of them: tmconvert convert nets" in run("inspect", "nets").stderr


def test_a_missing_argument_shows_the_example() -> None:
    outcome = run("compare", "digits.onnx")
    assert outcome.status == 2
    assert " = example: tmconvert compare model.tm int8.tflite" in outcome.stderr


def test_the_output_is_an_argument_or_an_option_of_every_command(tmp_path: Path) -> None:
    def is_written(*args: str | Path) -> bool:
        outcome = run(*args)
        assert outcome.status == 0, outcome.stderr
        names = (str(each).removeprefix("--output=") for each in args)
        path = next(Path(each) for each in names if Path(each).parent == tmp_path)
        found = path.is_file()
        path.unlink()
        return found

    out = tmp_path / "o.onnx"
    assert is_written("onnx", CONV, "-o", out, "--no-verify")
    assert is_written("onnx", "--no-verify", f"--output={out}", CONV)
    assert is_written("save", CONV, "--output", tmp_path / "o.tm")
    assert is_written("optimize", "-o", tmp_path / "o.tm", CONV)
    assert is_written("view", CONV, tmp_path / "o.html")
    assert "got unexpected extra argument (b.html)" in run("view", CONV, "a.html", "b.html").stderr
    assert "got unexpected extra argument (a.html)" in run("view", CONV, "-o", "b.html", "a.html").stderr
    pytest.importorskip("torch")
    outcome = run("trace", "torch.nn:Identity", tmp_path / "o.tm", "--input", "float32[2,3]")
    assert outcome.status == 0 and (tmp_path / "o.tm").is_file()


def test_an_option_with_one_value_is_given_once() -> None:
    outcome = run("onnx", CONV, "o.onnx", "--report", "a.html", "--report", "b.json")
    said = "error[TM6010]: --report is given more than once, and takes one value"
    assert (outcome.status, outcome.stderr.splitlines()[0]) == (2, said)


@pytest.mark.slow
def test_completion_in_powershell() -> None:
    script = spawn(_TMCONVERT_COMPLETE="powershell_source").stdout
    assert script.startswith("Register-ArgumentCompleter -Native -CommandName ")
    words = {"COMP_WORDS": r"tmconvert onnx c:\models\a.tm o.onnx --integer-weights Mat", "COMP_CWORD": "Mat"}
    found = spawn(_TMCONVERT_COMPLETE="powershell_complete", **words).stdout
    assert found == "plain\tMatMulNBits\t\n"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--allow-random", "--seed", "-1"), "seed must be an integer from 0 to 2147483647, got -1"),
        (("--allow-random", "--seed=-1"), "seed must be an integer from 0 to 2147483647, got -1"),
        (("--outputs", "-y"), "the model has no node '-y'"),
        (("--mean", "-0.5,x"), "'-0.5,x' must be numbers"),
        (("--mean",), "option '--mean' requires an argument"),
    ],
)
def test_a_value_may_begin_with_a_hyphen(options: tuple[str, ...], text: str, tmp_path: Path) -> None:
    outcome = run("tflite", CONV, tmp_path / "m.tflite", *options)
    assert outcome.status != 0
    assert text in " ".join(outcome.stderr.split())


def test_a_negative_mean(tmp_path: Path) -> None:
    data = tmp_path / "d.npz"
    np.savez(data, x=np.arange(128, dtype=np.uint8).reshape(2, 1, 8, 8))
    digits = Path(__file__).parents[2] / "samples" / "digits.tm"
    outcome = run("calibrate", digits, "-d", data, "-o", tmp_path / "q.tm", "--mean", "-0.5", "--std", "1")
    assert outcome.status == 0, outcome.stderr
