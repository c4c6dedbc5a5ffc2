"""Declarations of all options of the functions and commands.

The click options, their help and completion, the checks of keywords and docs/reference/options.md are made
from these records; a test compares them with the signatures in ``tmconvert.api``.
"""

from __future__ import annotations

from tmconvert.conversion.calibration_options import CALIBRATION, CALIBRATION_SETTINGS, RULES, SETTINGS
from tmconvert.conversion.preprocessing_options import PREPROCESS
from tmconvert.conversion.quantization_options import (
    ACTIVATIONS,
    ALLOW_FLOAT,
    INPUT_QPARAMS,
    IO_TYPE,
    MIN_SQNR,
    QPARAMS,
    QUANTIZED,
    REDUCE_RANGE,
    REPORT,
    REPORT_DATA,
    TRY_RULES,
    WEIGHT_TYPE,
    WIDE_WEIGHTS,
)
from tmconvert.symbolics.dialects import DIALECTS
from tmconvert.targets.option import Option, switch
from tmconvert.targets.options import AUTO, DEFAULT_OPSET, DEFAULT_TFLITE_RUNTIME, TFLITE_RUNTIME

_ONNX, _TFLITE, _CAFFE = ("onnx",), ("tflite",), ("caffe",)
_WITH_INTEGERS = ("onnx", "tflite")

# ---- input

INPUTS = Option(
    "inputs", "input", "Extract the subgraph that starts at these tensors.", "names", metavar="NAME,..."
)
OUTPUTS = Option(
    "outputs", "input", "Extract the subgraph that ends at these tensors.", "names", metavar="NAME,..."
)
PLUGIN = Option(
    "plugin",
    "input",
    "Run this Python file first; it registers ops, passes or kinds of files.",
    "entries",
    metavar="FILE.py",
    only="command line",
)

PROGRESS = Option(
    "progress",
    "debugging",
    "Function called with the numbers of steps done and of all, and the stage if it has that parameter.",
    only="python",
)
QUIET = switch(
    "quiet",
    "debugging",
    "Print no messages and no progress; results and errors remain.",
    short_flag="-q",
    only="command line",
)

# ---- output

VERSIONS = (
    Option(
        "opset",
        "output",
        "ONNX opset version; auto takes the lowest, from the default on, that suffices.",
        "opset",
        default_text=str(DEFAULT_OPSET),
        suggestions=(AUTO,),
        metavar="N",
        targets=_ONNX,
        is_version=True,
    ),
    Option(
        "runtime",
        "output",
        "Oldest TFLite runtime that must run the file, in TensorFlow's numbers: LiteRT 1.0 is 2.18, "
        "LiteRT 2.2 is 2.23.",
        default_text=f"2.{DEFAULT_TFLITE_RUNTIME}",
        suggestions=tuple(f"2.{minor}" for minor in range(TFLITE_RUNTIME + 1)),
        metavar="2.N",
        targets=_TFLITE,
        is_version=True,
    ),
    Option(
        "dialect",
        "output",
        "Caffe dialect.",
        default_text=DIALECTS[0],
        choices=DIALECTS,
        metavar="DIALECT",
        targets=_CAFFE,
        is_version=True,
    ),
)
EXTERNAL_DATA = switch(
    "external_data",
    "output",
    "Store the weights in OUT.onnx.data; always above 2 GiB.",
    targets=_ONNX,
)
VALUE_INFO = switch(
    "value_info",
    "output",
    "Leave out types and shapes of inner tensors.",
    default=True,
    targets=_ONNX,
)
IO_LAYOUT = Option(
    "io_layout",
    "output",
    "Layout of rank-4 inputs and outputs, or of NAME alone: channels-last, or the layout of MODEL.",
    "entries",
    default_text="nhwc",
    suggestions=("nhwc", "source"),
    metavar="[NAME=]nhwc|source",
    targets=_TFLITE,
)
WEIGHTS = (
    Option(
        "weights",
        "output",
        "Type of large weights in the file; computations stay float32.",
        choices=("float16", "int8", "int4"),
        targets=_ONNX,
    ),
    Option(
        "weights",
        "output",
        "Type in which large weights are stored. With int8, matrix products and convolutions also round "
        "their activations.",
        choices=("float16", "int8"),
        targets=_TFLITE,
    ),
)
FLOAT_TYPES = (
    Option(
        "float_type",
        "output",
        "Type of floats, also of inputs and outputs.",
        default_text="those of MODEL",
        choices=("float32", "float16", "bfloat16"),
        targets=_ONNX,
    ),
    Option(
        "float_type",
        "output",
        "Type of floats: float32 also for float16 and float64, or those of MODEL.",
        default_text="float32",
        choices=("float32", "source"),
        targets=_TFLITE,
    ),
)
FLOAT_IO = Option(
    "io_type",
    "output",
    "Type of float inputs and outputs.",
    default_text="the type of floats",
    choices=("float32",),
    targets=_ONNX,
    needs="float_type",
)
INTEGER_WEIGHTS = Option(
    "integer_weights",
    "output",
    "Form of MODEL's integer weights and of --weights int4.",
    default_text="float32",
    choices=("float32", "DequantizeLinear", "MatMulNBits"),
    metavar="FORM",
    targets=_ONNX,
)
KEEP_INT64 = switch(
    "keep_int64",
    "output",
    "Keep int64 tensors instead of int32.",
    targets=_TFLITE,
)
RENAME = Option("rename", "output", "Rename an input or output.", "entries", metavar="OLD=NEW")
NAMES = Option(
    "names",
    "output",
    "Name caches among inputs and outputs as optimum does: past_key_values.0.key, present.0.key.",
    choices=("optimum",),
)
RANDOM = (
    switch(
        "allow_random",
        "output",
        "Write operators that draw random numbers, for dropout in training, torch.randn and the like.",
        targets=_WITH_INTEGERS,
    ),
    Option(
        "seed",
        "output",
        "Seed of these operators, an integer from 0 on.",
        "integer",
        default_text="another in each run",
        metavar="N",
        targets=_WITH_INTEGERS,
        needs="allow_random",
    ),
)
VERIFY = switch("verify", "output", "Do not compare the written file with MODEL.", default=True)
USAGE = Option(
    "usage",
    "output",
    "Print a program that runs the file.",
    choices=("python", "cpp", "kotlin"),
    metavar="LANGUAGE",
    only="command line",
)
JSON = switch("json", "output", "Print the result as one JSON document.", only="command line")

# ---- shapes

INPUT_SHAPES = Option(
    "input_shapes",
    "shapes",
    "Shape of an input, in place of the one in MODEL.",
    "entries",
    metavar="NAME=N,N,...",
    flag="--input-shape",
)
DYNAMIC_SHAPES = Option(
    "dynamic_shapes",
    "shapes",
    "Make a dimension of an input dynamic and name it, as in x:0=batch.",
    "entries",
    metavar="NAME:AXIS=SIZE",
    flag="--dynamic",
)
ACCEPT_RANGE = switch(
    "accept_range",
    "shapes",
    "Accept dynamic dimensions for which the file is valid in a range only; the file states the range.",
)

# ---- tracing

TRACING = (
    Option(
        "example_inputs",
        "tracing",
        "Example input: 'float32[1,3,224,224]' or 'int64[1,16]<1000' (random, below 1000), FILE.npy, "
        "FILE.npz, or a number.",
        "entries",
        metavar="[NAME=]INPUT",
        flag="--input",
    ),
    Option(
        "example_kwargs",
        "tracing",
        "Example inputs by name; `--input NAME=INPUT` on the command line.",
        only="python",
    ),
    switch(
        "freeze_control_flow",
        "tracing",
        "Where control flow depends on data, record the branch that the example inputs take.",
    ),
    switch("allow_code", "tracing", "Allow the code in a TorchScript file to run."),
)

# ---- passes

PASSES = Option(
    "passes",
    "output",
    "Also run this pass: one that a plugin registers, or a name of `tmconvert optimize`.",
    "entries",
    metavar="NAME",
    flag="--pass",
)

# ---- debugging

DEBUGGING = (
    Option(
        "verbose",
        "debugging",
        "Print what each pass changed and refused, with reasons and locations; -vv prints every change.",
        "count",
        default=0,
        short_flag="-v",
        only="command line",
    ),
    Option(
        "pass_options",
        "debugging",
        "A PassOptions record: dumps of the graph, and the pass to stop after.",
        only="python",
    ),
    Option(
        "dump_after",
        "debugging",
        "Write the graph after these passes, or after all.",
        metavar="NAME,...|all",
        part_of="pass_options",
    ),
    Option(
        "dump_folder",
        "debugging",
        "Folder for these graphs.",
        default_text="OUT.passes",
        metavar="DIR",
        needs="dump_after",
        part_of="pass_options",
    ),
    Option(
        "stop_after",
        "debugging",
        "Stop after this pass and write no model.",
        metavar="NAME",
        part_of="pass_options",
    ),
    switch(
        "time_passes",
        "debugging",
        "Print the time of each pass to stderr.",
        only="command line",
    ),
    PROGRESS,
)

# in the order of help texts and documents
CONVERSION_OPTIONS = (
    INPUTS,
    OUTPUTS,
    *PREPROCESS,
    *VERSIONS,
    EXTERNAL_DATA,
    VALUE_INFO,
    IO_LAYOUT,
    *WEIGHTS,
    *FLOAT_TYPES,
    FLOAT_IO,
    INTEGER_WEIGHTS,
    KEEP_INT64,
    RENAME,
    NAMES,
    *RANDOM,
    VERIFY,
    PASSES,
    USAGE,
    JSON,
    INPUT_SHAPES,
    DYNAMIC_SHAPES,
    ACCEPT_RANGE,
    *QUANTIZED,
    *ACTIVATIONS,
    WEIGHT_TYPE,
    REDUCE_RANGE,
    IO_TYPE,
    ALLOW_FLOAT,
    WIDE_WEIGHTS,
    *INPUT_QPARAMS,
    *QPARAMS,
    REPORT,
    TRY_RULES,
    REPORT_DATA,
    RULES,
    CALIBRATION,
    MIN_SQNR,
    CALIBRATION_SETTINGS,
    *(option for option in SETTINGS if option.name != RULES.name),
    *TRACING,
    *DEBUGGING,
)
