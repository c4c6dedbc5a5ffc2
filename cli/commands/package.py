"""``tmconvert package``."""

from __future__ import annotations

from typing import Any

import click

from tmconvert.cli.keywords import keywords_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import write, write_json, write_message


@click.command(
    "package",
    cls=GroupedCommand,
    example="""\
tmconvert package folder/ -o out/ --for onnxruntime-genai --weights int4""",
)
@click.argument("source", metavar="SOURCE", type=click.Path())
@declared_options("package")
def command(source: str, output: str, json: bool, **given: Any) -> None:
    """Write the folder that a program opens: model files, configuration and tokenizer.

    SOURCE is a folder of transformers, or the name of one in the local cache of Hugging Face. The folder gets
    its name after the program has opened it and computed what PyTorch does; where the program is not
    installed, the report says so.
    """
    from tmconvert import api

    with logging_to_stderr(False), progress(f"packaging {source}"):
        report = api.package(source, output, **keywords_of("package", given))
    write_message(*report.notes)
    if json:
        write_json(report.to_json())
    else:
        write(*report.lines())
