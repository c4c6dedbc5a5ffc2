"""Declarations of the calibration options; ``options.py`` has those of conversions."""

from __future__ import annotations

from tmconvert.targets.option import Option, switch

CALIBRATION = Option(
    "calibration",
    "calibration",
    "Calibrate a float model first, on FILE.npz or a folder of .npy, .npz or image files.",
    "path",
    metavar="DATA",
)
CALIBRATION_SETTINGS = Option(
    "calibration_settings", "calibration", "Keywords of `calibrate`, by name.", only="python"
)
RULES = Option(
    "rules",
    "quantization",
    "Type of modules or tensors: 'head.*=int16x8'; the last match counts. For calibration, --weights and "
    "--float-type.",
    "entries",
    metavar="PATTERN=TYPE",
    flag="--rule",
)
# keywords of ``calibrate``; flags of that command and of conversions
SETTINGS = (
    Option(
        "method",
        "calibration",
        "Range estimator.",
        default="mse",
        default_text="mse",
        choices=("minmax", "percentile", "mse", "entropy"),
        metavar="METHOD",
        part_of="calibration_settings",
    ),
    switch(
        "per_channel",
        "calibration",
        "Quantize weights per tensor instead of per channel.",
        default=True,
        flag="--per-tensor",
        part_of="calibration_settings",
    ),
    Option(
        "rules",
        "calibration",
        "Type (int8, int16x8, float) of modules or tensors: 'head.*=int16x8'. The last match counts.",
        "entries",
        metavar="PATTERN=TYPE",
        flag="--rule",
        part_of="calibration_settings",
    ),
    switch(
        "bias_correction",
        "calibration",
        "Do not correct biases for the rounding of weights.",
        default=True,
        part_of="calibration_settings",
    ),
    switch(
        "equalization",
        "calibration",
        "Do not equalize channel ranges across layers.",
        default=True,
        part_of="calibration_settings",
    ),
    Option(
        "mean",
        "calibration",
        "Normalization mean of image inputs: (pixel/255-mean)/std.",
        "numbers",
        default=(),
        metavar="M,M,M",
        part_of="calibration_settings",
    ),
    Option(
        "std",
        "calibration",
        "Normalization standard deviation of image inputs.",
        "numbers",
        default=(),
        metavar="S,S,S",
        part_of="calibration_settings",
    ),
    Option(
        "layout",
        "calibration",
        "Layout of the image input.",
        default="nchw",
        default_text="nchw",
        choices=("nchw", "nhwc"),
        metavar="LAYOUT",
        part_of="calibration_settings",
    ),
    Option(
        "resize",
        "calibration",
        "How images of another size are changed.",
        default="stretch",
        default_text="stretch",
        choices=("stretch", "crop", "pad"),
        metavar="HOW",
        part_of="calibration_settings",
    ),
)
