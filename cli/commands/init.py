"""``tmconvert init``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from tmconvert.cli.option_values import separated
from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import write
from tmconvert.targets.option import REPEATED, Option


@click.command("init", cls=GroupedCommand, example="tmconvert init model.tm")
@click.argument("models", metavar="[MODEL...]", nargs=-1, type=click.Path())
@declared_options("init")
def command(models: tuple[str, ...], output: str | None, targets: tuple[str, ...]) -> None:
    """Write a commented tmconvert.toml for MODEL, with all options of the targets.

    `tmconvert convert` reads it. A file that exists is not replaced.
    """
    from tmconvert.cli.batch.configuration import FILE, check_target
    from tmconvert.errors import UsageError
    from tmconvert.output.atomic import staged_outputs

    path = Path(output or FILE)
    if path.exists():
        raise UsageError(
            "TM6091",
            f"{path} exists already, and `tmconvert init` replaces no file",
            notes=[("help", "name another file: -o FILE.toml, which `tmconvert convert -c FILE.toml` reads")],
        )
    targets = separated(targets) or ("onnx", "tflite")
    for target in targets:
        check_target(target)
    text = "\n".join(_lines(models or ("model.tm",), targets))
    with staged_outputs(path) as (staged,):
        staged.file.write(f"{text}\n".encode())
        staged.commit()
    write(f"{path}  (run `tmconvert convert`)")


def _lines(models: tuple[str, ...], targets: tuple[str, ...]) -> Iterator[str]:
    yield "# Conversions that `tmconvert convert` does. Relative paths start at the folder of this file."
    yield "# A line that begins with # is a comment; options are those of `tmconvert TARGET --help`."
    yield ""
    yield 'folder = "out"  # of the written files'
    yield f"targets = {json.dumps(list(targets))}"
    for target in targets:
        yield ""
        yield f"[{target}]"
        yield from _options(target)
    for model in models:
        yield ""
        yield "[[models]]"
        yield f"model = {json.dumps(model)}  # a path, a pattern, a folder, or MODULE:FACTORY"


def _options(target: str) -> Iterator[str]:
    from tmconvert.cli.batch.configuration import OF_A_RUN
    from tmconvert.conversion.options.commands import conversion_options

    for option in conversion_options(target):
        if option.is_flag and option.name not in OF_A_RUN:
            yield f"# {option.name} = {_value(option)}  # {option.help}"


def _value(option: Option) -> str:
    """Returns a value of an option in TOML, for a reader to replace."""
    if option.kind == "switch":
        return "false" if option.default else "true"
    values = [*option.choices, *option.suggestions, option.metavar or option.value_name]
    if option.kind in REPEATED:
        return json.dumps([values[-1]])
    return option.default_text if option.default_text.isdigit() else json.dumps(values[0])
