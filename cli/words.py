"""The command that is meant by words which do not begin with one: ``tmconvert model.tm model.onnx``."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

import click

from tmconvert.conversion.output_paths import COMMANDS, command_of_suffix

# what other programs call a command
COMMANDS_OF_OTHER_TOOLS = {
    **dict.fromkeys(("help", "--help"), "--help"),
    **dict.fromkeys(("info", "summary", "show", "print", "describe"), "inspect"),
    **dict.fromkeys(("benchmark", "time", "profile", "latency"), "bench"),
    **dict.fromkeys(("diff", "debug"), "compare"),
    **dict.fromkeys(("eval", "accuracy"), "evaluate"),
    **dict.fromkeys(("visualize", "draw", "netron", "plot"), "view"),
    **dict.fromkeys(("infer", "predict"), "run"),
    **dict.fromkeys(("quantize", "quantise"), "tflite MODEL OUT.tflite --quantized --calibration DATA"),
    **dict.fromkeys(("export", "to-onnx", "to_onnx"), "onnx"),
    **dict.fromkeys(("slim", "onnxsim", "onnxslim"), "simplify"),
    "fuse": "optimize",
    "version": "--version",
}


def command_of_words(words: Sequence[str], known: Sequence[str], ctx: click.Context) -> str:
    """Returns the command for a model and an output, by the suffix of the output.

    Raises click.UsageError where the first word is neither a command nor a model, or no suffix is known.
    """
    from tmconvert.frontends.torch.entry import is_factory
    from tmconvert.frontends.torch.hub_cache import cached_folder

    name, files = words[0], [each for each in words[1:] if not each.startswith("-")]
    commands = [command for each in files if (command := command_of_suffix(each))]
    is_model = is_factory(name) or Path(name).exists() or cached_folder(name) is not None
    if is_model and commands:
        return commands[0]
    if is_model and not files:
        raise click.UsageError(f"{name!r} is a model: write a command, as in `tmconvert inspect {name}`", ctx)
    if is_model:
        suffixes = ", ".join(COMMANDS)
        raise click.UsageError(
            f"the suffix of {files[0]} does not name a target: use one of {suffixes}, or write the command "
            f"first, as in `tmconvert onnx {name} {files[0]}`",
            ctx,
        )
    raise click.UsageError(_unknown(name, known, has_output=bool(commands)), ctx)


def _unknown(name: str, known: Sequence[str], *, has_output: bool) -> str:
    """Returns the message for a first word that is neither a command nor a model."""
    if name.lower() == "completion":
        text = "the end of `tmconvert --help` shows how to complete commands in a shell"
        return f"unknown command {name!r}: {text}"
    other = COMMANDS_OF_OTHER_TOOLS.get(name.lower())
    close = [other] if other else difflib.get_close_matches(name.lower(), known, n=1)
    if close:
        return f"unknown command {name!r}, did you mean {close[0]!r}?"
    if has_output or command_of_suffix(name):
        return f"there is no model {name!r}, and no command of that name"
    return f"{name!r} is neither a command nor a model"
