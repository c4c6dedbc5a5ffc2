"""``tmconvert rebuild``."""

from __future__ import annotations

import click

from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import write, write_json


@click.command("rebuild", cls=GroupedCommand, example="tmconvert rebuild model.lock -o again/")
@click.argument("lock", metavar="LOCK", type=click.Path())
@declared_options("rebuild")
@click.pass_context
def command(
    ctx: click.Context, /, lock: str, source: str | None, folder: str | None, allow_code: bool, json: bool
) -> None:
    """Convert a model again as LOCK records it, and compare the files with those of then.

    LOCK is a file that a conversion with --lock wrote. Sources, versions and processor features that are not
    those of LOCK are listed. The exit status is 1 when a file has other bytes.
    """
    from tmconvert import api

    with logging_to_stderr(False), progress(f"rebuilding {lock}"):
        found = api.rebuild(lock, source, folder=folder, allow_code=allow_code)
    if json:
        write_json(found.to_json())
    else:
        write(*found.lines())
    ctx.exit(0 if found.ok else 1)
