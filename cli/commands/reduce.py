"""``tmconvert reduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tmconvert.cli.keywords import keywords_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.rendering import write, write_json


@click.command(
    "reduce",
    cls=GroupedCommand,
    example="""\
tmconvert reduce model.onnx -o small.onnx --to tflite
tmconvert reduce model.onnx -o small.onnx -- python convert.py {}
tmconvert reduce net:make -o net.py --to tflite --for-report""",
)
@model_argument
@click.argument("words", metavar="[-- COMMAND...]", nargs=-1, type=click.UNPROCESSED)
@declared_options("reduce")
def command(
    model: str, words: tuple[str, ...], output: str, target: str | None, json: bool, **given: Any
) -> None:
    """Reduce MODEL, whose conversion fails, to the smallest model that fails in the same way.

    With COMMAND, in which {} stands for a model, it is that which fails: another converter, or tmconvert with
    options. Each run is a process of its own. The result has no weights of MODEL, unless they are needed. A
    factory of a PyTorch module, with --input, is run and not traced, so that its trace may be what fails.
    """
    from tmconvert import api

    suffixes = {"onnx": "onnx", "tflite": "tflite", "caffe": "prototxt"}
    target = target or "onnx"
    words = words or ("tmconvert", target, "{}", f"{{}}.out.{suffixes[target]}")
    with logging_to_stderr(False), progress(f"reducing {model}"):
        found = api.reduce(model, output, command=words, **keywords_of("reduce", given))
    if found.report:
        page = Path(output).with_suffix(".md")
        page.write_text(found.report, encoding="utf-8")
    if json:
        write_json(found.to_json())
    else:
        write(*found.lines())
