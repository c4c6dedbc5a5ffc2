"""Options of conversions. Evaluated at run time, see ``declared.py``.

The signatures of ``to_onnx``, ``to_tflite`` and ``to_caffe``, the flags of the commands with their help and
completion, the checks of keywords and docs/reference/options.md are made from these fields.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tmconvert.conversion.options.calibration import TaskName
from tmconvert.conversion.options.declared import (
    calibration_option,
    debugging_option,
    declared,
    input_option,
    names_option,
    output_option,
    quantization_option,
    shapes_option,
    verification_option,
)
from tmconvert.conversion.options.tracing import EdgeOptions, SourceOptions
from tmconvert.symbolics.dialects import DIALECTS
from tmconvert.targets.option import Option
from tmconvert.targets.options import AUTO, DEFAULT_OPSET, DEFAULT_TFLITE_RUNTIME, TFLITE_RUNTIME

if TYPE_CHECKING:  # help texts do not load it
    from tmconvert.passes.manager import PassOptions

# of tmconvert.profiles.data, which is not listed to show help
PROFILES = (
    *("edgetpu", "ethos-u55", "ethos-u65", "ethos-u85", "litert-gpu", "ncnn", "nnapi", "openvino"),
    *("ort-web", "qnn", "tensorrt", "tflm", "tvm", "webgpu", "xnnpack"),
)
# of tmconvert.qparams.formats, whose readers are not needed to show help
QPARAMS_FORMATS = (
    *("mgeconvert", "aimet", "aimet-1.0", "aimet-2.0", "tensorrt", "tensorrt-ranges", "tensorrt-json"),
    *("onnxruntime", "ncnn", "mnn", "ppq", "ascend", "ascend-caffe", "tpu-mlir"),
)


class ConversionOptions(SourceOptions, EdgeOptions, total=False):
    """Keywords of conversions to any target."""

    preprocess: Annotated[
        str | Sequence[str] | None,
        input_option(
            "Images that the file takes: '[NAME:] rgb, nhwc, uint8, mean=..., std=..., resize=HxW'. They are "
            "converted to the input NAME of MODEL, (pixel/255-mean)/std, in the file.",
            "texts",
            metavar="TEXT",
        ),
    ]
    softmax: Annotated[bool, input_option("Apply softmax to the classes of the output.")]
    argmax: Annotated[bool, input_option("Return the index of the best class.")]
    rename: Annotated[
        Mapping[str, str] | None, names_option("New names of inputs and outputs.", metavar="OLD=NEW")
    ]
    names: Annotated[
        Literal["optimum"] | None,
        names_option(
            "Name caches among inputs and outputs as optimum does: past_key_values.0.key, present.0.key."
        ),
    ]
    lock: Annotated[
        str | PathLike[str] | None,
        verification_option(
            "Write a record of what made the file: digests, options, versions for `tmconvert rebuild`, and "
            "values for `tmconvert verify --lock`.",
            metavar="FILE",
            is_written=True,
        ),
    ]
    verify: Annotated[
        bool,
        verification_option(
            "Do not compare the written file with MODEL.",
            default=True,
            is_common=True,
            meaning="Run the file in the runtime of the target, and compare it with the model.",
        ),
    ]
    verification: Annotated[
        Literal["full"] | None,
        verification_option(
            "Without a limit of time; by default three times the conversion and 20 s.",
            meaning="Verify without a limit of time; by default three times that of the conversion and 20 s.",
            flag="--verify",
        ),
    ]
    verify_with: Annotated[
        Any,
        verification_option(
            "Verify with these inputs: arrays named as the inputs of MODEL, or in0, in1, ...",
            "path",
            metavar="FILE.npz",
            meaning="Inputs to verify with: an .npz file, or arrays by name or in the order of the inputs.",
        ),
    ]
    verify_on: Annotated[
        Sequence[str],
        verification_option(
            "Also run the file on this accelerator, such as litert-gpu, and write none if it is wrong there.",
            "entries",
            default=(),
            metavar="NAME",
            meaning="Names of accelerators on which the file must compute the same as on the processor.",
        ),
    ]
    require_verified: Annotated[
        bool,
        verification_option(
            "Write no file, and end with status 1, unless it was verified.",
            meaning="Raise VerificationError TM4006 for a file that could not be verified, and write none.",
        ),
    ]
    passes: Annotated[
        Sequence[Any] | None,
        output_option(
            "Also run this pass: one that a plugin registers, or a name of `tmconvert optimize`.",
            "passes",
            metavar="NAME",
            flag="--pass",
            meaning="Passes to run as well: names, functions of a graph, or classes.",
        ),
    ]
    accept_range: Annotated[
        bool,
        shapes_option(
            "Accept dynamic dimensions for which the file is valid in a range only; the file states the "
            "range."
        ),
    ]
    rules: Annotated[
        Mapping[str, str] | None,
        quantization_option(
            "Type of modules or tensors: 'head.*=int16x8'; the last match counts. For calibration, --weights "
            "and --float-type.",
            "rules",
            flag="--rule",
            meaning="Types by patterns of modules and tensors; the last match counts. They are those of "
            "weights with ``weights``, of computations with ``float_type``, else those of ``calibrate``.",
        ),
    ]
    input_qparams: Annotated[
        Mapping[str, tuple[str, float, int]] | None,
        quantization_option(
            'Type, scale and zero point of inputs without a QuantStub, such as ``{"x": ("quint8", 0.5, '
            '128)}``; "*" stands for all others.',
            "qparams",
            only="python",
        ),
    ]
    qparams: Annotated[
        str | PathLike[str] | None,
        quantization_option(
            "Also write the quantization parameters to FILE.",
            is_common=True,
            is_written=True,
            meaning="A file to write quantization parameters to, next to a float model.",
        ),
    ]
    qparams_format: Annotated[
        str | None,
        quantization_option(
            "Format of that file; `tmconvert params --help` lists them.",
            default_text=QPARAMS_FORMATS[0],
            suggestions=QPARAMS_FORMATS,
            metavar="FORMAT",
            needs="qparams",
        ),
    ]
    fake_quant_weights: Annotated[
        bool, quantization_option("Round the weights of a float model to their quantization parameters.")
    ]
    calibration: Annotated[
        Any,
        calibration_option(
            "Calibrate a float model first, on FILE.npz or a folder of .npy, .npz or image files.",
            "data",
            metavar="DATA",
            is_common=True,
            meaning="Data that ``quantized`` or ``qparams`` measures scales on, as that of ``calibrate``.",
        ),
    ]
    calibration_settings: Annotated[
        Mapping[str, Any] | None,
        calibration_option("Keywords of ``calibrate`` for it, by name.", "settings", only="python"),
    ]
    pass_options: Annotated[
        "PassOptions | None",
        debugging_option(
            "A PassOptions record: dumps of the graph, and the pass to stop after.",
            "pass options",
            only="python",
        ),
    ]


class IntegerOptions(ConversionOptions, total=False):
    """Keywords of conversions to targets with integer files."""

    profile: Annotated[
        str | None,
        output_option(
            "Write forms that this profile runs.",
            suggestions=PROFILES,
            metavar="P",
            is_common=True,
            meaning='A profile, whose forms are written: its name, such as "ethos-u55", or the path of a '
            "TOML file.",
        ),
    ]
    metadata: Annotated[
        Mapping[str, Any] | None,
        names_option(
            "Store this text, or the texts of a JSON file by key, in the metadata of the file.",
            "pairs",
            metavar="FILE.json|KEY=VALUE",
            meaning="Texts, or values of JSON, to store in the file by key; metadata of the model are kept.",
        ),
    ]
    labels: Annotated[
        str | PathLike[str] | Sequence[str] | None,
        names_option(
            "Store the labels of classes, a file with one a line, in the metadata of the file.",
            "data",
            metavar="FILE.txt",
            meaning="Labels of classes in order, or the path of a file with one a line, to store in the "
            "metadata of the file.",
        ),
    ]
    allow_random: Annotated[
        bool,
        output_option(
            "Write operators that draw random numbers, for dropout in training, torch.randn and the like."
        ),
    ]
    seed: Annotated[
        int | None,
        output_option(
            "Seed of these operators, an integer from 0 on.",
            default_text="another in each run",
            needs="allow_random",
        ),
    ]
    report_data: Annotated[
        Any,
        quantization_option(
            "Data for --report, as for --calibration.",
            "data",
            default_text="the first of --calibration, or random",
            metavar="DATA",
            meaning="Data for the report of quantization errors; None takes some of ``calibration``.",
        ),
    ]
    try_rules: Annotated[
        bool,
        quantization_option(
            "Convert again with a rule for each of the three worst modules, and report the gain."
        ),
    ]
    min_sqnr: Annotated[
        float | None,
        calibration_option(
            "Find rules with which the signal-to-noise ratio of each output is at least this many decibels.",
            metavar="DB",
            needs="calibration",
        ),
    ]
    score_margin: Annotated[
        float | None,
        calibration_option(
            "Find rules with which the score of --task is worse than that of the float file by at most this.",
            metavar="D",
            needs="task",
            meaning="Find rules with which the score of ``task`` is worse than that of the float file by at "
            "most this.",
        ),
    ]
    task: Annotated[
        TaskName | None,
        calibration_option("The task of --score-margin, as in `tmconvert evaluate`.", needs="task_data"),
    ]
    task_data: Annotated[
        str | PathLike[str] | None,
        calibration_option(
            "Labelled data of --task, as in `tmconvert evaluate`.",
            "path",
            metavar="DATA",
            needs="score_margin",
        ),
    ]
    tokenizer: Annotated[
        str | None,
        calibration_option(
            "The tokenizer.json or vocab.json of --task, or their folder.",
            "path",
            default_text="those next to OUT or MODEL",
            metavar="FILE",
            needs="task",
        ),
    ]


class OnnxOptions(IntegerOptions, total=False):
    """Keywords of ``to_onnx``."""

    opset: Annotated[
        int | Literal["auto"] | None,
        output_option(
            "ONNX opset version; auto takes the lowest, from the default on, that suffices.",
            "opset",
            default_text=str(DEFAULT_OPSET),
            suggestions=(AUTO,),
            is_version=True,
            is_common=True,
        ),
    ]
    external_data: Annotated[
        bool, output_option("Store the weights in OUT.onnx.data; always above 2 GiB.", is_common=True)
    ]
    value_info: Annotated[
        bool,
        output_option(
            "Leave out types and shapes of inner tensors.",
            default=True,
            meaning="Store types and shapes of inner tensors.",
        ),
    ]
    weights: Annotated[
        Literal["float16", "int8", "int4"] | None,
        output_option("Type of large weights in the file; computations stay float32.", is_common=True),
    ]
    weight_scales: Annotated[
        Literal["max", "mse", "asymmetric"] | None,
        output_option(
            "Scales of int4 weights: of the largest, of the least squared error, or that with zero points.",
            default_text="max",
            needs="weights",
        ),
    ]
    float_type: Annotated[
        Literal["float32", "float16", "bfloat16"] | None,
        output_option(
            "Type of floats, also of inputs and outputs.", default_text="those of MODEL", is_common=True
        ),
    ]
    io_type: Annotated[
        Literal["float32"] | None,
        output_option(
            "Type of float inputs and outputs.", default_text="the type of floats", needs="float_type"
        ),
    ]
    integer_weights: Annotated[
        Literal["float32", "DequantizeLinear", "MatMulNBits"] | None,
        output_option(
            "Form of MODEL's integer weights and of --weights int4.", default_text="float32", metavar="FORM"
        ),
    ]
    quantized: Annotated[
        bool,
        quantization_option(
            "Write an integer model, with QuantizeLinear and DequantizeLinear.", is_common=True
        ),
    ]
    activations: Annotated[
        Literal["uint8", "int8", "uint16", "int16"] | None,
        quantization_option(
            "Type of activations; 16 bits need opset 21.", default_text="uint8", needs="quantized"
        ),
    ]
    weight_type: Annotated[
        Literal["uint8", "int8"] | None,
        quantization_option(
            "Type of weights: uint8 is exact on every processor, int8 faster on x86 with VNNI.",
            default_text="uint8, or int8 with signed activations",
            needs="quantized",
        ),
    ]
    reduce_range: Annotated[
        bool,
        quantization_option(
            "Quantize weights to 7 bits: int8 is then exact on every processor, but coarser.",
            needs="quantized",
        ),
    ]


class TfliteOptions(IntegerOptions, total=False):
    """Keywords of ``to_tflite``."""

    io_layout: Annotated[
        str | Mapping[str, str] | None,
        output_option(
            "Layout of rank-4 inputs and outputs, or of NAME alone: channels-last, or the layout of MODEL.",
            "layouts",
            default_text="nhwc",
            suggestions=("nhwc", "source"),
            metavar="[NAME=]nhwc|source",
            is_common=True,
            meaning='"nhwc" (the default) stores rank-4 inputs and outputs of a model with spatial ops '
            'channels-last, "source" keeps the layout of the source; a dict such as ``{"x": "source", "*": '
            '"nhwc"}`` chooses by name.',
        ),
    ]
    runtime: Annotated[
        str | None,
        output_option(
            "Oldest TFLite runtime that must run the file, in TensorFlow's numbers: LiteRT 1.0 is 2.18, "
            "LiteRT 2.2 is 2.23.",
            default_text=f"2.{DEFAULT_TFLITE_RUNTIME}",
            suggestions=tuple(f"2.{minor}" for minor in range(TFLITE_RUNTIME + 1)),
            metavar="2.N",
            is_version=True,
        ),
    ]
    weights: Annotated[
        Literal["float16", "int8", "int4", "int2"] | None,
        output_option(
            "Type of large weights; with integers, products and convolutions also round activations.",
            is_common=True,
        ),
    ]
    weight_scales: Annotated[
        Literal["max", "mse"] | None,
        output_option(
            "Rule for the scales of int4 and int2.",
            default_text="max",
            meaning="Scales of int4 and int2 weights: of the largest, or of the least squared error.",
            needs="weights",
        ),
    ]
    float_type: Annotated[
        Literal["float32", "source"] | None,
        output_option("All floats as float32, or those of MODEL.", default_text="float32"),
    ]
    keep_int64: Annotated[bool, output_option("Keep int64 tensors instead of int32.")]
    state_as: Annotated[
        Literal["variables"] | None,
        output_option(
            "Keep states, which are inputs with outputs NAME_next, as variables of the file.",
            default_text="inputs and outputs",
        ),
    ]
    quantized: Annotated[bool, quantization_option("Write an integer model.", is_common=True)]
    activations: Annotated[
        Literal["int8", "int16"] | None,
        quantization_option("Type of activations.", default_text="int8", needs="quantized"),
    ]
    io_type: Annotated[
        Literal["int8", "uint8", "int16", "float32"] | None,
        quantization_option(
            "Type of inputs and outputs.",
            default_text="the type of activations",
            needs="quantized",
            is_common=True,
        ),
    ]
    allow_float: Annotated[
        bool,
        quantization_option(
            "Keep quantized operators without an integer kernel in float.", needs="quantized"
        ),
    ]
    wide_weights: Annotated[
        bool,
        quantization_option(
            "Keep weights of -128; exact on x86 and on Arm with dot products.", needs="quantized"
        ),
    ]


class CaffeOptions(ConversionOptions, total=False):
    """Keywords of ``to_caffe``."""

    dialect: Annotated[
        str | None,
        output_option(
            "Caffe dialect.",
            default_text=DIALECTS[0],
            choices=DIALECTS,
            metavar="DIALECT",
            is_version=True,
            is_common=True,
        ),
    ]


# by target; those of an installed package are ConversionOptions, and what it declares
KEYWORDS: Mapping[str, tuple[Option, ...]] = {
    "onnx": declared(OnnxOptions),
    "tflite": declared(TfliteOptions),
    "caffe": declared(CaffeOptions),
}
# the options for versions, each with its target
VERSIONS = tuple(
    each._replace(targets=(target,))
    for target, options in KEYWORDS.items()
    for each in options
    if each.is_version
)
