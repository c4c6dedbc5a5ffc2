"""Help, version, completion, and how little they load."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import tmconvert
from tests.cli.runner import environment, run, spawn
from tmconvert.cli import COMMAND_GROUPS, COMMANDS, main
from tmconvert.cli.options import GroupedOption
from tmconvert.conversion.options.commands import COMMAND_OPTIONS
from tmconvert.symbolics.target_names import TARGETS
from tmconvert.targets.option import HEADINGS

DIGITS = Path(__file__).parents[2] / "samples" / "digits.tm"
HEAVY = {"cv2", "flatbuffers", "google.protobuf", "numpy", "onnx", "onnxruntime", "rich", "tflite", "torch"}

LOADED = """
import contextlib, io, json, sys
from tmconvert.cli import main
for args in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            main(args)
        except SystemExit as end:
            assert not end.code, (args, end.code)
print(json.dumps(sorted(sys.modules)))
"""


def loaded_after(*command_lines: list[str]) -> set[str]:
    program = [sys.executable, "-c", LOADED, json.dumps(command_lines)]
    done = subprocess.run(program, capture_output=True, text=True, env=environment(), timeout=60, check=True)
    return set(json.loads(done.stdout))


def test_help_loads_no_command_and_nothing_heavy() -> None:
    modules = loaded_after(["--help"], ["--version"])
    assert not HEAVY & modules
    assert not {f"tmconvert.cli.commands.{name}" for name in COMMANDS} & modules
    assert not any(name.startswith("tmconvert.conversion.options") for name in modules)


def test_help_of_commands_loads_nothing_heavy() -> None:
    modules = loaded_after(*([name, "--help"] for name in COMMANDS), ["explain", "TM2003"])
    assert not HEAVY & modules
    assert {f"tmconvert.cli.commands.{name}" for name in COMMANDS} <= modules


@pytest.mark.slow
def test_a_conversion_loads_no_code_for_transformations(tmp_path: Path) -> None:
    modules = loaded_after(["onnx", str(DIGITS), str(tmp_path / "out.onnx"), "--no-verify"])
    unused = {
        "torch_code.build",
        "torch_code.class_source",
        "transform.match",
        "transform.run_model",
        "ir.parser",
    }
    assert "tmconvert.targets.onnx.writer" in modules
    assert not {f"tmconvert.{name}" for name in unused} & modules


def test_help_lists_each_command_with_a_line() -> None:
    outcome = run("--help")
    assert (outcome.status, outcome.stderr) == (0, "")
    for name, line in COMMANDS.items():
        assert any(shown.split() == [name, *line.split()] for shown in outcome.stdout.splitlines())
    headings = re.findall(r"^(\w+):$", outcome.stdout, re.MULTILINE)
    assert headings == ["Options", *COMMAND_GROUPS] == ["Options", "Convert", "Look", "Change", "Check"]
    assert "3  a defect of tmconvert" in outcome.stdout
    assert "_TMCONVERT_COMPLETE=bash_source tmconvert" in outcome.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_a_command_agrees_with_its_help(name: str) -> None:
    outcome = run(name, "-h")
    assert outcome.status == 0
    assert outcome.stdout.startswith(f"Usage: tmconvert {name} ")
    assert COMMANDS[name].split()[0] in outcome.stdout


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("onnx", "MODEL OUT.onnx --opset --external-data --quantized --qparams --no-verify"),
        (
            "tflite",
            "MODEL OUT.tflite --quantized --calibration --qparams --io-layout nhwc|source --no-verify",
        ),
        ("caffe", "MODEL OUT.prototxt [OUT.caffemodel] --dialect bvlc --qparams --no-verify"),
        ("ops", "--target --opset --search --json"),
        ("save", "MODEL OUT.tm --format tm|megengine --json"),
        ("trace", "PACKAGE.MODULE:FACTORY --output MODEL.tm --input --dynamic --freeze-control-flow --json"),
        ("check", "MODEL --target --opset --json"),
        ("inspect", "MODEL --graph --tabular --json"),
        ("verify", "MODEL OUT --inputs FILE.npz --json"),
    ],
)
def test_the_contract(name: str, options: str) -> None:
    shown = run(name, "--help").stdout
    assert [word for word in options.split() if word not in shown] == []


@pytest.mark.parametrize("name", ["onnx", "tflite", "caffe"])
def test_options_of_all_conversions(name: str) -> None:
    shown = run(name, "--help-all").stdout
    for option in ("--json", "--verbose", "--dump-after", "--dump-folder", "--stop-after", "--time-passes"):
        assert option in shown


def sections(*command: str, flag: str = "") -> dict[str, list[str]]:
    """The lines of a help text by heading, at 80 columns; those before all headings under ``""``."""
    flag = flag or ("--help-all" if command[0] in (*TARGETS, "simplify") else "--help")
    lines = run(*command, flag, env={"COLUMNS": "80"}).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    found: dict[str, list[str]] = {"": []}
    for line in lines:
        if line.endswith(":") and not line.startswith((" ", "Usage")):
            found[line[:-1]] = []
        else:
            found[list(found)[-1]].append(line)
    return {heading: [line for line in lines if line] for heading, lines in found.items()}


@pytest.mark.parametrize("name", COMMAND_OPTIONS)
def test_help_shows_each_declared_option_under_its_heading(name: str) -> None:
    shown = sections(*name.split())
    headings = [heading for heading in shown if heading not in ("", "Other")]
    assert headings == [heading for heading in HEADINGS.values() if heading in headings]
    for option in COMMAND_OPTIONS[name]:
        if option.is_flag:
            lines = shown[HEADINGS[option.group]]
            assert any(f"{option.spelling} " in f"{line} " for line in lines)


@pytest.mark.parametrize("name", ["onnx", "tflite", "caffe"])
def test_help_of_conversions_has_the_usage_and_an_example_first_and_a_screen_for_each_group(
    name: str,
) -> None:
    shown = sections(name)
    assert shown[""][0].startswith(f"Usage: tmconvert {name} [OPTIONS] MODEL OUT.")
    assert shown[""][1].startswith(f"  Example: tmconvert {name} ")
    assert [heading for heading in shown if heading][:-1] == list(HEADINGS.values())
    assert max(map(len, shown.values())) <= 30


@pytest.mark.parametrize("name", TARGETS)
def test_the_short_help_of_conversions_has_examples_and_the_common_options(name: str) -> None:
    shown = sections(name, flag="--help")
    assert list(shown) == ["", "Common options"]
    assert sum(f" tmconvert {name} " in line for line in shown[""][1:]) >= 2
    flags = [line.split()[0] for line in shown["Common options"] if line.startswith("  -")]
    common = [each.spelling for each in COMMAND_OPTIONS[name] if each.is_common]
    assert flags == [*common, "-h,", "--help-all"]
    assert len(common) <= 14
    assert f"`tmconvert {name} --help-all` lists all options" in run(name).stderr


@pytest.mark.parametrize("name", COMMAND_OPTIONS)
def test_the_click_options_of_a_command_are_the_declared_ones(name: str) -> None:
    context, command = click.Context(main, **main.context_settings), main
    for word in name.split():
        found = command.get_command(context, word)  # type: ignore[attr-defined]
        assert found is not None
        command = found
    shared = ("plugin", "quiet")  # which every command has
    made = [each for each in command.params if isinstance(each, click.Option) and each.name not in shared]
    assert all(isinstance(each, GroupedOption) for each in made)
    assert [each.name for each in made] == [each.name for each in COMMAND_OPTIONS[name] if each.is_flag]


def test_version() -> None:
    assert run("--version").stdout == f"tmconvert {tmconvert.__version__}\n"


def test_no_command_is_wrong_usage() -> None:
    outcome = run()
    assert (outcome.status, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("Usage: tmconvert MODEL OUT")
    assert outcome.stderr.count("\n") < 12


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # click asks the bash that is installed for its version, and warns when there is none
    monkeypatch.setattr("click.shell_completion.BashComplete._check_version", lambda *_: None)
    outcome = run(env={"_TMCONVERT_COMPLETE": f"{shell}_source"})
    assert outcome.status == 0
    assert "_TMCONVERT_COMPLETE" in outcome.stdout
    assert "tmconvert" in outcome.stdout


def test_completion_of_commands_and_options() -> None:
    env = {"_TMCONVERT_COMPLETE": "bash_complete"}
    commands = spawn(**env, COMP_WORDS="tmconvert ", COMP_CWORD="1").stdout.splitlines()
    assert [line.partition(",")[2] for line in commands] == list(COMMANDS)
    targets = spawn(**env, COMP_WORDS="tmconvert check --target ", COMP_CWORD="3").stdout
    assert targets.splitlines() == ["plain,onnx", "plain,tflite", "plain,caffe"]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("tmconvert tflite --activations ", ["int8", "int16"]),
        ("tmconvert onnx --activations ui", ["uint8", "uint16"]),
        ("tmconvert onnx --method m", ["minmax", "mse"]),
        ("tmconvert caffe --dialect o", ["opencv"]),
        ("tmconvert onnx --qparams-format tens", ["tensorrt", "tensorrt-ranges", "tensorrt-json"]),
        ("tmconvert tflite --io-layout ", ["nhwc", "source"]),
        ("tmconvert tflite --runtime 2.2", ["2.2", "2.20", "2.21", "2.22", "2.23"]),
    ],
)
def test_completion_of_values(line: str, values: list[str]) -> None:
    env = {"_TMCONVERT_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": "3"}
    assert spawn(**env).stdout.splitlines() == [f"plain,{value}" for value in values]
