"""``tmconvert optimize``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tmconvert.cli.keywords import tracing_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.pass_log import pass_lines
from tmconvert.cli.rendering import write, write_json, write_message
from tmconvert.conversion.format_numbers import counted, size
from tmconvert.conversion.output_paths import CONTAINER_SUFFIXES, check_names, keep_model


@click.command(
    "optimize",
    cls=GroupedCommand,
    example="tmconvert optimize model.tm smaller.tm --pass FuseConvBn --pass BackwardFoldScale",
)
@model_argument
@click.argument("output", metavar="OUT.tm", type=click.Path())
@declared_options("optimize")
def command(model: str, output: str, json: bool, verbose: int, **given: Any) -> None:
    """Run passes on MODEL, and write it to OUT.tm as a flat graph of ATen-style ops.

    Names are MegEngine's, tmconvert's, and those of the passes that a plugin registers.
    """
    tracing, keywords = tracing_of("optimize", given)
    from tmconvert import api
    from tmconvert.output.atomic import check_writable
    from tmconvert.surgery.module import users_model
    from tmconvert.symbolics.registry import catalogue
    from tmconvert.transform.optimize import optimize_model

    check_names("models", CONTAINER_SUFFIXES, [Path(output)])
    keep_model(model, Path(output))
    check_writable(output)
    with logging_to_stderr(False), progress(f"optimizing {model}"):
        source = api.load(model, **tracing)
        made, manager = optimize_model(source, keywords.get("passes", ["FuseConvBn"]), catalogue())
        users_model(made).save(output)
    write_message(*made.notes)
    if verbose:
        write_message(*pass_lines(manager.records, shows_all=verbose > 1))
    assert made.graph is not None
    changes = [(record.name, len(record.done), len(record.refused)) for record in manager.records]
    if json:
        passes = [{"name": name, "changes": done, "refusals": refused} for name, done, refused in changes]
        written = Path(output).stat().st_size
        document = {"model": model, "path": output, "bytes": written, "passes": passes, "notes": made.notes}
        write_json(document)
        return
    total = sum(done for _, done, _ in changes)
    about = f"{counted(len(made.graph), 'expression')}, {counted(total, 'change')}"
    write(f"{output}  ({about}, {size(Path(output).stat().st_size)})")
