"""``tmconvert diff``."""

from __future__ import annotations

from typing import Any

import click

from tmconvert.cli.keywords import keywords_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import write, write_json


@click.command(
    "diff", cls=GroupedCommand, example="tmconvert diff old.onnx new.onnx --fail-on operators,size+5%"
)
@click.argument("first", metavar="A", type=click.Path())
@click.argument("second", metavar="B", type=click.Path())
@declared_options("diff")
@click.pass_context
def command(ctx: click.Context, /, first: str, second: str, markdown: bool, json: bool, **given: Any) -> None:
    """List what changed from the model or file A to B: operators, weights, types, names and sizes.

    Files of one format are compared as they are stored, models of different kinds as graphs of ATen-style
    ops. The exit status is 1 when a condition of --fail-on does not hold.
    """
    from tmconvert import api

    with logging_to_stderr(False), progress(f"comparing {second}"):
        found = api.diff(first, second, **keywords_of("diff", given))
    if json:
        write_json(found.to_json())
    elif markdown:
        write(*found.markdown().splitlines())
    else:
        write(*found.lines())
    ctx.exit(0 if found.ok else 1)
