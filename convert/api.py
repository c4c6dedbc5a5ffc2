"""The public functions, available as ``tmconvert.NAME``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tmconvert.api_inspect import bench as bench
from tmconvert.api_inspect import compare as compare
from tmconvert.api_inspect import inspect as inspect
from tmconvert.api_transform import decompose as decompose
from tmconvert.api_transform import normalize as normalize
from tmconvert.api_transform import optimize as optimize
from tmconvert.api_transform import parse_graph as parse_graph
from tmconvert.api_transform import register_pass as register_pass
from tmconvert.api_transform import replace_pattern as replace_pattern
from tmconvert.api_transform import run as run
from tmconvert.api_transform import split_module as split_module
from tmconvert.api_view import view as view
from tmconvert.calibration.settings import Progress, Settings
from tmconvert.conversion.arguments import check_options, entry_point
from tmconvert.conversion.checks import Findings, check_conversion, unsupported_groups
from tmconvert.conversion.load import load_model
from tmconvert.conversion.output_paths import CONTAINER_SUFFIXES, check_names, keep_model
from tmconvert.conversion.pipeline import convert, verify_file
from tmconvert.conversion.prepared_model import graph_of, loaded, model_of
from tmconvert.conversion.report import Report
from tmconvert.conversion.request import ConversionRequest, InputQparams, Model, io_overrides_of
from tmconvert.frontends.torch.customization import Tracer as Tracer
from tmconvert.frontends.torch.customization import register_as_builtin as register_as_builtin
from tmconvert.frontends.torch.customization import register_supported_type as register_supported_type
from tmconvert.frontends.torch.customization import trace_through as trace_through
from tmconvert.frontends.torch.customization import wrap as wrap
from tmconvert.frontends.torch.request import DynamicShapes, Tracing
from tmconvert.garbage_collection import full_collections_wait
from tmconvert.ir import TracedModule as TracedModule
from tmconvert.ir.interpreter import Interpreter as Interpreter
from tmconvert.ir.unsupported import UnsupportedGroup
from tmconvert.output.atomic import check_writable
from tmconvert.passes.manager import PassOptions
from tmconvert.symbolics.registry import catalogue, register
from tmconvert.symbolics.registry import temporary_symbolics as temporary_symbolics
from tmconvert.targets.registry import target_named, target_version
from tmconvert.torch_code import graph_methods as _torch_code  # noqa: F401  (registers itself with TracedModule)
from tmconvert.transform.transformer import Transformer as Transformer

if TYPE_CHECKING:
    from tmconvert.conversion.support import OpSupport
    from tmconvert.qparams.survey import Quantization
    from tmconvert.targets.violation import Violation
    from tmconvert.verification.report import Verification


@entry_point
def load(
    path: str | PathLike[str],
    *,
    example_inputs: Any = None,
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: DynamicShapes | None = None,
    freeze_control_flow: bool = False,
    allow_code: bool = False,
    check: bool = True,
) -> TracedModule:
    """Loads a model file of any supported kind, which is detected from its content. Raises LoadError.

    With ``check`` the weights of a file of ``tmconvert save`` are read once and compared with their
    checksums.

    Files of PyTorch (``torch.export.save``, ``torch.jit.save``), and the module that a text such as
    ``package.module:factory`` names, are traced. The other parameters are those of ``trace``; inputs may be
    arrays. ``allow_code`` is needed for files of TorchScript, which run code.
    """
    tracing = Tracing.of(example_inputs, example_kwargs, dynamic_shapes, freeze_control_flow, allow_code)
    return _with_names(load_model(path, tracing, check))


@entry_point
@full_collections_wait()
def trace(
    module: Any,
    *example_inputs: Any,
    dynamic_shapes: DynamicShapes | None = None,
    freeze_control_flow: bool = False,
    leaf_modules: Sequence[Any] = (),
    **example_kwargs: Any,
) -> TracedModule:
    """Runs a ``torch.nn.Module``, or a function of tensors, once, and returns it as a TracedModule.

    An ``ExportedProgram`` already has inputs and dynamic sizes. ``dynamic_shapes``, such as ``{"x": {0:
    "batch"}}``, names the sizes that stay dynamic. A module whose Python code reads the data of its tensors
    is an error; with ``freeze_control_flow`` the branches that the example takes are recorded, and the
    model's notes list their locations. Tracing changes nothing in the module. ``leaf_modules``, classes,
    modules or paths, are recorded as one call each, as are the classes of ``register_as_builtin`` and the
    functions of ``wrap``; see ``Tracer``. Raises UnsupportedError; LoadError TM1021 without torch; and what
    the module itself raises.
    """
    return Tracer(leaf_modules).trace(
        module,
        *example_inputs,
        dynamic_shapes=dynamic_shapes,
        freeze_control_flow=freeze_control_flow,
        **example_kwargs,
    )


def _with_names(model: TracedModule) -> TracedModule:
    model.name_modules()
    return model


@entry_point
@full_collections_wait()
def to_onnx(
    model: Model,
    path: str | PathLike[str],
    *,
    opset: int | Literal["auto"] | None = None,
    external_data: bool = False,
    value_info: bool = True,
    float_type: str | None = None,
    integer_weights: str | None = None,
    quantized: bool = False,
    activations: str | None = None,
    weight_type: str | None = None,
    reduce_range: bool = False,
    calibration: Any = None,
    calibration_settings: Mapping[str, Any] | None = None,
    report_data: Any = None,
    qparams: str | PathLike[str] | None = None,
    qparams_format: str | None = None,
    fake_quant_weights: bool = False,
    verify: bool = True,
    example_inputs: Any = None,
    example_kwargs: dict[str, Any] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dynamic_shapes: DynamicShapes | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
    names: str | None = None,
    preprocess: str | Sequence[str] | None = None,
    softmax: bool = False,
    argmax: bool = False,
    allow_random: bool = False,
    seed: int | None = None,
    input_grids: InputQparams | None = None,
    accept_range: bool = False,
    freeze_control_flow: bool = False,
    allow_code: bool = False,
    passes: Sequence[Any] | None = None,
    pass_options: PassOptions | None = None,
) -> Report:
    """Converts a model to an ONNX file of ``opset`` (17; "auto": the lowest from 17 on that can express it).

    ``quantized`` writes pairs of QuantizeLinear and DequantizeLinear (opset 10; 13 for per-channel scales).
    ``activations`` are "uint8" (the default), "int8", from opset 21 "uint16", "int16". ``weight_type``
    "uint8" is exact on every processor; "int8" is faster, and exact with ``reduce_range`` only.
    ``external_data``, and every file above 2 GiB, stores weights in ``path`` + ".data". ``value_info`` stores
    types of intermediate results. ``verify`` runs the file in ONNX Runtime on ``example_inputs``. For
    ``float_type`` and ``integer_weights`` see docs/data-types.md. ``input_shapes`` are by name.
    ``dynamic_shapes`` names sizes to leave open, ``{"x": {0: "batch"}}``; notes state which had to be fixed.
    A model that is right in a range of sizes only raises TM2030 unless ``accept_range``. ``inputs`` and
    ``outputs`` are nodes between which the model is cut. ``rename`` gives these other names,
    ``names="optimum"`` those of caches. ``preprocess`` describes images; ``softmax`` and ``argmax`` apply to
    the output (docs/how-to/preprocessing.md). ``qparams`` is a file of quantization parameters in
    ``qparams_format``, ``input_grids`` has those of inputs; ``fake_quant_weights`` rounds weights to theirs.
    ``calibration`` is data of ``calibrate``, ``calibration_settings`` its keywords; ``report_data`` is for
    the report. ``passes`` run, too. ``allow_random`` writes random operators, with a ``seed``.
    Raises LoadError, UnsupportedError, VerificationError, WriteError, UsageError.
    """
    return convert(ConversionRequest.of("onnx", model, [path], locals()), catalogue())


@entry_point
@full_collections_wait()
def to_tflite(
    model: Model,
    path: str | PathLike[str],
    *,
    io_layout: str | Mapping[str, str] | None = None,
    runtime: str | None = None,
    weights: str | None = None,
    float_type: str | None = None,
    keep_int64: bool = False,
    quantized: bool = False,
    activations: str | None = None,
    io_type: str | None = None,
    allow_float: bool = False,
    wide_weights: bool = False,
    calibration: Any = None,
    calibration_settings: Mapping[str, Any] | None = None,
    report_data: Any = None,
    qparams: str | PathLike[str] | None = None,
    qparams_format: str | None = None,
    fake_quant_weights: bool = False,
    verify: bool = True,
    example_inputs: Any = None,
    example_kwargs: dict[str, Any] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dynamic_shapes: DynamicShapes | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
    names: str | None = None,
    preprocess: str | Sequence[str] | None = None,
    softmax: bool = False,
    argmax: bool = False,
    allow_random: bool = False,
    seed: int | None = None,
    input_grids: InputQparams | None = None,
    accept_range: bool = False,
    freeze_control_flow: bool = False,
    allow_code: bool = False,
    passes: Sequence[Any] | None = None,
    pass_options: PassOptions | None = None,
) -> Report:
    """Converts a model to a TFLite file.

    ``runtime`` is the oldest TensorFlow Lite release that has to run the file, "2.0" to "2.23" (default
    "2.18"). ``io_layout`` "nhwc" (the default) stores rank-4 inputs and outputs of a model with spatial ops
    channels-last, "source" keeps the layout of the source, a dict such as ``{"x": "source", "*": "nhwc"}``
    single ones. ``weights`` "float16" or "int8" stores large weights in that type; layers with int8 weights
    also round their activations (docs/tflite.md). ``float_type`` "source" keeps float16 and float64, which
    become float32 otherwise (docs/data-types.md). ``keep_int64`` keeps int64 tensors, which become int32
    otherwise. ``quantized`` writes integers (docs/quantization.md): ``activations`` "int8" or "int16", inputs
    and outputs of ``io_type``: that, "uint8" or "float32"; ``allow_float`` keeps operators without integer
    kernels in float, ``wide_weights`` keeps weights of -128. The other parameters are those of ``to_onnx``.
    """
    return convert(ConversionRequest.of("tflite", model, [path], locals()), catalogue())


@entry_point
@full_collections_wait()
def to_caffe(
    model: Model,
    prototxt: str | PathLike[str],
    caffemodel: str | PathLike[str] | None = None,
    *,
    dialect: str | None = None,
    calibration: Any = None,
    calibration_settings: Mapping[str, Any] | None = None,
    qparams: str | PathLike[str] | None = None,
    qparams_format: str | None = None,
    fake_quant_weights: bool = False,
    verify: bool = True,
    example_inputs: Any = None,
    example_kwargs: dict[str, Any] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dynamic_shapes: DynamicShapes | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
    names: str | None = None,
    preprocess: str | Sequence[str] | None = None,
    softmax: bool = False,
    argmax: bool = False,
    input_grids: InputQparams | None = None,
    accept_range: bool = False,
    freeze_control_flow: bool = False,
    allow_code: bool = False,
    passes: Sequence[Any] | None = None,
    pass_options: PassOptions | None = None,
) -> Report:
    """Converts a model to a Caffe prototxt and caffemodel (by default next to it) in a dialect, "bvlc" by
    default.

    The other parameters are those of ``to_onnx``, without ``dynamic_shapes``, which Caffe does not have. The
    file is verified in OpenCV's dnn, or by the definitions of the layers where OpenCV lacks one.
    """
    return convert(ConversionRequest.of("caffe", model, [prototxt, caffemodel], locals()), catalogue())


@entry_point
@full_collections_wait()
def to_target(
    model: Model, target: str, path: str | PathLike[str], *more_paths: str | PathLike[str], **options: Any
) -> Report:
    """Converts a model to a target by name, such as one that another package adds, and verifies the file.

    ``options`` are the keywords that all ``to_*`` functions have (``verify``, ``input_shapes``, ``inputs``,
    ``rename``, ...), and those of this target. Most targets write one file; ``more_paths`` are the paths of
    further files. Raises UsageError TM6001 for an unknown target, TM6002 for an unknown option, and what
    ``to_onnx`` raises.

    >>> to_target(model, "json", "model.json", verify=False)
    """
    target_named(target)
    check_options(target, options)
    return convert(ConversionRequest.of(target, model, [path, *more_paths], options), catalogue())


@entry_point
@full_collections_wait()
def save(
    model: Model,
    path: str | PathLike[str],
    *,
    format: str = "tm",
    example_inputs: Any = None,
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: DynamicShapes | None = None,
    freeze_control_flow: bool = False,
    allow_code: bool = False,
) -> TracedModule:
    """Writes any readable model as a container, and returns it. Raises LoadError, WriteError, UsageError.

    ``format`` "megengine" writes a pickle that MegEngine 1.13 loads, of a model whose calls are MegEngine's.
    The other parameters are for models that are traced; see ``load``.
    """
    check_names("tm", CONTAINER_SUFFIXES, [Path(path)])
    keep_model(model, Path(path))
    tracing = Tracing.of(example_inputs, example_kwargs, dynamic_shapes, freeze_control_flow, allow_code)
    module = load_model(model, tracing) if isinstance(model, str | PathLike) else model_of(model, tracing)[0]
    module.save(path, format)
    return module


@entry_point
@full_collections_wait()
def to_folder(
    model: Model,
    output: str | PathLike[str],
    class_name: str | None = None,
    *,
    example_inputs: Any = None,
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: DynamicShapes | None = None,
    freeze_control_flow: bool = False,
    allow_code: bool = False,
) -> tuple[TracedModule, str]:
    """Writes any readable model as a Python package; see ``TracedModule.to_folder``.

    Returns the model and the name of its class. The other parameters are for models that are traced.
    """
    tracing = Tracing.of(example_inputs, example_kwargs, dynamic_shapes, freeze_control_flow, allow_code)
    module, _, dynamic = model_of(model, tracing)
    from tmconvert.torch_code.folder import write_folder

    return module, write_folder(module, output, class_name, catalogue(), dynamic).class_name


@entry_point
def check(
    model: Model,
    target: str,
    version: int | str | None = None,
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> list[UnsupportedGroup]:
    """Returns all ops of the model that would stop a conversion, grouped; empty when it would succeed."""
    overrides = io_overrides_of(input_shapes, inputs, outputs)
    return unsupported_groups(loaded(model), target_named(target).default_options(version), overrides)


@entry_point
def findings(
    model: Model,
    target: str,
    version: int | str | None = None,
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> Findings:
    """Returns the findings of ``check``; without any, violated limits of the target and missing runtime
    kernels.
    """
    overrides = io_overrides_of(input_shapes, inputs, outputs)
    return check_conversion(loaded(model), target_named(target).default_options(version), overrides)


@entry_point
def lint(prototxt: str | PathLike[str], dialect: str = "bvlc") -> list[Violation]:
    """Returns all violations of a Caffe net, of any origin, against ``dialect``. Raises LoadError."""
    target_version("caffe", dialect)
    from tmconvert.targets.caffe.lint import lint as lint_net  # which loads protobuf

    return lint_net(Path(prototxt), dialect)


@entry_point
def quantization(model: Model) -> Quantization | None:
    """Returns the quantization of the model; None for a float model."""
    from tmconvert.qparams.survey import quantization_of

    return quantization_of(loaded(model), catalogue())


@entry_point
def verify(
    model: Model,
    path: str | PathLike[str],
    inputs: Sequence[np.ndarray] | None = None,
    *,
    calibration: Any = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    input_nodes: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
) -> Verification:
    """Compares the outputs of a written file (for Caffe, its prototxt) with those of its source.

    ``inputs`` are in the source's order, random by default. A file of a subgraph, or with other names or
    shapes than the model, needs the arguments of its conversion; ``input_nodes`` is the argument ``inputs``
    of ``to_onnx``. An integer file, or one with weights of fewer bits, is compared with ``model`` converted
    again with the options that the file records; if it was calibrated, the same data is needed. Raises
    VerificationError TM4001 with the error of the worst output, TM4002 when the runtime refuses the file,
    TM4003 when it is not installed.
    """
    overrides = io_overrides_of(input_shapes, input_nodes, outputs, rename)
    return verify_file(
        ConversionRequest.of_file(model, Path(path), inputs, overrides, calibration), catalogue()
    )


@entry_point
def calibrate(
    model: Model,
    data: Any,
    *,
    method: str = "mse",
    per_channel: bool = True,
    rules: Mapping[str, str] | None = None,
    bias_correction: bool = True,
    equalization: bool = True,
    mean: Sequence[float] = (),
    std: Sequence[float] = (),
    layout: str = "nchw",
    resize: str = "stretch",
    progress: Progress | None = None,
    output: str | PathLike[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dynamic_shapes: DynamicShapes | None = None,
    example_inputs: Any = None,
    example_kwargs: Mapping[str, Any] | None = None,
    freeze_control_flow: bool = False,
    allow_code: bool = False,
) -> TracedModule:
    """Returns the float ``model`` with QParams measured on ``data``, for conversions with ``quantized``.

    ``data`` is a path (.npz, or a folder of .npy, .npz or images), a dict of arrays by input, or a sequence
    of samples. ``method`` is "minmax", "percentile", "mse" or "entropy". ``rules`` map patterns of module
    paths to "int8", "int16x8" or "float". ``bias_correction`` compensates the mean error of rounding in the
    biases. ``equalization`` scales channels between layers, so that all channels use the integer range
    equally. ``mean``, ``std``, ``layout`` and ``resize`` are for images. ``progress`` is called with the
    number of samples done and of all. ``output`` is a file to save the model to; the other parameters are
    those of ``to_onnx``. Raises UsageError TM6032, TM6033, and what ``load`` raises.
    """
    from tmconvert.calibration.calibrate import calibrate as calibrated

    settings = Settings.of(
        {
            "method": method,
            "per_channel": per_channel,
            "rules": rules or {},
            "bias_correction": bias_correction,
            "equalization": equalization,
            "mean": mean,
            "std": std,
            "layout": layout,
            "resize": resize,
        }
    )
    if output is not None:
        check_names("tm", CONTAINER_SUFFIXES, [Path(output)])
        keep_model(model, Path(output))
        check_writable(output)
    tracing = Tracing.of(example_inputs, example_kwargs, dynamic_shapes, freeze_control_flow, allow_code)
    module, within = graph_of(model, tracing, io_overrides_of(input_shapes, None, None))
    made = calibrated(module, data, catalogue(), settings, progress, within)
    if output is not None:
        made.save(output)
    return made


@entry_point
def supported_ops(target: str, version: int | str | None = None) -> list[OpSupport]:
    """Returns every op of the catalogue, and how ``target`` supports it at ``version`` (default if None)."""
    from tmconvert.conversion.support import op_support

    number = target_version(target, version)
    return [op_support(op, target, number) for op in catalogue().values()]


@entry_point
def register_symbolic(
    name: str,
    function: Callable[..., Any] | None = None,
    *,
    target: str | None = None,
    since: int = 0,
    reference: Callable[..., Any] | None = None,
    result: Callable[..., Any] | str | None = None,
) -> Callable[..., Any]:
    """Registers a symbolic of an op for ``target`` from version ``since`` on: ``function(g, ...)``. Also a
    decorator.

    ``name`` is that of a ``torch.library`` op (``mylib::swish``), of another call as `tmconvert check` prints
    it, or of an op of the catalogue (``aten::gelu``). Without a target the function decomposes the op into
    ops of the catalogue by ``g.call``, for every target. Its parameters after ``g`` are those of the op:
    tensors are passed as values, other arguments unchanged.

    ``result`` computes the TensorType of the result (a list for several) from the arguments, given as
    TensorTypes, or names the argument whose type it has; without it the types that the tracer recorded are
    used. ``reference`` computes the result from NumPy arrays; without it the file is compared only with the
    recorded outputs of the example. docs/custom-ops.md has examples.

    Raises UsageError TM6021 for an invalid name, target, version or function.
    """

    def registers(function: Callable[..., Any]) -> Callable[..., Any]:
        register(name, function, target=target, since=since, reference=reference, result=result)
        return function

    return registers if function is None else registers(function)
