"""``tmconvert caffe``."""

from __future__ import annotations

from typing import Any

import click

from tmconvert.cli.calibration_options import calibration_options
from tmconvert.cli.conversion import run_conversion
from tmconvert.cli.options import conversion_options, dialect_option, model_argument, parameter_options


@click.command("caffe")
@model_argument
@click.argument("prototxt", metavar="OUT.prototxt", type=click.Path())
@click.argument("caffemodel", metavar="[OUT.caffemodel]", required=False, type=click.Path())
@dialect_option
@parameter_options
@calibration_options
@conversion_options
def command(
    model: str,
    prototxt: str,
    caffemodel: str | None,
    dialect: str | None,
    qparams: str | None,
    qparams_format: str | None,
    fake_quant_weights: bool,
    no_verify: bool,
    **shared: Any,
) -> None:
    """Convert MODEL to the Caffe net OUT.prototxt and its weights OUT.caffemodel.

    Without a name for the weights they are written beside the net. The net is run in OpenCV,
    when that is installed and has all its layers, else by the definition of the layers, and compared
    with MODEL before the files appear; files that compute something else are not written.
    """

    def convert(**options: Any) -> Any:
        from tmconvert import api

        return api.to_caffe(
            model,
            prototxt,
            caffemodel,
            dialect=dialect,
            qparams=qparams,
            qparams_format=qparams_format,
            fake_quant_weights=fake_quant_weights,
            verify=not no_verify,
            **options,
        )

    run_conversion(convert, model, verify=not no_verify, **shared)
