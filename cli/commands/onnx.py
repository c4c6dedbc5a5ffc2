"""``tmconvert onnx``."""

from __future__ import annotations

from typing import Any

import click

from tmconvert.cli.calibration_options import calibration_options
from tmconvert.cli.conversion import run_conversion
from tmconvert.cli.options import (
    check_report,
    conversion_options,
    model_argument,
    opset_option,
    parameter_options,
    report_options,
)


@click.command("onnx")
@model_argument
@click.argument("out", metavar="OUT.onnx", type=click.Path())
@opset_option
@click.option(
    "--external-data", is_flag=True, help="Store the weights in OUT.onnx.data (the default above 2 GiB)."
)
@click.option("--no-value-info", is_flag=True, help="Leave out the types and shapes of intermediate results.")
@click.option(
    "--quantized", is_flag=True, help="Write an integer model, with QuantizeLinear and DequantizeLinear."
)
@click.option(
    "--activations",
    type=click.Choice(["uint8", "int8", "uint16", "int16"]),
    help="The integers between the operators, with --quantized; 16 bits from opset 21 on.  [default: uint8]",
)
@click.option(
    "--weight-type",
    type=click.Choice(["uint8", "int8"]),
    help="The integers of weights, with --quantized: uint8 is exact on every processor, int8 faster on x86 "
    "with VNNI.  [default: uint8, or int8 with signed --activations]",
)
@click.option(
    "--reduce-range",
    is_flag=True,
    help="Quantize weights to seven bits, with --quantized: int8 is then exact everywhere, and coarser.",
)
@report_options
@parameter_options
@calibration_options
@conversion_options
def command(
    model: str,
    out: str,
    opset: int | None,
    external_data: bool,
    no_value_info: bool,
    quantized: bool,
    activations: str | None,
    weight_type: str | None,
    reduce_range: bool,
    qparams: str | None,
    qparams_format: str | None,
    fake_quant_weights: bool,
    no_verify: bool,
    **shared: Any,
) -> None:
    """Convert MODEL to the ONNX file OUT.onnx.

    The file is run in ONNX Runtime, when that is installed, and compared with MODEL before it
    appears; a file that computes something else is not written.
    """

    check_report(shared["layers"], shared["report_data"], quantized=quantized, verify=not no_verify)

    def convert(**options: Any) -> Any:
        from tmconvert import api

        return api.to_onnx(
            model,
            out,
            opset=opset,
            external_data=external_data,
            value_info=not no_value_info,
            quantized=quantized,
            activations=activations,
            weight_type=weight_type,
            reduce_range=reduce_range,
            qparams=qparams,
            qparams_format=qparams_format,
            fake_quant_weights=fake_quant_weights,
            verify=not no_verify,
            **options,
        )

    run_conversion(convert, model, verify=not no_verify, **shared)
