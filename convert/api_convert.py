"""The public functions that convert models; ``tmconvert.api`` has the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from tmconvert import api_conveniences as _conveniences  # noqa: F401  (registers itself)
from tmconvert.conversion.arguments import check_options, entry_point
from tmconvert.conversion.pipeline import convert
from tmconvert.conversion.report import Report
from tmconvert.conversion.request import ConversionRequest, InputQparams, Model
from tmconvert.frontends.torch.request import DynamicShapes
from tmconvert.garbage_collection import full_collections_wait, no_collections
from tmconvert.passes.manager import PassOptions
from tmconvert.progress import Progress
from tmconvert.symbolics.registry import catalogue
from tmconvert.symbolics.target_names import TARGETS
from tmconvert.targets.registry import target_named


def _converted(
    target: str, model: Model, paths: Sequence[str | PathLike[str] | None], arguments: Mapping[str, Any]
) -> Report:
    """Starts the process of the runtime, which takes as long as small conversions, and converts."""
    with no_collections():  # while modules load
        if arguments.get("passes"):  # users' passes get graphs as users have them
            import tmconvert.surgery  # noqa: F401
        if arguments.get("verify", True):
            if target in TARGETS:  # Python starts there while the target's modules load here
                from tmconvert.verification.processes import worker

                worker.start_process()
            target_named(target).start_runtime()
        request = ConversionRequest.of(target, model, paths, arguments)
    if request.min_sqnr is None:
        return convert(request, catalogue())
    from tmconvert.mixed_precision.search import with_found_rules

    request, note = with_found_rules(request, catalogue())
    report = convert(request, catalogue())
    report.notes.append(note)
    return report


@entry_point
@full_collections_wait()
def to_onnx(
    model: Model,
    path: str | PathLike[str],
    *,
    opset: int | Literal["auto"] | None = None,
    external_data: bool = False,
    value_info: bool = True,
    weights: str | None = None,
    float_type: str | None = None,
    io_type: str | None = None,
    integer_weights: str | None = None,
    quantized: bool = False,
    activations: str | None = None,
    weight_type: str | None = None,
    reduce_range: bool = False,
    rules: Mapping[str, str] | None = None,
    min_sqnr: float | None = None,
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
    progress: Progress | None = None,
) -> Report:
    """Converts a model to an ONNX file, runs the file, and compares its outputs with those of the model.

    Args:
        model: A path of any kind of model, a TracedModule, or a PyTorch module with ``example_inputs``.
        path: The file to write.
        opset: ONNX opset version, from 7 on; None is 17, "auto" the lowest from 17 on that suffices.
        external_data: Store the weights in ``path`` + ".data"; always so above 2 GiB.
        value_info: Store types and shapes of intermediate results.
        weights: "float16", "int8" or, from opset 21, "int4" stores large weights in that type; inputs,
            outputs and computations stay float32 (docs/how-to/precision.md).
        float_type: Type of floats, also of inputs and outputs: "float32", "float16" or "bfloat16"; None
            keeps those of the model.
        io_type: "float32" keeps inputs and outputs in float32 with another ``float_type``.
        integer_weights: Form of weights that the model, or ``weights`` "int4", holds as integers with
            scales: "float32" (the default), "DequantizeLinear" or "MatMulNBits".
        quantized: Write an integer model: pairs of QuantizeLinear and DequantizeLinear, from opset 10 on (13
            with a scale per channel).
        activations: Type of activations: "uint8" (the default), "int8", and from opset 21 "uint16" or
            "int16".
        weight_type: "uint8" is exact on every processor; "int8" is faster, and exact only with
            ``reduce_range``.
        reduce_range: Quantize weights to 7 bits.
        rules: Types by patterns of modules and tensors; the last match counts. They are those of weights with
            ``weights``, of computations with ``float_type``, else those of ``calibrate``.
        min_sqnr: The lowest signal-to-noise ratio of an output, in dB: further rules are found by up to 30
            conversions, and the notes name them (docs/how-to/calibrate.md).
        calibration: Data that ``quantized`` or ``qparams`` measures scales on, as that of ``calibrate``.
        calibration_settings: Keywords of ``calibrate`` for it.
        report_data: Data for the report of quantization errors; None takes some of ``calibration``.
        qparams: A file to write quantization parameters to, next to a float model.
        qparams_format: Format of that file; `tmconvert params --help` lists all.
        fake_quant_weights: Round the weights of a float model to their quantization parameters.
        verify: Run the file in ONNX Runtime, and compare it with the model.
        example_inputs: Inputs to trace a PyTorch module with, and to verify with: arrays or tensors, in
            order.
        example_kwargs: Inputs by the names of the arguments of ``forward``.
        input_shapes: Shapes by input, in place of those in the model.
        dynamic_shapes: Sizes to leave open, such as ``{"x": {0: "batch"}}``; notes state which had to be
            fixed.
        inputs: Names of the tensors at which a subgraph to convert starts.
        outputs: Names of the tensors at which it ends.
        rename: New names of inputs and outputs.
        names: "optimum" names caches as optimum does.
        preprocess: Descriptions of images that the file takes (docs/how-to/preprocessing.md).
        softmax: Apply softmax to the classes of the output.
        argmax: Return the index of the best class.
        allow_random: Write operators that draw random numbers.
        seed: Seed of these operators, an integer from 0 on.
        input_grids: Type, scale and zero point of quantized inputs without a QuantStub, such as ``{"x":
            ("quint8", 0.5, 128)}``.
        accept_range: Accept a file that is right in a range of dynamic sizes only, which is TM2030
            otherwise.
        freeze_control_flow: Record the branches that the example takes where control flow depends on data.
        allow_code: Allow the code of a TorchScript file to run.
        passes: Passes to run as well: names, functions of a graph, or classes.
        pass_options: Dumps of the graph, and the pass to stop after.
        progress: A function that is called with the numbers of steps done and of all, and with the ``stage``
            if it has such a parameter.

    Returns:
        The report: the paths, inputs and outputs of the file, the errors found, and notes; ``str`` of it is
            what the command prints.

    Raises:
        LoadError: The model cannot be read.
        UnsupportedError: Operations cannot be expressed in the target; all of them are listed.
        UsageError: Arguments are invalid or exclude each other.
        VerificationError: The file does not compute what the model computes (TM4001), or its runtime refuses
            it (TM4002) or is not installed (TM4003).
        WriteError: The file cannot be written.

    Example:
        >>> inputs = [torch.ones(1, 3, 32, 32)]  # doctest: +SKIP
        >>> report = tmconvert.to_onnx(net, "net.onnx", example_inputs=inputs)  # doctest: +SKIP
        >>> report.verified  # doctest: +SKIP
        True
    """
    return _converted("onnx", model, [path], locals())


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
    rules: Mapping[str, str] | None = None,
    min_sqnr: float | None = None,
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
    progress: Progress | None = None,
) -> Report:
    """Converts a model to a TFLite file, runs the file, and compares its outputs with those of the model.

    Args:
        model: A path of any kind of model, a TracedModule, or a PyTorch module with ``example_inputs``.
        path: The file to write.
        io_layout: "nhwc" (the default) stores rank-4 inputs and outputs of a model with spatial ops
            channels-last, "source" keeps the layout of the source; a dict such as ``{"x": "source", "*":
            "nhwc"}`` chooses by name.
        runtime: The oldest TensorFlow Lite release that has to run the file: "2.0" to "2.23"; None is
            "2.18".
        weights: "float16" or "int8" stores large weights in that type; layers with int8 weights also round
            their activations (docs/tflite.md).
        float_type: "source" keeps float16 and float64, which become float32 otherwise.
        keep_int64: Keep int64 tensors, which become int32 otherwise.
        quantized: Write an integer model (docs/quantization.md).
        activations: Type of activations: "int8" (the default) or "int16".
        io_type: Type of inputs and outputs of an integer file: "int8", "uint8", "int16" or "float32"; None
            is that of the activations.
        allow_float: Keep operators without integer kernels in float.
        wide_weights: Keep weights of -128.
        rules: Types by patterns of modules and tensors; the last match counts. They are those of weights with
            ``weights``, else those of ``calibrate``.
        min_sqnr: The lowest signal-to-noise ratio of an output, in dB: further rules are found by up to 30
            conversions, and the notes name them (docs/how-to/calibrate.md).
        calibration: Data that ``quantized`` or ``qparams`` measures scales on, as that of ``calibrate``.
        calibration_settings: Keywords of ``calibrate`` for it.
        report_data: Data for the report of quantization errors; None takes some of ``calibration``.
        qparams: A file to write quantization parameters to, next to a float model.
        qparams_format: Format of that file; `tmconvert params --help` lists all.
        fake_quant_weights: Round the weights of a float model to their quantization parameters.
        verify: Run the file in LiteRT, and compare it with the model.
        example_inputs: Inputs to trace a PyTorch module with, and to verify with: arrays or tensors, in
            order.
        example_kwargs: Inputs by the names of the arguments of ``forward``.
        input_shapes: Shapes by input, in place of those in the model.
        dynamic_shapes: Sizes to leave open, such as ``{"x": {0: "batch"}}``; notes state which had to be
            fixed.
        inputs: Names of the tensors at which a subgraph to convert starts.
        outputs: Names of the tensors at which it ends.
        rename: New names of inputs and outputs.
        names: "optimum" names caches as optimum does.
        preprocess: Descriptions of images that the file takes (docs/how-to/preprocessing.md).
        softmax: Apply softmax to the classes of the output.
        argmax: Return the index of the best class.
        allow_random: Write operators that draw random numbers.
        seed: Seed of these operators, an integer from 0 on.
        input_grids: Type, scale and zero point of quantized inputs without a QuantStub, such as ``{"x":
            ("quint8", 0.5, 128)}``.
        accept_range: Accept a file that is right in a range of dynamic sizes only, which is TM2030
            otherwise.
        freeze_control_flow: Record the branches that the example takes where control flow depends on data.
        allow_code: Allow the code of a TorchScript file to run.
        passes: Passes to run as well: names, functions of a graph, or classes.
        pass_options: Dumps of the graph, and the pass to stop after.
        progress: A function that is called with the numbers of steps done and of all, and with the ``stage``
            if it has such a parameter.

    Returns:
        The report: the paths, inputs and outputs of the file, the errors found, and notes; ``str`` of it is
            what the command prints.

    Raises:
        LoadError: The model cannot be read.
        UnsupportedError: Operations cannot be expressed in the target; all of them are listed.
        UsageError: Arguments are invalid or exclude each other.
        VerificationError: The file does not compute what the model computes (TM4001), or its runtime refuses
            it (TM4002) or is not installed (TM4003).
        WriteError: The file cannot be written.

    Example:
        >>> tmconvert.to_tflite(  # doctest: +SKIP
        ...     "net.tm",
        ...     "net.tflite",
        ...     quantized=True,
        ...     calibration="images/",
        ...     calibration_settings={"mean": [0.5], "std": [0.5]},
        ... )
    """
    return _converted("tflite", model, [path], locals())


@entry_point
@full_collections_wait()
def to_caffe(
    model: Model,
    prototxt: str | PathLike[str],
    caffemodel: str | PathLike[str] | None = None,
    *,
    dialect: str | None = None,
    rules: Mapping[str, str] | None = None,
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
    progress: Progress | None = None,
) -> Report:
    """Converts a model to a Caffe prototxt and caffemodel, and compares their outputs with those of the
    model.

    Args:
        model: A path of any kind of model, a TracedModule, or a PyTorch module with ``example_inputs``.
        prototxt: The file of the structure to write.
        caffemodel: The file of the weights to write; by default next to ``prototxt``.
        dialect: Caffe dialect; None is "bvlc".
        rules: Types by patterns of modules and tensors, as those of ``calibrate``.
        calibration: Data that ``quantized`` or ``qparams`` measures scales on, as that of ``calibrate``.
        calibration_settings: Keywords of ``calibrate`` for it.
        qparams: A file to write quantization parameters to, next to a float model.
        qparams_format: Format of that file; `tmconvert params --help` lists all.
        fake_quant_weights: Round the weights of a float model to their quantization parameters.
        verify: Run the file in OpenCV or MNN, where one is installed and supports all layers, else by the
            NumPy definitions of the layers, and compare it with the model.
        example_inputs: Inputs to trace a PyTorch module with, and to verify with: arrays or tensors, in
            order.
        example_kwargs: Inputs by the names of the arguments of ``forward``.
        input_shapes: Shapes by input, in place of those in the model.
        dynamic_shapes: Must be empty: Caffe has no dynamic sizes.
        inputs: Names of the tensors at which a subgraph to convert starts.
        outputs: Names of the tensors at which it ends.
        rename: New names of inputs and outputs.
        names: "optimum" names caches as optimum does.
        preprocess: Descriptions of images that the file takes (docs/how-to/preprocessing.md).
        softmax: Apply softmax to the classes of the output.
        argmax: Return the index of the best class.
        input_grids: Type, scale and zero point of quantized inputs without a QuantStub, such as ``{"x":
            ("quint8", 0.5, 128)}``.
        accept_range: Accept a file that is right in a range of dynamic sizes only, which is TM2030
            otherwise.
        freeze_control_flow: Record the branches that the example takes where control flow depends on data.
        allow_code: Allow the code of a TorchScript file to run.
        passes: Passes to run as well: names, functions of a graph, or classes.
        pass_options: Dumps of the graph, and the pass to stop after.
        progress: A function that is called with the numbers of steps done and of all, and with the ``stage``
            if it has such a parameter.

    Returns:
        The report: the paths, inputs and outputs of the file, the errors found, and notes; ``str`` of it is
            what the command prints.

    Raises:
        LoadError: The model cannot be read.
        UnsupportedError: Operations cannot be expressed in the target; all of them are listed.
        UsageError: Arguments are invalid or exclude each other.
        VerificationError: The file does not compute what the model computes (TM4001), or its runtime refuses
            it (TM4002) or is not installed (TM4003).
        WriteError: The file cannot be written.

    Example:
        >>> tmconvert.to_caffe("net.tm", "net.prototxt", dialect="bvlc").paths  # doctest: +SKIP
        (PosixPath('net.prototxt'), PosixPath('net.caffemodel'))
    """
    return _converted("caffe", model, [prototxt, caffemodel], locals())


@entry_point
@full_collections_wait()
def to_target(
    model: Model,
    target: str,
    path: str | PathLike[str],
    *more_paths: str | PathLike[str],
    progress: Progress | None = None,
    **options: Any,
) -> Report:
    """Converts a model to a target by name, such as one that another package adds, and verifies the file.

    Args:
        model: A path of any kind of model, a TracedModule, or a PyTorch module with ``example_inputs``.
        target: Name of the target: "onnx", "tflite", "caffe", or that of an installed package.
        path: The file to write.
        *more_paths: Further files to write, for targets with several.
        progress: A function that is called with the numbers of steps done and of all, and with the ``stage``
            if it has such a parameter.
        **options: Keywords that all ``to_*`` functions have (``verify``, ``input_shapes``, ``inputs``,
            ``rename``, ...), and those of this target.

    Returns:
        The report, as of ``to_onnx``.

    Raises:
        UsageError: TM6001 for an unknown target, TM6002 for an unknown option.
        TmconvertError: What ``to_onnx`` raises.

    Example:
        >>> tmconvert.to_target(model, "json", "model.json", verify=False)  # doctest: +SKIP
    """
    target_named(target)
    check_options(target, options)
    return _converted(target, model, [path, *more_paths], options)
