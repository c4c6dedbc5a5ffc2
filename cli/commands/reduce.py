"""``tmconvert reduce``."""

from __future__ import annotations

import click

from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.rendering import write, write_json


@click.command(
    "reduce",
    cls=GroupedCommand,
    example="""\
tmconvert reduce model.onnx -o small.onnx --to tflite
tmconvert reduce model.onnx -o small.onnx -- python convert.py {}""",
)
@model_argument
@click.argument("words", metavar="[-- COMMAND...]", nargs=-1, type=click.UNPROCESSED)
@declared_options("reduce")
def command(
    model: str, words: tuple[str, ...], output: str, target: str | None, time_limit: float | None, json: bool
) -> None:
    """Reduce MODEL, whose conversion fails, to the smallest model that fails in the same way.

    With COMMAND, in which {} stands for a model, it is that which fails: another converter, or tmconvert with
    options. Each run is a process of its own. The result has no weights of MODEL, unless they are needed.
    """
    from tmconvert import api

    suffixes = {"onnx": "onnx", "tflite": "tflite", "caffe": "prototxt"}
    target = target or "onnx"
    words = words or ("tmconvert", target, "{}", f"{{}}.out.{suffixes[target]}")
    with logging_to_stderr(False), progress(f"reducing {model}"):
        found = api.reduce(model, output, command=words, time_limit=time_limit or 60.0)
    if json:
        write_json(found.to_json())
    else:
        write(*found.lines())
