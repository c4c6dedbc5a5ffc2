"""``tmconvert lint``."""

from __future__ import annotations

import click

from tmconvert.cli.messages import logging_to_stderr
from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import write, write_json
from tmconvert.cli.violations import violation_lines
from tmconvert.symbolics.dialects import DIALECTS


@click.command(
    "lint",
    cls=GroupedCommand,
    example="tmconvert lint model.tflite --profile ethos-u55\ntmconvert lint model.prototxt --dialect nnie",
)
@click.argument("file", metavar="FILE", type=click.Path())
@declared_options("lint")
@click.pass_context
def command(ctx: click.Context, file: str, dialect: str | None, profile: str | None, json: bool) -> None:
    """Check a file of any origin: a TFLite or an ONNX file against a profile, a prototxt against a dialect.

    A profile has the operators, types, ranks and attributes that an accelerator or a small runtime runs, and
    those that it computes wrongly. Of a prototxt the text, the layers and fields, the order and the shapes of
    its blobs, and the limits of the dialect are checked. The exit status is 1 when anything is wrong.
    """
    from tmconvert import api

    if profile and dialect:
        raise click.UsageError("--profile is for TFLite and ONNX files, --dialect for a prototxt: give one")
    name = profile or dialect or DIALECTS[0]
    with logging_to_stderr(False):
        found = api.lint(file, name, profile=profile)
    kind = "profile" if profile else "dialect"
    if json:
        write_json(
            {
                "file": file,
                kind: name,
                "ok": not found,
                "violations": [violation.to_json() for violation in found],
            }
        )
    elif found:
        write(*violation_lines(found, f"{kind} {name}"))
    else:
        write([("ok", "bold green"), (f": {file} keeps to the {kind} {name}", "")])
    ctx.exit(1 if found else 0)
