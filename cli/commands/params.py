"""``tmconvert params``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tmconvert.cli.group import help_without_command
from tmconvert.cli.messages import logging_to_stderr
from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import write, write_json, write_table
from tmconvert.conversion.quantization_options import QPARAMS_FORMATS
from tmconvert.conversion.wording import counted

if TYPE_CHECKING:
    from tmconvert.qparams.records import Record


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
    from tmconvert.qparams.file import read_parameters

    records, format = read_parameters(Path(file), source_format)
    if json:
        entries = [record.to_json() for record in records]
        write_json({"file": file, "format": format.name, "tensors": entries})
        return
    write(f"{file}: {format.title}, {counted(len(records), 'tensor')}")
    header = ["tensor", "role", "type", "scale", "zero point", "range"]
    write_table(header, [_row(record) for record in records])


def _row(record: Record) -> list[str]:
    if not record.dtype:
        integers = span = "?"
    else:
        integers = record.dtype
        span = f"{min(record.minima):.6g} to {max(record.maxima):.6g}"
    return [
        record.name,
        "?" if record.role == "unknown" else record.role,
        integers,
        _several([f"{scale:.6g}" for scale in record.scales], record.axis),
        _several([str(zero) for zero in record.zero_points], None),
        span,
    ]


def _several(texts: list[str], axis: int | None) -> str:
    text = texts[0] if len(set(texts)) == 1 else f"{texts[0]} ... {texts[-1]}"
    along = "" if axis is None else f" along {axis}"
    is_one = len(texts) == 1 or (len(set(texts)) == 1 and axis is None)
    return text if is_one else f"{text} ({len(texts)}{along})"


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
    from tmconvert.conversion.qparams_files import convert_parameters

    with logging_to_stderr(False):
        text = convert_parameters(
            Path(file), Path(out), to, source_format, None if model is None else Path(model), partial
        )
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
    from tmconvert.conversion.qparams_files import check_parameters

    with logging_to_stderr(False):
        records, found = check_parameters(Path(file), model, source_format, target)
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
