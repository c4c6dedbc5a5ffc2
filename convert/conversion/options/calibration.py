"""Options of ``calibrate``. Evaluated at run time, see ``declared.py``."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Annotated, Literal, TypedDict

from tmconvert.conversion.options.declared import calibration_option, declared, output_option
from tmconvert.conversion.options.tracing import ShapeOptions, SourceOptions

TaskName = Literal["top-1", "map", "wer", "perplexity", "similarity"]


class ImageOptions(TypedDict, total=False):
    """Keywords of functions that take images."""

    mean: Annotated[
        Sequence[float],
        calibration_option(
            "Normalization mean of image inputs: (pixel/255-mean)/std.",
            default=(),
            metavar="M,M,M",
            is_common=True,
            meaning="Normalization mean of image inputs, one value or one per channel: (pixel / 255 - mean) "
            "/ std. Without both, pixels are passed from 0 to 255.",
        ),
    ]
    std: Annotated[
        Sequence[float],
        calibration_option(
            "Normalization standard deviation of image inputs.", default=(), metavar="S,S,S", is_common=True
        ),
    ]


class CalibrationSettings(ImageOptions, total=False):
    """Keywords of ``calibrate``, which conversions take as ``calibration_settings``; flags of both."""

    method: Annotated[
        Literal["minmax", "percentile", "mse", "entropy"],
        calibration_option("Range estimator.", default="mse", metavar="METHOD"),
    ]
    per_channel: Annotated[
        bool,
        calibration_option(
            "Quantize weights per tensor instead of per channel.",
            default=True,
            flag="--per-tensor",
            meaning="Quantize weights per channel.",
        ),
    ]
    rules: Annotated[
        Mapping[str, str] | None,
        calibration_option(
            "Type (int8, int16x8, float) of modules or tensors: 'head.*=int16x8'. The last match counts.",
            "rules",
            flag="--rule",
            meaning='Type ("int8", "int16x8", "float") by pattern of module paths or tensors; the last match '
            "counts.",
        ),
    ]
    bias_correction: Annotated[
        bool,
        calibration_option(
            "Do not correct biases for the rounding of weights.",
            default=True,
            meaning="Correct biases for the rounding of weights.",
        ),
    ]
    equalization: Annotated[
        bool,
        calibration_option(
            "Do not equalize channel ranges across layers.",
            default=True,
            meaning="Equalize channel ranges across layers.",
        ),
    ]
    layout: Annotated[
        Literal["nchw", "nhwc"],
        calibration_option("Layout of the image input.", default="nchw", metavar="LAYOUT"),
    ]
    resize: Annotated[
        Literal["stretch", "crop", "pad"],
        calibration_option("How images of another size are changed.", default="stretch", metavar="HOW"),
    ]


class CalibrateOptions(CalibrationSettings, SourceOptions, ShapeOptions, total=False):
    """Keywords of ``calibrate``."""

    output: Annotated[
        str | PathLike[str] | None,
        output_option(
            "The model with its quantization parameters.",
            metavar="OUT.tm",
            short_flag="-o",
            is_required=True,
            meaning="A file to save the model to.",
        ),
    ]


SETTINGS = declared(CalibrationSettings)
