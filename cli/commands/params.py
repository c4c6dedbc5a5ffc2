"""``tmconvert params``."""

from __future__ import annotations

import click

from tmconvert.cli.group import help_without_command
from tmconvert.cli.messages import logging_to_stderr
from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import write, write_json, write_table
from tmconvert.conversion.format_numbers import counted
from tmconvert.conversion.options.conversion import QPARAMS_FORMATS

_HELP = f"""Show, convert and check files of quantization parameters.

Formats: {", ".join(QPARAMS_FORMATS)}.
docs/quantization-parameters.md lists what each can store.
"""


@click.group("params", invoke_without_command=True, help=_HELP)
@click.pass_context
def command(ctx: click.Context) -> None:
    help_without_command(ctx)


@command.command("show", cls=GroupedCommand)
@click.argument("file", metavar="FILE", type=click.Path())
@declared_options("params show")
def show(file: str, source_format: str | None, json: bool) -> None:
    """List the quantization parameters of each tensor in FILE."""
    from tmconvert import api

    found = api.params(file, source_format)
    if json:
        write_json(found.to_json())
        return
    header, *rows = found.rows()
    write(found.heading())
    write_table(header, rows)


@command.command("convert", cls=GroupedCommand)
@click.argument("file", metavar="FILE", type=click.Path())
@click.argument("out", metavar="OUT", type=click.Path())
@declared_options("params convert")
def convert(
    file: str, out: str, to: str, source_format: str | None, model: str | None, partial: bool
) -> None:
    """Write FILE in another format to OUT.

    If the format cannot store the parameters of a tensor, the command fails with the name of that tensor.
    """
    from tmconvert import api

    with logging_to_stderr(False):
        text = api.params(file, source_format).convert(out, to, model=model, partial=partial)
    write(*text.split("\n"))


@command.command("check", cls=GroupedCommand)
@click.argument("file", metavar="FILE", type=click.Path())
@click.argument("model", metavar="MODEL", type=click.Path())
@declared_options("params check")
@click.pass_context
def check(
    ctx: click.Context, file: str, model: str, source_format: str | None, target: str | None, json: bool
) -> None:
    """Check FILE against MODEL.

    MODEL is a written .onnx, .tflite or .prototxt, or a model to convert whose quantized tensors and scales
    are known. The exit status is 1 when anything is wrong.
    """
    from tmconvert import api

    with logging_to_stderr(False):
        read = api.params(file, source_format)
        records, found = read.records, read.check(model, target)
    wrong = [finding for finding in found if finding.is_wrong]
    if json:
        findings = [finding.to_json() for finding in found]
        write_json(
            {"file": file, "model": model, "ok": not wrong, "tensors": len(records), "findings": findings}
        )
    else:
        for finding in found:
            style = "bold red" if finding.is_wrong else "bold yellow"
            write([("wrong" if finding.is_wrong else "note", style), (f": {finding}", "")])
        if not wrong:
            write([("ok", "bold green"), (f": {file} fits {model}, {counted(len(records), 'tensor')}", "")])
    ctx.exit(1 if wrong else 0)
