"""The public functions that convert models; ``tmconvert.api`` has the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, BinaryIO

from tmconvert import api_conveniences as _conveniences  # noqa: F401  (registers itself)
from tmconvert.conversion.options.arguments import check_options, entry_point
from tmconvert.conversion.options.calls import with_current_names
from tmconvert.conversion.options.conversion import CaffeOptions, OnnxOptions, TfliteOptions
from tmconvert.conversion.options.declared import expand_options
from tmconvert.conversion.pipeline import convert
from tmconvert.conversion.prepared_model import traced
from tmconvert.conversion.report import Report
from tmconvert.conversion.request import ConversionRequest, Model
from tmconvert.errors import LoadError, TmconvertError, UnsupportedError, VerificationError
from tmconvert.garbage_collection import full_collections_wait, no_collections
from tmconvert.progress import Progress
from tmconvert.symbolics.registry import catalogue
from tmconvert.symbolics.target_names import TARGETS
from tmconvert.targets.registry import target_named

if TYPE_CHECKING:
    from typing_extensions import Unpack

# a path, an open file, or None for a file in a temporary folder; open files have become paths in functions
Output = str | PathLike[str] | BinaryIO | None


def _converted(target: str, model: Model, paths: Sequence[Any], arguments: Mapping[str, Any]) -> Report:
    """Converts, and records the conversion where a lock is requested."""
    if isinstance(model, Mapping) and target_named(target).has_signatures:
        return _signatures(target, model, paths, arguments)
    if arguments.get("lock") is None:
        return _converted_unlocked(target, model, paths, arguments)
    from tmconvert.lock.recording import recording_lock

    with recording_lock(arguments["lock"], target, model, arguments) as recorder:
        recorder.report = _converted_unlocked(target, model, paths, arguments)
    return recorder.report


def _signatures(
    target: str, models: Mapping[str, Model], paths: Sequence[Any], arguments: Mapping[str, Any]
) -> Report:
    from tmconvert.conversion.signatures import convert_signatures

    with no_collections():
        _load_modules(target, arguments)
    return convert_signatures(target, models, paths, arguments, catalogue())


def _load_modules(target: str, arguments: Mapping[str, Any]) -> None:
    """Loads what a conversion needs, while the process of the runtime starts."""
    if arguments.get("passes"):  # users' passes get graphs as users have them
        import tmconvert.surgery  # noqa: F401
    if arguments.get("verify", True):
        if target in TARGETS:  # Python starts there while the target's modules load here
            from tmconvert.verification.processes import worker

            worker.start_process()
        target_named(target).start_runtime()


def _converted_unlocked(
    target: str, model: Model, paths: Sequence[Any], arguments: Mapping[str, Any]
) -> Report:
    """Starts the process of the runtime, which takes as long as small conversions, and converts."""
    with no_collections():  # while modules load
        _load_modules(target, arguments)
        request = ConversionRequest.of(target, model, paths, arguments)
    notes: list[str] = []
    if request.min_sqnr is not None or request.score_bound is not None:
        from tmconvert.mixed_precision.search import with_found_rules

        request, notes = with_found_rules(request, catalogue())
    elif request.tries_rules:
        request = traced(request)  # once for all trials
    try:
        report = convert(request, catalogue())
    except (UnsupportedError, LoadError, VerificationError) as error:
        is_of_outputs = isinstance(error, VerificationError) and bool(error.outputs)
        is_of_nodes = error.code == "TM2003" or is_of_outputs
        kept = _with_kept_nodes(request, arguments, error) if is_of_nodes else None
        if kept is None:
            raise
        report = kept
    report.notes += notes
    if request.tries_rules and not report.stopped:
        from tmconvert.mixed_precision.tried_rules import add_tried_rules

        add_tried_rules(report, request, catalogue())
    return report


def _with_kept_nodes(
    request: ConversionRequest, arguments: Mapping[str, Any], error: TmconvertError
) -> Report | None:
    if request.target.name != "onnx":
        return None
    from tmconvert.conversion.simplify import convert_with_kept_nodes

    return convert_with_kept_nodes(request, arguments, catalogue(), error)


@entry_point
@full_collections_wait()
@expand_options(OnnxOptions)
def to_onnx(model: Model, path: Output = None, **options: Unpack[OnnxOptions]) -> Report:
    """Converts a model to an ONNX file, runs the file, and compares its outputs with those of the model.

    Args:
        model: A path or the bytes of any kind of model, an open file, a TracedModule, a ModelProto, a
            model of ``onnx_ir``, or a PyTorch module with ``example_inputs``.
        path: The file to write: a path, or a file that is open for binary writing. Without it, the report
            has the model: ``report.model``, ``report.bytes``.

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
    return _converted("onnx", model, [path], options)


@entry_point
@full_collections_wait()
@expand_options(OnnxOptions)
def simplify(model: Model, path: Output = None, **options: Unpack[OnnxOptions]) -> Report:
    """Simplifies an ONNX model: as ``to_onnx`` at the same opset, but nodes that cannot be converted stay.

    These are nodes of other domains, of operands that are computed from data, or of sequences of tensors.
    A model that cannot be simplified is copied unchanged, with a note; where options change the model, the
    error is raised instead.

    Args:
        model: The path or the bytes of an ONNX model, an open file, a ModelProto, or a model of ``onnx_ir``.
        path: The file to write: a path, or a file that is open for binary writing. Without it, the report
            has the model: ``report.model``, ``report.bytes``.

    Returns:
        The report: the paths, inputs and outputs of the file, the errors found, and notes; ``str`` of it is
            what the command prints.

    Raises:
        LoadError: The file is not an ONNX model, or its weights are missing.
        UsageError: Arguments are invalid or exclude each other.
        WriteError: The file cannot be written.

    Example:
        >>> report = tmconvert.simplify("net.onnx", "simple.onnx")  # doctest: +SKIP
        >>> simple = tmconvert.simplify(onnx.load("net.onnx")).model  # doctest: +SKIP
    """
    from tmconvert.conversion.simplify import simplify_model

    return simplify_model(model, path, options, catalogue())


@entry_point
@full_collections_wait()
@expand_options(TfliteOptions)
def to_tflite(
    model: Model | Mapping[str, Any], path: Output = None, **options: Unpack[TfliteOptions]
) -> Report:
    """Converts a model to a TFLite file, runs the file, and compares its outputs with those of the model.

    Args:
        model: A path or the bytes of any kind of model, an open file, a TracedModule, a ModelProto, a
            model of ``onnx_ir``, or a PyTorch module with ``example_inputs``. A dict of models by name makes
            a file with several signatures, which share weights; an entry may be a pair of a module, or a
            bound method, and its example inputs.
        path: The file to write: a path, or a file that is open for binary writing. Without it, the report
            has the model: ``report.model``, ``report.bytes``.

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
    return _converted("tflite", model, [path], options)


@entry_point
@full_collections_wait()
@expand_options(CaffeOptions)
def to_caffe(
    model: Model, prototxt: Output = None, caffemodel: Output = None, **options: Unpack[CaffeOptions]
) -> Report:
    """Converts a model to a Caffe prototxt and caffemodel, and compares their outputs with those of the
    model.

    The net is run in OpenCV or MNN, where one is installed and supports all layers, else by the NumPy
    definitions of the layers.

    Args:
        model: A path or the bytes of any kind of model, an open file, a TracedModule, a ModelProto, a
            model of ``onnx_ir``, or a PyTorch module with ``example_inputs``.
        prototxt: The file of the structure to write. Without it, ``report.model`` has both files.
        caffemodel: The file of the weights to write; by default next to ``prototxt``.

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
    return _converted("caffe", model, [prototxt, caffemodel], options)


@entry_point
@full_collections_wait()
def to_target(
    model: Model,
    target: str,
    path: Output = None,
    *more_paths: str | PathLike[str],
    progress: Progress | None = None,
    **options: Any,
) -> Report:
    """Converts a model to a target by name, such as one that another package adds, and verifies the file.

    Args:
        model: What ``to_onnx`` takes.
        target: Name of the target: "onnx", "tflite", "caffe", or that of an installed package.
        path: The file to write: a path, an open file, or None for ``report.model``.
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
    options = with_current_names(options)
    check_options(target, options)
    return _converted(target, model, [path, *more_paths], options)
