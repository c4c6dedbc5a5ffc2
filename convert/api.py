"""The public functions, available as ``tmconvert.NAME``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tmconvert import ir
from tmconvert.api_convert import simplify as simplify
from tmconvert.api_convert import to_caffe as to_caffe
from tmconvert.api_convert import to_onnx as to_onnx
from tmconvert.api_convert import to_target as to_target
from tmconvert.api_convert import to_tflite as to_tflite
from tmconvert.api_diff import diff as diff
from tmconvert.api_inspect import bench as bench
from tmconvert.api_inspect import check as check
from tmconvert.api_inspect import compare as compare
from tmconvert.api_inspect import evaluate as evaluate
from tmconvert.api_inspect import findings as findings
from tmconvert.api_inspect import forecast as forecast
from tmconvert.api_inspect import inspect as inspect
from tmconvert.api_inspect import lint as lint
from tmconvert.api_inspect import params as params
from tmconvert.api_inspect import quantization as quantization
from tmconvert.api_inspect import score as score
from tmconvert.api_lock import rebuild as rebuild
from tmconvert.api_package import package as package
from tmconvert.api_reduce import reduce as reduce
from tmconvert.api_stream import stream as stream
from tmconvert.api_transform import decompose as decompose
from tmconvert.api_transform import normalize as normalize
from tmconvert.api_transform import optimize as optimize
from tmconvert.api_transform import parse_graph as parse_graph
from tmconvert.api_transform import register_pass as register_pass
from tmconvert.api_transform import replace_pattern as replace_pattern
from tmconvert.api_transform import run as run
from tmconvert.api_transform import split_module as split_module
from tmconvert.api_view import view as view
from tmconvert.calibration.settings import Settings
from tmconvert.conversion.load import load_model
from tmconvert.conversion.options.arguments import entry_point
from tmconvert.conversion.options.calibration import CalibrateOptions
from tmconvert.conversion.options.declared import expand_options
from tmconvert.conversion.options.inspection import VerifyOptions
from tmconvert.conversion.options.tracing import SourceOptions
from tmconvert.conversion.output_paths import CONTAINER_SUFFIXES, check_names, keep_model
from tmconvert.conversion.pipeline import verify_file
from tmconvert.conversion.prepared_model import graph_of, model_of
from tmconvert.conversion.request import ConversionRequest, Model, io_overrides_of, tracing_of
from tmconvert.frontends.torch.customization import register_as_builtin as register_as_builtin
from tmconvert.frontends.torch.customization import register_supported_type as register_supported_type
from tmconvert.frontends.torch.customization import trace_through as trace_through
from tmconvert.frontends.torch.customization import wrap as wrap
from tmconvert.frontends.torch.module_tracer import Tracer as Tracer
from tmconvert.frontends.torch.request import DynamicShapes
from tmconvert.garbage_collection import full_collections_wait
from tmconvert.ir.interpreter import Interpreter as Interpreter
from tmconvert.observation import observe as observe
from tmconvert.output.atomic import check_writable
from tmconvert.progress import Progress
from tmconvert.surgery import TracedModule as TracedModule
from tmconvert.surgery.module import users_model
from tmconvert.symbolics.registry import catalogue, register
from tmconvert.symbolics.registry import temporary_symbolics as temporary_symbolics
from tmconvert.targets.registry import target_version
from tmconvert.transform.transformer import Transformer as Transformer

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tmconvert.conversion.support import OpSupport
    from tmconvert.verification.verify import Verification


@entry_point
@expand_options(SourceOptions)
def load(path: str | PathLike[str], *, check: bool = True, **options: Unpack[SourceOptions]) -> TracedModule:
    """Loads a model of any supported kind, which is detected from its content.

    Args:
        path: The path of a file or of a folder of transformers, or ``package.module:factory``, the name of a
            function or class that returns a PyTorch module.
        check: Compare the weights of a file of ``tmconvert save`` with their checksums.

    Returns:
        The model, with its graph and weights; it can be run, changed, saved and converted.

    Raises:
        LoadError: The file cannot be read, or is not a model.
        UnsupportedError: A PyTorch model cannot be traced.
        UsageError: Inputs to trace with are missing (TM6008), or the model has a graph already (TM6016).

    Example:
        >>> tm = tmconvert.load("net.tm")  # doctest: +SKIP
        >>> tm = tmconvert.load("nets:make", example_inputs=[torch.ones(1, 3, 32, 32)])  # doctest: +SKIP
    """
    tracing = tracing_of(options)
    return _with_names(load_model(path, tracing, check))


@entry_point
@full_collections_wait()
def trace(
    module: object,
    *example_inputs: Any,
    dynamic_shapes: DynamicShapes | None = None,
    fix: Mapping[str, int] | None = None,
    freeze_control_flow: bool = False,
    training: bool = False,
    state: Sequence[str] | None = None,
    noise: Literal["input", "operator"] | None = None,
    roll_loops: bool = False,
    leaf_modules: Sequence[Any] = (),
    progress: Progress | None = None,
    **example_kwargs: Any,
) -> TracedModule:
    """Runs a PyTorch module, or a function of tensors, once, and returns it as a TracedModule.

    Tracing changes nothing in the module.

    Args:
        module: A ``torch.nn.Module``, a function of tensors, or an ``ExportedProgram``, which has inputs and
            dynamic sizes of its own.
        *example_inputs: The inputs to run it with: tensors, or nested lists, tuples and dicts of tensors.
        dynamic_shapes: Sizes to leave open, such as ``{"x": {0: "batch"}}``.
        fix: Numbers of dynamic sizes by name, such as ``{"batch": 1}``.
        freeze_control_flow: Record the branches that the example takes where the Python code of the module
            reads the data of its tensors, which is an error otherwise. The notes of the model list their
            locations.
        training: Trace modules in the mode in which they are; without it, as after ``eval()``.
        state: Names of tensors that the module keeps from call to call, such as ``["encoder.cache"]``: each
            becomes an input, and an output with its value after the call. ``["all"]`` takes each one.
        noise: ``"input"`` makes each tensor of random numbers an input; otherwise a conversion decides.
        roll_loops: Make one loop of equal rounds of a Python loop whose number of rounds is static. The file
            is smaller, and usually not faster.
        leaf_modules: Classes, modules or paths of modules that are recorded as one call each, as are the
            classes of ``register_as_builtin`` and the functions of ``wrap``.
        progress: A function that is called with the numbers of steps done and of all, and with the ``stage``
            if it has such a parameter.
        **example_kwargs: Inputs by the names of the arguments of ``forward``, other than those above.

    Returns:
        The model; its example has the inputs, and the outputs that PyTorch computed.

    Raises:
        UnsupportedError: The module cannot be traced; the error has the line of the module.
        LoadError: TM1021 without PyTorch.
        Exception: What the module itself raises.

    Example:
        >>> sizes = {"x": {0: "batch"}}
        >>> tm = tmconvert.trace(net, torch.ones(2, 3, 8, 8), dynamic_shapes=sizes)  # doctest: +SKIP
    """
    traced = Tracer(leaf_modules).trace(
        module,
        *example_inputs,
        dynamic_shapes=dynamic_shapes,
        fix=fix,
        freeze_control_flow=freeze_control_flow,
        training=training,
        state=state,
        noise=noise,
        roll_loops=roll_loops,
        **example_kwargs,
    )
    return users_model(traced)


def _with_names(model: ir.TracedModule) -> TracedModule:
    model.name_modules()
    return users_model(model)


@entry_point
@full_collections_wait()
@expand_options(SourceOptions)
def save(
    model: Model, path: str | PathLike[str], *, format: str = "tm", **options: Unpack[SourceOptions]
) -> TracedModule:
    """Writes any readable model as a container, and returns it.

    Args:
        model: A path of any kind of model, a TracedModule, or a PyTorch module with ``example_inputs``.
        path: The file to write, NAME.tm.
        format: "tm" is the container of tmconvert; "megengine" a pickle that MegEngine 1.13 loads, of a model
            whose calls are MegEngine's.

    Returns:
        The model that was written.

    Raises:
        LoadError: The model cannot be read.
        UnsupportedError: A PyTorch model cannot be traced.
        UsageError: Arguments are invalid.
        WriteError: The file cannot be written.

    Example:
        >>> tmconvert.save("net.pt2", "net.tm")  # doctest: +SKIP
    """
    check_names("models", CONTAINER_SUFFIXES, [Path(path)])
    keep_model(model, Path(path))
    tracing = tracing_of(options)
    read = load_model(model, tracing) if isinstance(model, str | PathLike) else model_of(model, tracing)[0]
    module = users_model(read)
    module.save(path, format)
    return module


@entry_point
@full_collections_wait()
@expand_options(SourceOptions)
def to_folder(
    model: Model, output: str | PathLike[str], class_name: str | None = None, **options: Unpack[SourceOptions]
) -> tuple[TracedModule, str]:
    """Writes any readable model as a Python package for PyTorch; see ``TracedModule.to_folder``.

    Args:
        model: A path of any kind of model, a TracedModule, or a PyTorch module with ``example_inputs``.
        output: The folder to write.
        class_name: Name of the class; None takes that of the model.

    Returns:
        The model, and the name of its class.

    Raises:
        LoadError: The model cannot be read.
        UnsupportedError: Operations have no form in PyTorch.
        UsageError: Arguments are invalid.
        WriteError: The folder cannot be written.

    Example:
        >>> from tmconvert import api
        >>> api.to_folder("net.tm", "net")  # doctest: +SKIP
    """
    tracing = tracing_of(options)
    module, _, dynamic, fix = model_of(model, tracing)
    from tmconvert.torch_code.folder import write_folder

    written = write_folder(module, output, class_name, catalogue(), dynamic, fix)
    return users_model(module), written.class_name


@entry_point
@expand_options(VerifyOptions)
def verify(
    model: Model,
    path: str | PathLike[str] | None = None,
    inputs: Sequence[np.ndarray] | None = None,
    **options: Unpack[VerifyOptions],
) -> Verification:
    """Compares the outputs of a written file with those of its source.

    An integer file, or one with weights of fewer bits, is compared with ``model`` converted again with the
    options that the file records.

    Args:
        model: The source: a TracedModule, or the path of a model. Without ``path`` the written
            file alone, which is compared on accelerators (``on``) or with the values of a ``lock``.
        path: The written file; for Caffe its prototxt.
        inputs: Arrays in the order of the source's inputs; random by default.

    Returns:
        The errors of the outputs, and of layers in integer files.

    Raises:
        LoadError: The model or the file cannot be read.
        UsageError: Arguments are invalid.
        VerificationError: TM4001 with the error of the worst output, TM4002 when the runtime refuses the
            file, TM4003 when it or an accelerator is not installed, TM4007 when an accelerator is wrong.

    Example:
        >>> tmconvert.verify("net.tm", "net.onnx").max_error  # doctest: +SKIP
        1.2e-07
    """
    if options["lock"] is not None:
        return _verified_with_lock(model, path, options["lock"])
    if options["on"] or path is None:
        from tmconvert.inspection.run_on import verified_on

        if path is None:
            return verified_on(options["on"], model, inputs)
    overrides = io_overrides_of(
        options["input_shapes"], options["input_nodes"], options["outputs"], options["rename"]
    )
    request = ConversionRequest.of_file(
        model, Path(path), inputs, overrides, options["calibration"], options["signature"] or ""
    )
    verification = verify_file(request, catalogue())
    if options["require_verified"] and not verification.tells:
        from tmconvert.conversion.report_text import verified
        from tmconvert.errors import VerificationError

        raise VerificationError("TM4006", f"the file is {verified(verification)}")
    if options["on"]:
        return replace(verification, accelerators=verified_on(options["on"], path, inputs).accelerators)
    return verification


def _verified_with_lock(model: Model, path: object, lock: str | PathLike[str]) -> Verification:
    from tmconvert.errors import UsageError
    from tmconvert.lock.lock_file import read_lock
    from tmconvert.lock.verified import verify_with_lock

    if path is not None or not isinstance(model, (str, PathLike)):
        raise UsageError("TM6002", "verify with lock takes the path of a written file, and no source")
    return verify_with_lock(Path(model), *read_lock(Path(lock)))


@entry_point
@expand_options(CalibrateOptions)
def calibrate(model: Model, data: object, **options: Unpack[CalibrateOptions]) -> TracedModule:
    """Measures the ranges of a float model's tensors on data, for conversions with ``quantized``.

    Args:
        model: A path of any kind of model, a TracedModule, or a PyTorch module with ``example_inputs``.
        data: A path (.npz, or a folder of .npy, .npz or images), a dict of arrays by input with the samples
            along axis 0, or a sequence of samples.

    Returns:
        A flat model of ATen-style ops with quantization parameters; ``model`` is unchanged.

    Raises:
        LoadError: The model cannot be read.
        UnsupportedError: A PyTorch model cannot be traced.
        UsageError: TM6032 for settings, TM6033 for data that cannot be used.
        WriteError: ``output`` cannot be written.

    Example:
        >>> quantized = tmconvert.calibrate("net.tm", "images/", mean=[0.5], std=[0.5])  # doctest: +SKIP
        >>> tmconvert.to_tflite(quantized, "net.tflite", quantized=True)  # doctest: +SKIP
    """
    from tmconvert.calibration.calibrate import calibrate_model

    given: dict[str, Any] = {**options, "rules": options["rules"] or {}}
    settings = Settings.of({name: given[name] for name in Settings._fields})
    output = options["output"]
    if output is not None:
        check_names("models", CONTAINER_SUFFIXES, [Path(output)])
        keep_model(model, Path(output))
        check_writable(output)
    overrides = io_overrides_of(options["input_shapes"], None, None)
    module, within = graph_of(model, tracing_of(options), overrides)
    made = users_model(calibrate_model(module, data, catalogue(), settings, within).module)
    if output is not None:
        made.save(output)
    return made


@entry_point
def supported_ops(target: str, version: int | str | None = None) -> list[OpSupport]:
    """Returns every op of the catalogue, and how a target supports it.

    Args:
        target: "onnx", "tflite" or "caffe".
        version: Opset, runtime or dialect; None is the default of the target.

    Returns:
        A record for each op: its name, and whether the target has it natively, by decomposition, or not, and
        why.

    Raises:
        UsageError: TM6001 for an unknown target or version.

    Example:
        >>> ops = tmconvert.supported_ops("tflite")
        >>> [op.name for op in ops if op.status == "unsupported"]  # doctest: +SKIP
    """
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
    """Registers the conversion of an op, for one target or all. Also a decorator.

    docs/custom-ops.md has examples.

    Args:
        name: The name of a ``torch.library`` op (``mylib::swish``), of a call as messages and
            `tmconvert check` print it, or of an op of the catalogue (``aten::gelu``).
        function: ``function(g, ...)``, whose parameters after ``g`` are those of the op: tensors are passed
            as values, other arguments unchanged. None returns a decorator.
        target: The target that it is for. Without one the function decomposes the op into ops of the
            catalogue by ``g.call``, for every target.
        since: The version of the target from which on it is used.
        reference: Computes the result from NumPy arrays. Without it the file is compared only with the
            recorded outputs of the example.
        result: Computes the TensorType of the result (a list for several) from the arguments, given as
            TensorTypes, or names the argument whose type it has. Without it the types that the tracer
            recorded are used.

    Returns:
        ``function``, or a decorator.

    Raises:
        UsageError: TM6021 for an invalid name, target, version or function.

    Example:
        >>> @tmconvert.register_symbolic("mylib::swish", result="x")  # doctest: +SKIP
        ... def swish(g, x):
        ...     return g.call("aten::mul", x, g.call("aten::sigmoid", x))
    """

    own = name
    if isinstance(name, str) and name.startswith("torch.ops."):  # as messages and PyTorch print it
        from tmconvert.frontends.torch.names import aten_name

        own = aten_name(name, False)

    def registers(function: Callable[..., Any]) -> Callable[..., Any]:
        register(own, function, target=target, since=since, reference=reference, result=result)
        return function

    return registers if function is None else registers(function)
