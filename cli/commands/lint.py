"""``tmconvert lint``."""

from __future__ import annotations

import click

from tmconvert.cli.messages import logging_to_stderr
from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import write, write_json
from tmconvert.cli.violations import violation_lines
from tmconvert.symbolics.dialects import DIALECTS


@click.command("lint", cls=GroupedCommand, example="tmconvert lint model.prototxt --dialect nnie")
@click.argument("prototxt", metavar="FILE.prototxt", type=click.Path())
@declared_options("lint")
@click.pass_context
def command(ctx: click.Context, prototxt: str, dialect: str | None, json: bool) -> None:
    """Check a Caffe prototxt against a dialect.

    FILE may come from any tool: its text, its layers and fields, the order and the shapes of its blobs, and
    the limits of the dialect are checked. The exit status is 1 when anything is wrong.
    """
    from tmconvert import api

    name = dialect or DIALECTS[0]
    with logging_to_stderr(False):
        found = api.lint(prototxt, name)
    if json:
        write_json(
            {
                "file": prototxt,
                "dialect": name,
                "ok": not found,
                "violations": [violation.to_json() for violation in found],
            }
        )
    elif found:
        write(*violation_lines(found, name))
    else:
        write([("ok", "bold green"), (f": {prototxt} keeps to the dialect {name}", "")])
    ctx.exit(1 if found else 0)
