"""Declarations of the options of quantized models and of files of quantization parameters."""

from __future__ import annotations

from tmconvert.targets.option import Option, switch

_ONNX, _TFLITE = ("onnx",), ("tflite",)
_WITH_INTEGERS = ("onnx", "tflite")

QUANTIZED = (
    switch(
        "quantized",
        "quantization",
        "Write an integer model, with QuantizeLinear and DequantizeLinear.",
        targets=_ONNX,
    ),
    switch("quantized", "quantization", "Write an integer model.", targets=_TFLITE),
)
ACTIVATIONS = (
    Option(
        "activations",
        "quantization",
        "Type of activations; 16 bits need opset 21.",
        default_text="uint8",
        choices=("uint8", "int8", "uint16", "int16"),
        metavar="TYPE",
        targets=_ONNX,
        needs="quantized",
    ),
    Option(
        "activations",
        "quantization",
        "Type of activations.",
        default_text="int8",
        choices=("int8", "int16"),
        targets=_TFLITE,
        needs="quantized",
    ),
)
WEIGHT_TYPE = Option(
    "weight_type",
    "quantization",
    "Type of weights: uint8 is exact on every processor, int8 faster on x86 with VNNI.",
    default_text="uint8, or int8 with signed activations",
    choices=("uint8", "int8"),
    targets=_ONNX,
    needs="quantized",
)
REDUCE_RANGE = switch(
    "reduce_range",
    "quantization",
    "Quantize weights to 7 bits: int8 is then exact on every processor, but coarser.",
    targets=_ONNX,
    needs="quantized",
)
IO_TYPE = Option(
    "io_type",
    "quantization",
    "Type of inputs and outputs.",
    default_text="the type of activations",
    choices=("int8", "uint8", "int16", "float32"),
    metavar="TYPE",
    targets=_TFLITE,
    needs="quantized",
)
ALLOW_FLOAT = switch(
    "allow_float",
    "quantization",
    "Keep quantized operators without an integer kernel in float.",
    targets=_TFLITE,
    needs="quantized",
)
WIDE_WEIGHTS = switch(
    "wide_weights",
    "quantization",
    "Keep weights of -128; exact on x86 and on Arm with dot products.",
    targets=_TFLITE,
    needs="quantized",
)
INPUT_QPARAMS = (
    Option(
        "input_grids",
        "quantization",
        'Type, scale and zero point of inputs without a QuantStub, by name; "*" stands for all others.',
        only="python",
    ),
    Option(
        "input_type",
        "quantization",
        "Type (qint8, quint8) of a quantized input without a QuantStub.",
        "entries",
        metavar="[NAME=]TYPE",
        part_of="input_grids",
    ),
    Option(
        "input_scale",
        "quantization",
        "Scale of that input, as in 0.125.",
        "entries",
        metavar="[NAME=]SCALE",
        part_of="input_grids",
    ),
    Option(
        "input_zero_point",
        "quantization",
        "Zero point of that input.",
        "entries",
        default_text="0",
        metavar="[NAME=]N",
        part_of="input_grids",
    ),
)
# of tmconvert.qparams.formats, whose readers are not needed to show help
QPARAMS_FORMATS = (
    "mgeconvert",
    "aimet",
    "aimet-1.0",
    "aimet-2.0",
    "tensorrt",
    "tensorrt-ranges",
    "tensorrt-json",
    "onnxruntime",
    "ncnn",
    "mnn",
    "ppq",
    "ascend",
    "ascend-caffe",
    "tpu-mlir",
)
QPARAMS = (
    Option("qparams", "quantization", "Also write the quantization parameters to FILE.", "path"),
    Option(
        "qparams_format",
        "quantization",
        "Format of that file; `tmconvert params --help` lists them.",
        default_text=QPARAMS_FORMATS[0],
        suggestions=QPARAMS_FORMATS,
        metavar="FORMAT",
        needs="qparams",
    ),
    switch(
        "fake_quant_weights",
        "quantization",
        "Round the weights of a float model to their quantization parameters.",
    ),
)
REPORT = Option(
    "report",
    "quantization",
    "Write the quantization error of each layer to FILE.html, .json or .txt.",
    "path",
    targets=_WITH_INTEGERS,
    only="command line",
)
TRY_RULES = switch(
    "try_rules",
    "quantization",
    "Convert again with --rule for each of the three worst modules, and report the gain.",
    targets=_WITH_INTEGERS,
    only="command line",
)
REPORT_DATA = Option(
    "report_data",
    "quantization",
    "Data for that report, as for --calibration.",
    "path",
    default_text="the first of --calibration, or random",
    metavar="DATA",
    targets=_WITH_INTEGERS,
)
MIN_SQNR = Option(
    "min_sqnr",
    "calibration",
    "Find rules with which the signal-to-noise ratio of each output is at least this many decibels.",
    "number",
    metavar="DB",
    targets=_WITH_INTEGERS,
    needs="calibration",
)
