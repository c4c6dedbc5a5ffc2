"""The public function that makes step files for streams; ``tmconvert.api`` has the others."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from tmconvert.api_convert import to_target
from tmconvert.conversion.options.arguments import entry_point
from tmconvert.conversion.options.declared import expand_options
from tmconvert.conversion.options.tracing import SourceOptions
from tmconvert.conversion.output_paths import COMMANDS, command_of_suffix, keep_model
from tmconvert.conversion.prepared_model import model_of
from tmconvert.conversion.request import Model, tracing_of
from tmconvert.errors import TmconvertError, UnsupportedError, UsageError
from tmconvert.ir import TracedModule
from tmconvert.output.atomic import StagedOutput, check_writable
from tmconvert.surgery.module import users_model
from tmconvert.symbolics.registry import catalogue

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tmconvert.streaming.step_model import StepModel
    from tmconvert.streaming.stream_report import StreamReport

_TARGETS = ("onnx", "tflite", "save")


@entry_point
@expand_options(SourceOptions)
def stream(
    model: Model,
    output: str | PathLike[str],
    *,
    time: Mapping[str, int] | Sequence[str] = (),
    chunk: int | Literal["open"] | None = None,
    context: int | None = None,
    state_as: Literal["variables"] | None = None,
    **options: Unpack[SourceOptions],
) -> StreamReport:
    """Makes a step file of an offline model over time: it takes a chunk and states, and returns the same.

    Convolutions, pools, recurrent layers, sums and attention with a bounded context keep what they need of
    the past in states, which are further inputs ``state_0``, ... and outputs ``state_0_next``, ...; all are
    zeros at first. What a layer needs of the future becomes a delay of its output. The file is written if the
    joined outputs of its steps, in its runtime, are those of the offline model to 1e-5.

    Args:
        model: A TracedModule, a model object, or the path of a model; with its example inputs, which are
            streams.
        output: The file to write: NAME.onnx, NAME.tflite or NAME.tm.
        time: The axes of time by input, such as ``{"x": 2}`` or ``["x:2"]``. By default the only dynamic
            axes, or the last axes of inputs of rank 2 and 3.
        chunk: The number of frames in a chunk; by default the fewest that the strides of the model allow.
            "open" leaves it open: each step takes any multiple of these.
        context: Attention sees at most this number of frames before each frame, and later ones only where its
            mask bounds them; the steps are compared with the offline model limited in this way.
        state_as: "variables" keeps the states in a TFLite file; a new interpreter starts a new stream.

    Returns:
        ``chunk``, ``outputs`` with delays in frames, ``states`` with shapes, ``needs_end`` and ``max_error``.

    Raises:
        LoadError: The model cannot be read.
        UnsupportedError: TM2025 for a call that no step can compute, such as a norm over the whole stream.
        UsageError: TM6002 for a chunk that strides do not divide, TM6014 for an unknown axis.
        VerificationError: TM4009 where the joined outputs are not those of the model.

    Example:
        >>> tmconvert.stream("net.tm", "step.onnx", time={"x": 2}, chunk=4).delay  # doctest: +SKIP
        3
    """
    from tmconvert.streaming.proof import prove
    from tmconvert.streaming.stream_report import StreamReport

    path = Path(output)
    target = command_of_suffix(path)
    if target not in _TARGETS:
        suffixes = ", ".join(suffix for suffix, command in COMMANDS.items() if command in _TARGETS)
        raise UsageError("TM6002", f"{path} has none of the suffixes of step files: {suffixes}")
    has_variables = state_as is not None
    if has_variables and target != "tflite":
        raise UsageError("TM6002", f"only TFLite files have variables, {path} has none")
    keep_model(model, path)
    check_writable(path)
    source, step = _step_model(model, options, _axes(time), chunk, context)
    if target == "save":
        error, lengths = prove(source, step, None, catalogue())
        users_model(step.module).save(path)
        return StreamReport.of((path,), step, error, lengths)
    with TemporaryDirectory(prefix="tmconvert-") as folder:
        own: dict[str, Any] = {"state_as": state_as} if has_variables else {}
        written = to_target(step.module, target, Path(folder) / path.name, **own)
        error, lengths = prove(source, step, written.paths[0], catalogue(), has_variables=has_variables)
        paths = tuple(path.with_name(each.name) for each in written.paths)
        for made, final in zip(written.paths, paths, strict=True):
            staged = StagedOutput(final)
            staged.file.write(made.read_bytes())
            staged.commit()
    return StreamReport.of(paths, step, error, lengths, has_variables=has_variables)


def _step_model(
    model: Model,
    options: Mapping[str, Any],
    axes: dict[str, int],
    chunk: int | Literal["open"] | None,
    context: int | None,
) -> tuple[TracedModule, StepModel]:
    """Returns the model and its steps; where that is refused, Python's loops over time are kept as loops."""
    from tmconvert.streaming.step_model import step_model

    source = model_of(model, tracing_of(options))[0]
    try:
        return source, step_model(source, axes, chunk, catalogue(), context)
    except UnsupportedError as error:
        if isinstance(model, TracedModule) or options["roll_loops"] or error.code != "TM2025":
            raise
        with contextlib.suppress(TmconvertError):
            rolled = model_of(model, tracing_of({**options, "roll_loops": True}))[0]
            return rolled, step_model(rolled, axes, chunk, catalogue(), context)
        raise


def _axes(time: Mapping[str, int] | Sequence[str]) -> dict[str, int]:
    """Returns axes by input. Raises UsageError TM6014."""
    if isinstance(time, Mapping):
        return dict(time)
    axes = {}
    for each in [time] if isinstance(time, str) else time:
        name, _, axis = each.rpartition(":")
        if not name or not axis.lstrip("-").isdigit():
            raise UsageError("TM6014", f"{each!r} is not INPUT:AXIS, such as x:2")
        axes[name] = int(axis)
    return axes
