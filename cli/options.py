"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from tmconvert.symbolics.dialects import DIALECTS
from tmconvert.targets.options import DEFAULT_OPSET, DEFAULT_TFLITE_RUNTIME

Command = Callable[..., Any]

model_argument = click.argument("model", metavar="MODEL", type=click.Path())
dynamic_option = click.option(
    "--dynamic",
    multiple=True,
    metavar="NAME:AXIS=SIZE",
    help="Leave a size of an input open, and call it SIZE: x:0=batch. May be repeated.",
)
accept_range_option = click.option(
    "--accept-range",
    is_flag=True,
    help="Leave a size open also where the model does the same in a range only, which the file then states.",
)
_TRACING_OPTIONS = (
    click.option(
        "--input",
        "examples",
        multiple=True,
        metavar="[NAME=]INPUT",
        help="An input to trace a PyTorch model with: 'float32[1,3,224,224]' (random), 'int64[1,16]<1000' "
        "(random below 1000), FILE.npy, FILE.npz, or a number. May be repeated.",
    ),
    click.option(
        "--freeze-control-flow",
        is_flag=True,
        help="Where a PyTorch model branches on its data, go the way of the inputs, and say so.",
    ),
    click.option("--allow-code", is_flag=True, help="Let the code in a TorchScript file run."),
)
opset_option = click.option(
    "--opset", type=int, metavar="N", help=f"Version of ONNX's operators.  [default: {DEFAULT_OPSET}]"
)
runtime_option = click.option(
    "--runtime",
    metavar="2.N",
    help="The oldest TFLite runtime to write for, as TensorFlow counts: LiteRT 1.0 is 2.18, LiteRT 2.2 is "
    f"2.23.  [default: 2.{DEFAULT_TFLITE_RUNTIME}]",
)
dialect_option = click.option(
    "--dialect", type=click.Choice(DIALECTS), help=f"Whose Caffe it is.  [default: {DIALECTS[0]}]"
)
_PARAMETER_OPTIONS = (
    click.option(
        "--qparams", type=click.Path(), metavar="FILE", help="Write the quantization parameters to FILE, too."
    ),
    click.option(
        "--qparams-format",
        metavar="FORMAT",
        help="The format of FILE: mgeconvert (the default), aimet, tensorrt, ncnn, onnxruntime, ...; "
        "docs/quantization-parameters.md has all.",
    ),
    click.option(
        "--fake-quant-weights", is_flag=True, help="Round quantized weights to the numbers of their grids."
    ),
)
_REPORT_OPTIONS = (
    click.option(
        "--report",
        "layers",
        type=click.Path(),
        metavar="FILE",
        help="Write what each layer costs in integers to FILE.html, .json or .txt, with --quantized.",
    ),
    click.option(
        "--report-data",
        type=click.Path(),
        metavar="DATA",
        help="Inputs to measure that on, as for --calibration.  [default: the first samples of that, "
        "else random inputs]",
    ),
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")

input_shape_option = click.option(
    "--input-shape",
    "input_shapes",
    multiple=True,
    metavar="NAME=N,N,...",
    help="Convert for this shape of an input, not the one in MODEL. May be repeated.",
)
outputs_option = click.option(
    "--outputs", metavar="NAME,...", help="End at these nodes of the graph, in this order."
)
rename_option = click.option(
    "--rename",
    multiple=True,
    metavar="OLD=NEW",
    help="Call an input or output of the written model NEW. May be repeated.",
)
input_grid_options = (
    click.option(
        "--input-type",
        multiple=True,
        metavar="[NAME=]TYPE",
        help="Of a quantized input for which MODEL has no stub: qint8, quint8. May be repeated.",
    ),
    click.option("--input-scale", multiple=True, metavar="[NAME=]SCALE", help="Its scale, as in 0.125."),
    click.option(
        "--input-zero-point", multiple=True, metavar="[NAME=]N", help="Its zero point.  [default: 0]"
    ),
)


def _load_plugins(ctx: click.Context, parameter: click.Parameter, files: tuple[str, ...]) -> None:
    if files:
        from tmconvert.symbolics.plugins import load_plugin
        from tmconvert.symbolics.registry import temporary_symbolics

        ctx.with_resource(temporary_symbolics())
        for file in files:
            load_plugin(file)


# of every command; see CommandGroup
plugin_option = click.Option(
    ["--plugin"],
    type=click.Path(),
    multiple=True,
    metavar="FILE.py",
    expose_value=False,
    callback=_load_plugins,
    help="Run this Python file first, which registers ops of yours. May be repeated.",
)
_BOUNDARY_OPTIONS = (
    input_shape_option,
    dynamic_option,
    accept_range_option,
    click.option("--inputs", metavar="NAME,...", help="Begin at these nodes of the graph, in this order."),
    outputs_option,
    rename_option,
)

_CONVERSION_OPTIONS = (
    *_BOUNDARY_OPTIONS,
    *input_grid_options,
    *_TRACING_OPTIONS,
    click.option("--no-verify", is_flag=True, help="Do not run the written file to compare it with MODEL."),
    json_option,
    click.option(
        "-v",
        "--verbose",
        count=True,
        help="Show on stderr how much each pass changed and what it refused to change, with the reason and "
        "the place; -vv shows every change, too.",
    ),
    click.option("--dump-after", metavar="NAME[,NAME]", help="Write the graph after these passes, or 'all'."),
    click.option("--dump-folder", metavar="DIR", help="Where --dump-after writes.  [default: OUT.passes]"),
    click.option("--stop-after", metavar="NAME", help="End after this pass and write no model."),
    click.option("--time-passes", is_flag=True, help="Print a table of the passes' times on stderr."),
)


def check_report(layers: str | None, report_data: str | None, *, quantized: bool, verify: bool) -> None:
    """Raises UsageError before a long conversion, for a report that there could not be."""
    if layers is None and report_data is None:
        return
    if layers is None:
        raise click.UsageError("--report-data goes with --report")
    if not (quantized and verify):
        raise click.UsageError("--report goes with --quantized, and needs the verification")
    from tmconvert.verification.quantization_report.report_file import check_report_file

    check_report_file(Path(layers))


def conversion_options(command: Command) -> Command:
    """Adds the options that every conversion has, below those of its own."""
    return with_options(_CONVERSION_OPTIONS, command)


def report_options(command: Command) -> Command:
    """Adds the options for a report on each layer of a file in integers."""
    return with_options(_REPORT_OPTIONS, command)


def parameter_options(command: Command) -> Command:
    """Adds the options for a float model with its quantization parameters beside it."""
    return with_options(_PARAMETER_OPTIONS, command)


def tracing_options(command: Command) -> Command:
    """Adds the options for models of PyTorch, which are traced."""
    return with_options(_TRACING_OPTIONS, command)


def with_options(options: Sequence[Callable[[Command], Command]], command: Command) -> Command:
    """Adds ``options``, the first of them on top."""
    for option in reversed(options):
        command = option(command)
    return command
