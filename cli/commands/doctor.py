"""``tmconvert doctor``."""

from __future__ import annotations

import click

from tmconvert.cli.messages import logging_to_stderr
from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import Line, write, write_json


@click.command("doctor", cls=GroupedCommand, example="tmconvert doctor")
@declared_options("doctor")
def command(json: bool) -> None:
    """Show versions, runtimes and processor features, to be pasted into a bug report.

    What is missing is shown with the command that installs it, and what the processor means for integers.
    """
    from tmconvert.inspection.environment import environment

    with logging_to_stderr(False):
        found = environment()
    if json:
        write_json(found.to_json())
        return
    for line in found.lines():
        name, gap, rest = line.partition(" ")
        styled: Line = line if line.startswith(" ") or not line else [(name, "bold"), (gap + rest, "")]
        write(styled)
