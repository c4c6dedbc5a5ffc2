"""``tmconvert tflite``."""

from __future__ import annotations

from typing import Any

import click

from tmconvert.cli.calibration_options import calibration_options
from tmconvert.cli.conversion import run_conversion
from tmconvert.cli.io_options import layouts
from tmconvert.cli.options import (
    check_report,
    conversion_options,
    model_argument,
    parameter_options,
    report_options,
    runtime_option,
)


@click.command("tflite")
@model_argument
@click.argument("out", metavar="OUT.tflite", type=click.Path())
@click.option("--quantized", is_flag=True, help="Write an integer model.")
@click.option(
    "--activations",
    type=click.Choice(["int8", "int16"]),
    help="The integers between the operators, with --quantized.  [default: int8]",
)
@click.option(
    "--io-type",
    type=click.Choice(["int8", "uint8", "int16", "float32"]),
    help="The type of inputs and outputs, with --quantized.  [default: that of --activations]",
)
@click.option(
    "--allow-float", is_flag=True, help="Leave quantized operators without an integer kernel in float."
)
@click.option(
    "--wide-weights",
    is_flag=True,
    help="Leave weights of -128 as they are: for x86, or Arm with dot products.",
)
@report_options
@parameter_options
@calibration_options
@click.option(
    "--io-layout",
    "io_layouts",
    multiple=True,
    metavar="[NAME=]nhwc|source",
    help="Order of inputs and outputs of four axes: channels last, or as MODEL has them; with NAME of this "
    "one. May be repeated.  [default: nhwc]",
)
@click.option(
    "--weights",
    type=click.Choice(["float16", "int8"]),
    help="Store large weights in fewer bits: float16, or int8 with a scale for each channel, by which "
    "convolutions and products compute faster, and round their activations.",
)
@click.option("--keep-int64", is_flag=True, help="Leave int64 as it is where int32 would do.")
@runtime_option
@conversion_options
def command(
    model: str,
    out: str,
    quantized: bool,
    activations: str | None,
    io_type: str | None,
    allow_float: bool,
    wide_weights: bool,
    qparams: str | None,
    qparams_format: str | None,
    fake_quant_weights: bool,
    io_layouts: tuple[str, ...],
    runtime: str | None,
    weights: str | None,
    keep_int64: bool,
    no_verify: bool,
    **shared: Any,
) -> None:
    """Convert MODEL to the TFLite file OUT.tflite.

    The file is run in LiteRT, when that is installed, and compared with MODEL before it appears; a
    file that computes something else is not written.
    """

    check_report(shared["layers"], shared["report_data"], quantized=quantized, verify=not no_verify)

    def convert(**options: Any) -> Any:
        from tmconvert import api

        return api.to_tflite(
            model,
            out,
            io_layout=layouts(io_layouts),
            runtime=runtime,
            weights=weights,
            keep_int64=keep_int64,
            quantized=quantized,
            activations=activations,
            io_type=io_type,
            allow_float=allow_float,
            wide_weights=wide_weights,
            qparams=qparams,
            qparams_format=qparams_format,
            fake_quant_weights=fake_quant_weights,
            verify=not no_verify,
            **options,
        )

    run_conversion(convert, model, verify=not no_verify, **shared)
