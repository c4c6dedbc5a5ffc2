"""Options of the command line alone: parts of keywords, and what commands print."""

from __future__ import annotations

from collections.abc import Mapping

from tmconvert.conversion.options.calibration import SETTINGS
from tmconvert.targets.option import Option, switch

_WITH_INTEGERS = ("onnx", "tflite")

PLUGIN = Option(
    "plugin",
    "input",
    "Run this Python file first; it registers ops, passes or kinds of files.",
    "entries",
    metavar="FILE.py",
    only="command line",
)
QUIET = switch(
    "quiet",
    "debugging",
    "Print no messages and no progress; results and errors remain.",
    short_flag="-q",
    only="command line",
)
USAGE = Option(
    "usage",
    "output",
    "Print a program that runs the file.",
    choices=("python", "cpp", "kotlin"),
    metavar="LANGUAGE",
    only="command line",
)
JSON = switch("json", "output", "Print the result as one JSON document.", only="command line")
VERBOSE = Option(
    "verbose",
    "debugging",
    "Print what each pass changed and refused, with reasons and locations; -vv prints every change.",
    "count",
    default=0,
    short_flag="-v",
    only="command line",
)
# of conversions
FLAGS = (
    USAGE,
    JSON,
    Option(
        "report",
        "quantization",
        "Write the quantization error of each layer to FILE.html, .json, .txt or .nodes.json.",
        "path",
        targets=_WITH_INTEGERS,
        only="command line",
        is_written=True,
    ),
    Option(
        "firmware",
        "output",
        "Also write C++ sources for TFLite Micro.",
        "path",
        metavar="DIR",
        targets=("tflite",),
        only="command line",
        is_written=True,
    ),
    VERBOSE,
    switch("time_passes", "debugging", "Print the time of each pass to stderr.", only="command line"),
)
# keyword -> the flags that together are its value
PARTS: Mapping[str, tuple[Option, ...]] = {
    "input_qparams": (
        Option(
            "input_type",
            "quantization",
            "Type (qint8, quint8) of a quantized input without a QuantStub.",
            "entries",
            metavar="[NAME=]TYPE",
        ),
        Option(
            "input_scale",
            "quantization",
            "Scale of that input, as in 0.125.",
            "entries",
            metavar="[NAME=]SCALE",
        ),
        Option(
            "input_zero_point",
            "quantization",
            "Zero point of that input.",
            "entries",
            default_text="0",
            metavar="[NAME=]N",
        ),
    ),
    # ``rules`` is a keyword of conversions, too
    "calibration_settings": tuple(each for each in SETTINGS if each.name != "rules"),
    "pass_options": (
        Option(
            "dump_after",
            "debugging",
            "Write the graph after these passes, or after all.",
            metavar="NAME,...|all",
        ),
        Option(
            "dump_folder",
            "debugging",
            "Folder for these graphs.",
            default_text="OUT.passes",
            metavar="DIR",
            needs="dump_after",
            is_written=True,
        ),
        Option("stop_after", "debugging", "Stop after this pass and write no model.", metavar="NAME"),
    ),
}
