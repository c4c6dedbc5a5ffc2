"""``tmconvert check``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tmconvert.cli.conversion import version_of, version_text
from tmconvert.cli.io_options import boundary_arguments
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import (
    dialect_option,
    input_shape_option,
    json_option,
    model_argument,
    opset_option,
    outputs_option,
    runtime_option,
    tracing_options,
)
from tmconvert.cli.rendering import Line, write, write_json
from tmconvert.cli.tracing_options import tracing_arguments
from tmconvert.cli.violations import violation_lines
from tmconvert.cli.wording import counted
from tmconvert.symbolics.target_names import TARGETS

if TYPE_CHECKING:
    from tmconvert.ir.unsupported import UnsupportedGroup


@click.command("check")
@model_argument
@click.option("--target", type=click.Choice(TARGETS), required=True, help="What MODEL is to be converted to.")
@opset_option
@runtime_option
@dialect_option
@input_shape_option
@click.option("--inputs", metavar="NAME,...", help="Begin at these nodes of the graph.")
@outputs_option
@tracing_options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    target: str,
    opset: int | None,
    runtime: str | None,
    dialect: str | None,
    as_json: bool,
    examples: tuple[str, ...],
    freeze_control_flow: bool,
    allow_code: bool,
    **boundary: Any,
) -> None:
    """List every op of MODEL that would stop a conversion, at once.

    For Caffe also where the net would be beyond the limits of the dialect, by rule. The exit status is 1
    when there is anything.
    """
    version = version_of(target, opset=opset, runtime=runtime, dialect=dialect)
    edges = boundary_arguments(**boundary)
    tracing = tracing_arguments(examples, freeze_control_flow, allow_code)
    from tmconvert import api

    with logging_to_stderr(False), progress(f"checking {model}"):
        module = api.load(model, **tracing)
        groups = api.check(module, target, version, **edges)
        broken = []
        if target == "caffe" and not groups:
            broken = api.violations(module, str(version), **edges)
        missing = [] if groups or target != "onnx" else api.missing_kernels(module, int(version), **edges)
        enough = api.sufficient_opset(module, int(version), **edges) if groups and target == "onnx" else None
    if as_json:
        write_json(
            {
                "model": model,
                "target": target,
                "version": version,
                "ok": not groups and not broken,
                "unsupported": [group.to_json() for group in groups],
                "sufficient_opset": enough,
                "missing_kernels": missing,
                "violations": [violation.to_json() for violation in broken],
            }
        )
    elif groups:
        write(*_lines(groups, version_text(target, version)))
        if enough is not None:
            write("", f"opset {enough} and later can express all of them")
    elif broken:
        write(*violation_lines(broken, str(version)))
    else:
        write([("ok", "bold green"), (": every op can be converted", "")])
        write(*([("note", "bold yellow"), (f": {line}", "")] for line in missing))
    ctx.exit(1 if groups or broken else 0)


def _lines(groups: list[UnsupportedGroup], target: str) -> Iterator[Line]:
    calls = sum(group.calls for group in groups)
    yield f"{counted(len(groups), 'op')} in {counted(calls, 'call')} cannot be converted to {target}"
    for group in groups:
        yield ""
        yield [(group.op, "bold red"), (f"  ({counted(group.calls, 'call')})", "")]
        yield _field("reason", group.reason)
        yield _field("in", ", ".join(scope or "the top module" for scope in group.scopes))
        if group.first.source is not None:
            yield _field("first", str(group.first.source))
        if group.help:
            yield _field("help", group.help)


def _field(name: str, text: str) -> Line:
    return [(f"  {name + ':':<8}", "blue"), (text, "")]
