"""The options of each command, including those that only one command has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tmconvert.conversion.options.calibration import CalibrateOptions
from tmconvert.conversion.options.conversion import (
    KEYWORDS,
    PROFILES,
    QPARAMS_FORMATS,
    VERSIONS,
    ConversionOptions,
)
from tmconvert.conversion.options.declared import declared, in_order
from tmconvert.conversion.options.flags import FLAGS, JSON, PARTS, USAGE, VERBOSE
from tmconvert.conversion.options.inspection import (
    BenchOptions,
    CompareOptions,
    EvaluateOptions,
    RunOptions,
    ScoreOptions,
    VerifyOptions,
)
from tmconvert.conversion.options.tracing import PROGRESS, TRACING, EdgeOptions, SourceOptions, TracingOptions
from tmconvert.symbolics.target_names import TARGETS
from tmconvert.targets.option import Option, switch
from tmconvert.targets.options import DEFAULT_OPSET

# of tmconvert.packaging.registry, which is not needed to show help
PACKAGES = (
    *("onnxruntime-genai", "transformers.js", "sentence-transformers"),
    *("optimum", "ultralytics", "diffusers", "litert-lm"),
)
_CALIBRATE = Option(
    "data",
    "calibration",
    "Representative inputs: FILE.npz, or a folder of .npy, .npz or image files.",
    "path",
    metavar="DATA",
    short_flag="-d",
    is_required=True,
)
_TARGET = Option("target", "output", "Target format.", choices=TARGETS, is_required=True)
_PROFILE = Option(
    "profile",
    "output",
    "Profile of an accelerator or a runtime, such as ethos-u55 or litert-gpu, or FILE.toml with one.",
    suggestions=PROFILES,
    metavar="P",
)
_SIGNATURES = Option(
    "signature",
    "tracing",
    "Signature to read of a TFLite file with several; or NAME=MODEL, a further signature to write, which "
    "shares weights.",
    "entries",
    metavar="NAME[=MODEL]",
)
_VERIFY = Option(
    "inputs",
    "input",
    "Values of the inputs: arrays named as the inputs of MODEL, or in0, in1, ...",
    "path",
    default_text="random inputs",
    metavar="FILE.npz",
)
_TRACE_OUTPUT = Option(
    "output", "output", "The traced model.", "path", metavar="MODEL.tm", short_flag="-o", is_required=True
)
_OPTIMIZE = Option(
    "passes",
    "output",
    "Pass to run, in the order given: FuseConvBn, FuseAddMul, BackwardFoldScale, FoldScaleBias, "
    "EliminateCommonSubexpressions, ...; an unknown name lists all.",
    "entries",
    default_text="FuseConvBn",
    metavar="NAME",
    flag="--pass",
)
_RUN = (
    Option(
        "inputs",
        "input",
        "Values of the inputs: arrays (.npz), named as the inputs of MODEL or in their order; an image; "
        "'float32[1,3,8,8]' for random values, as for --input; - for arrays from stdin.",
        "entries",
        metavar="IN",
        short_flag="-i",
    ),
    Option(
        "output",
        "output",
        "The outputs: an .npz or .json file, or .npy for one output; - for stdout.",
        "path",
        default_text="none: the values are printed",
        metavar="OUT.npz",
        short_flag="-o",
    ),
)
_VIEW = (
    Option(
        "path",
        "output",
        "The page.",
        "path",
        default_text="MODEL.html in the working folder",
        metavar="PAGE.html",
        flag="--output",
        short_flag="-o",
    ),
    Option(
        "source", "input", "Model that MODEL was converted from, drawn next to it.", "path", metavar="MODEL"
    ),
    Option(
        "reports",
        "input",
        "Report of a conversion with --report FILE.json, or of `tmconvert compare --json`: noise colours the "
        "layers; two are compared.",
        "entries",
        metavar="FILE.json",
        flag="--report",
    ),
)
_COMPARE = (
    Option(
        "inputs",
        "input",
        "Values of A's inputs: arrays (.npz), an image, or text for random values, as for `tmconvert run`.",
        "entries",
        default_text="the example of A, or random",
        metavar="IN",
        short_flag="-i",
    ),
    switch("all_layers", "output", "List all layers.", only="command line"),
)
_DIFF = (
    switch("compare_outputs", "output", "Run both on the same inputs, and compare outputs and layers."),
    switch("latency", "output", "Measure the latency of both files by turns."),
    Option(
        "fail_on",
        "output",
        "End with status 1 if this holds: changed-outputs, operators, weights, any, size+5%, latency+10%.",
        "entries",
        metavar="CONDITION",
    ),
    Option("page", "output", "Write a page with both graphs side by side.", "path", metavar="PAGE.html"),
    switch("markdown", "output", "Print Markdown, for a pull request.", only="command line"),
)
_EXAMPLE_INPUTS = next(each for each in declared(TracingOptions) if each.name == "example_inputs")
_REDUCE = (
    Option(
        "output",
        "output",
        "The reduced model: .onnx for an ONNX file, .py for PyTorch, .py or .tm for others.",
        "path",
        metavar="FILE",
        short_flag="-o",
        is_required=True,
    ),
    Option(
        "target",
        "output",
        "Target of the conversion that fails.",
        default_text="onnx",
        choices=TARGETS,
        flag="--to",
    ),
    Option("time_limit", "output", "Seconds for one run.", "number", default_text="60", metavar="S"),
    switch("keep_names", "output", "Keep the names of tensors in an ONNX file."),
    switch("for_report", "output", "Also write FILE.md: what the form for issues needs, with `doctor`."),
)
_NEW_FOLDER = Option(
    "output",
    "output",
    "The package, a new folder.",
    "path",
    metavar="FOLDER",
    short_flag="-o",
    is_required=True,
)
_PACKAGE = (
    _NEW_FOLDER,
    Option(
        "kind",
        "output",
        "Program that opens the package.",
        choices=PACKAGES,
        metavar="KIND",
        flag="--for",
        is_required=True,
    ),
    Option("weights", "output", "Type of large weights.", choices=("float16", "int8", "int4")),
    Option("float_type", "output", "Type of floats.", choices=("float16",), metavar="TYPE"),
    Option(
        "activations",
        "output",
        "Type to which inputs of products with int4 weights are rounded, for onnxruntime-genai.",
        choices=("float32", "int8"),
        default_text="int8",
        metavar="TYPE",
    ),
    Option(
        "dtypes",
        "output",
        "Data types of the model files, for programs that choose among several: fp32,fp16,q8,q4,q4f16.",
        "names",
        default_text="all",
        metavar="NAME,...",
    ),
    Option("opset", "output", "ONNX opset version.", "opset", default_text=str(DEFAULT_OPSET), metavar="N"),
    switch("external_data", "output", "Store the weights next to the model file; always above 2 GiB."),
    switch("accept_range", "output", "Accept files that are valid for a range of sizes only."),
    Option(
        "cache_length",
        "output",
        "Positions of the caches, for litert-lm.",
        "integer",
        default_text="those of the model, at most 4096",
    ),
    Option(
        "prefill_lengths",
        "output",
        "Numbers of tokens that a prefill takes at once, for litert-lm.",
        default_text="128",
        metavar="N,...",
    ),
    switch("download", "input", "Fetch SOURCE from the hub of Hugging Face, if it is not on this machine."),
    switch("allow_code", "input", "Run the code in a checkpoint of ultralytics."),
    switch(
        "verify",
        "verification",
        "Do not compare the files with PyTorch, and do not open the package.",
        default=True,
    ),
)
_REBUILD = (
    Option(
        "source", "input", "Source in place of that of then.", default_text="that of LOCK", metavar="MODEL"
    ),
    switch("allow_code", "input", "Run the factory, plugins and TorchScript that LOCK names."),
    Option(
        "folder",
        "output",
        "Folder that keeps the files.",
        "path",
        default_text="none: they are deleted",
        metavar="FOLDER",
        flag="--output-folder",
        short_flag="-o",
    ),
)
_STREAM = (
    Option(
        "time",
        "input",
        "Axis of time of an input, as in x:2.",
        "entries",
        default_text="the only dynamic one, or the last one",
        metavar="NAME:AXIS",
    ),
    Option(
        "chunk",
        "input",
        "Number of frames that a step takes; open: any.",
        default_text="the fewest that strides allow",
        metavar="N|open",
    ),
    Option(
        "context",
        "input",
        "Number of frames before each frame to which attention is limited.",
        "integer",
        default_text="as its mask states",
        metavar="N",
    ),
    Option(
        "state_as",
        "output",
        "Keep states as variables of a TFLite file.",
        default_text="inputs and outputs",
        choices=("variables",),
    ),
    Option(
        "output",
        "output",
        "The step file: .onnx, .tflite or .tm.",
        "path",
        metavar="STEP",
        short_flag="-o",
        is_required=True,
        only="command line",
    ),
)
_SAVE_FORMAT = Option(
    "format",
    "output",
    "Kind of file: a container, or a pickle that MegEngine loads.",
    default="tm",
    default_text="tm",
    choices=("tm", "megengine"),
    metavar="FORMAT",
)
_CODE = (
    _NEW_FOLDER,
    Option("class_name", "output", "Name of the class.", default_text="that of the model", metavar="NAME"),
)
_TARGETS = Option(
    "targets",
    "output",
    "Target of each model.",
    "entries",
    flag="--to",
    suggestions=TARGETS,
    metavar="TARGET",
)
_CONVERT = (
    Option(
        "config",
        "input",
        "Configuration file.",
        "path",
        default_text="tmconvert.toml, if it exists",
        metavar="FILE.toml",
        short_flag="-c",
    ),
    _TARGETS._replace(default_text="those of the file, or onnx"),
    Option(
        "folder",
        "output",
        "Folder of the written files.",
        "path",
        default_text="that of the file, or the working folder",
        metavar="FOLDER",
        flag="--output-folder",
        short_flag="-o",
    ),
    Option("jobs", "output", "Processes that convert models.", "integer", default_text="1", metavar="N"),
    Option(
        "cluster",
        "output",
        "Convert on the workers of this Dask scheduler, which see the files under the same paths.",
        metavar="ADDRESS",
    ),
    switch("again", "output", "Also convert what is finished and unchanged."),
    switch(
        "allow_code", "input", "Run the plugins, factories and TorchScript that the configuration file names."
    ),
)
_INIT = (
    Option(
        "output",
        "output",
        "The configuration file.",
        "path",
        default_text="tmconvert.toml",
        metavar="FILE.toml",
        short_flag="-o",
    ),
    _TARGETS._replace(help="Target to list options of.", default_text="onnx and tflite"),
)
_INSPECT = (
    switch("graph", "output", "Print the graph in MegEngine's notation, and nothing else."),
    switch("tabular", "output", "Print a table of the expressions, with submodules inlined."),
)
_FROM = Option(
    "source_format",
    "input",
    "Format of FILE.",
    default_text="by content",
    suggestions=QPARAMS_FORMATS,
    metavar="FORMAT",
    flag="--from",
)
_PARAMS_CONVERT = (
    _FROM,
    Option(
        "model",
        "input",
        "Written model (.onnx, .tflite, .prototxt), for what FILE lacks: roles, channels, layers.",
        "path",
        metavar="MODEL",
    ),
    Option("to", "output", "Format of OUT.", suggestions=QPARAMS_FORMATS, metavar="FORMAT", is_required=True),
    switch("partial", "output", "Leave out tensors that the format cannot store."),
)
_OPS = (
    _TARGET._replace(help="List this target only.", is_required=False, default_text="all"),
    *VERSIONS,
    Option("search", "output", "List only ops whose name contains TEXT.", default="", metavar="TEXT"),
    JSON,
    switch("markdown", "output", "Print the page docs/ops.md.", only="command line"),
)


def conversion_options(target: str) -> tuple[Option, ...]:
    """Returns the options of conversions to ``target``, in the order of its help.

    A target of another package is imported to read the options that it declares.
    """
    own: tuple[Option, ...] = ()
    if target not in TARGETS:
        from tmconvert.targets.registry import target_named

        own = target_named(target).options
    keywords = KEYWORDS.get(target) or declared(ConversionOptions)
    flags = (each for each in FLAGS if each.applies_to(target))
    return in_order((*own, *_with_parts(keywords), *flags))


def all_conversion_options() -> tuple[Option, ...]:
    """Returns the options of all conversions, each with its targets."""
    found: dict[Option, tuple[str, ...]] = {}
    for target in TARGETS:
        for option in conversion_options(target):
            found[option] = (*found.get(option, ()), target)
    return in_order(
        option._replace(targets=() if targets == TARGETS else targets) for option, targets in found.items()
    )


def _with_parts(keywords: Iterable[Option]) -> Iterator[Option]:
    for keyword in keywords:
        yield keyword
        yield from (each._replace(part_of=keyword.name) for each in PARTS.get(keyword.name, ()))


# command -> options, in the order of its help; see also ``options_of``
def _distinct(*options: Option) -> tuple[Option, ...]:
    return tuple({each.name: each for each in options}.values())


COMMAND_OPTIONS: dict[str, tuple[Option, ...]] = {
    **{target: conversion_options(target) for target in TARGETS},
    "bench": (_RUN[0]._replace(default_text="zeros"), JSON, *declared(BenchOptions)),
    "calibrate": (_CALIBRATE, JSON, *declared(CalibrateOptions)),
    "check": (
        _TARGET._replace(is_required=False, default_text="that of --profile"),
        *VERSIONS,
        _PROFILE,
        JSON,
        *declared(EdgeOptions),
        *TRACING,
    ),
    "compare": (*_COMPARE, JSON, *declared(CompareOptions)),
    "convert": (*_CONVERT, JSON),
    "init": _INIT,
    "code": (*_CODE, JSON, *declared(SourceOptions)),
    "diff": (*_DIFF, JSON),
    "doctor": (JSON,),
    "evaluate": _distinct(_CALIBRATE, JSON, *declared(EvaluateOptions), *declared(ScoreOptions)),
    "inspect": (*_INSPECT, USAGE, _PROFILE, JSON, *declared(TracingOptions)),
    "lint": (VERSIONS[-1], _PROFILE, JSON),
    "ops": _OPS,
    "params check": (
        _FROM,
        _TARGET._replace(
            help="Target of MODEL, if it is a source model.", is_required=False, default_text="onnx"
        ),
        JSON,
    ),
    "params convert": _PARAMS_CONVERT,
    "params show": (_FROM, JSON),
    "package": (*_PACKAGE, JSON),
    "optimize": (_OPTIMIZE, JSON, *TRACING, VERBOSE, *PROGRESS),
    "rebuild": (*_REBUILD, JSON),
    "reduce": (*_REDUCE, JSON, _EXAMPLE_INPUTS),
    "run": _distinct(*_RUN, JSON, *TRACING, *declared(RunOptions)),
    "samples": (JSON,),
    "save": (_SAVE_FORMAT, JSON, *declared(SourceOptions)),
    "simplify": tuple(
        each._replace(default_text="that of MODEL") if each.is_version else each
        for each in conversion_options("onnx")
    ),
    "stream": (*_STREAM, JSON, *declared(SourceOptions)),
    "trace": (_TRACE_OUTPUT, JSON, *declared(SourceOptions)),
    "tflite": tuple(
        _SIGNATURES if each.name == "signature" else each for each in conversion_options("tflite")
    ),
    "view": (*_VIEW, JSON, *declared(SourceOptions)),
    "verify": _distinct(_VERIFY, JSON, *TRACING, *declared(VerifyOptions)),
}


def options_of(command: str) -> tuple[Option, ...]:
    """Returns the options of a command, also of conversions to another package's target, in help's order."""
    return COMMAND_OPTIONS.get(command) or conversion_options(command)
