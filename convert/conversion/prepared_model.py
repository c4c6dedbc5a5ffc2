"""What the public functions are given, made ready: the model, its edges, data."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tmconvert.calibration.settings import CalibrationRequest, Settings
from tmconvert.conversion.io_overrides import IoOverrides
from tmconvert.conversion.load import is_traced, load_model
from tmconvert.conversion.pipeline import convert
from tmconvert.conversion.report import Report
from tmconvert.conversion.target_options import check_data
from tmconvert.errors import UsageError
from tmconvert.errors.values import type_and_value
from tmconvert.frontends.torch.entry import trace_object
from tmconvert.frontends.torch.request import Tracing
from tmconvert.ir import TracedModule
from tmconvert.output.atomic import check_writable
from tmconvert.passes.manager import PassOptions
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TargetOptions

# a PyTorch module, too, where example inputs can be given
Model = TracedModule | str | PathLike[str] | Any
# type, scale and zero point of inputs, by name
InputGrids = Mapping[str, tuple[str, float, int]]


class PreparedModel(NamedTuple):
    """A model to convert: within ``boundary``, verified on ``inputs`` if there are some."""

    module: TracedModule
    inputs: Sequence[np.ndarray] | None
    boundary: IoOverrides
    measuring: CalibrationRequest

    @classmethod
    def of(
        cls,
        model: Model,
        outputs: Sequence[Path],
        goal: TargetOptions,
        tracing: Tracing,
        boundary: IoOverrides,
        measuring: CalibrationRequest,
    ) -> PreparedModel:
        """Loads or traces ``model``, which nothing that is written may replace.

        Raises UsageError TM6002 for data that ``goal`` has no use for.
        """
        check_data(goal, measuring)
        keep_model(model, *outputs, *goal.beside)
        check_names(goal.target, outputs)
        if measuring.data is not None:
            check_writable(*outputs, *goal.beside)
        module, inputs, dynamic = model_of(model, tracing)
        return cls(module, inputs, boundary._replace(dynamic_shapes=dynamic or {}), measuring)

    def convert(
        self, paths: Sequence[Path], options: TargetOptions, verify: bool, pass_options: PassOptions | None
    ) -> Report:
        """Calibrates the model, if there is data for that, and converts it."""
        module, overrides, calibration = self.module, self.boundary, None
        if self.measuring.data is not None:
            from tmconvert.calibration.calibrate import calibrate

            settings, progress = self.measuring.settings, self.measuring.progress
            within, overrides = overrides._replace(rename={}), IoOverrides(rename=overrides.rename)
            calibration = {"settings": settings.to_json(), "boundary": within.to_json()}
            module = calibrate(module, self.measuring.data, catalogue(), settings, progress, within)
        elif options.integers is not None or options.parameters is not None:
            from tmconvert.qparams.survey import check_converted

            check_converted(module)
        return convert(
            module,
            paths,
            options,
            catalogue(),
            verify=verify,
            inputs=self.inputs,
            pass_options=pass_options,
            overrides=overrides,
            calibration_request=self.measuring,
            calibration=calibration,
        )


# suffixes by which people and programs know a file as that of a target, or a model
_SUFFIXES = {
    "tm": (".tm",),
    "onnx": (".onnx",),
    "tflite": (".tflite", ".lite"),
    "caffe": (".prototxt", ".caffemodel"),
}
_OTHERS = frozenset({".pt", ".pth", ".pt2", ".safetensors"}.union(*_SUFFIXES.values()))


def check_names(target: str, outputs: Sequence[Path]) -> None:
    """Raises UsageError TM6002 for a name that says another kind of file, and for ``-``."""
    for path in outputs:
        if str(path) == "-":
            what, help = "no file, and nothing is written to stdout", "give the name of a file"
        elif path.suffix.lower() in _OTHERS.difference(_SUFFIXES[target]):
            what = f"no {target} file by name"
            help = f"give it the suffix {_SUFFIXES[target][0]}, or write another kind of file"
        else:
            continue
        raise UsageError("TM6002", f"{path} is {what}", notes=[("help", help)])


def weights_beside(prototxt: Path) -> Path:
    """The caffemodel of a prototxt. Raises UsageError TM6002 for a path without a name, such as ``.``."""
    if not prototxt.name:
        raise UsageError("TM6002", f"{prototxt} is a folder: give the name of a prototxt in it")
    return prototxt.with_suffix(".caffemodel")


def calibrated_as(module: TracedModule, told: Any, data: Any) -> TracedModule:
    """A model calibrated on ``data`` as a file has ``told`` of itself; one with scales as it is.

    Raises UsageError TM6030 where there is no data to do so, TM6002 for data that nothing is told to do with.
    """
    from tmconvert.qparams.survey import quantization_of

    if not isinstance(told, Mapping) or quantization_of(module, catalogue()) is not None:
        if data is not None:
            raise UsageError("TM6002", "the file was not calibrated when it was made: leave calibration out")
        return module
    if data is None:
        raise UsageError(
            "TM6030",
            "the scales of the file were measured on data, and the model has none",
            notes=[("help", "give that data with --calibration, or the model of `tmconvert calibrate`")],
        )
    from tmconvert.calibration.calibrate import calibrate

    within = IoOverrides.from_json(told.get("boundary") or {})
    return calibrate(module, data, catalogue(), Settings.of(told.get("settings") or {}), boundary=within)


def io_overrides_of(
    input_shapes: Mapping[str, Sequence[int]] | None,
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
    rename: Mapping[str, str] | None = None,
    input_grids: InputGrids | None = None,
    accept_range: bool = False,
) -> IoOverrides:
    """The overrides of inputs and outputs, None for those that are not given."""
    return IoOverrides(input_shapes or {}, {}, inputs, outputs, rename or {}, input_grids or {}, accept_range)


def loaded(model: Model) -> TracedModule:
    """The model, or that in the file of this name. Raises LoadError, UsageError TM6008."""
    if isinstance(model, TracedModule):
        return model
    if isinstance(model, (str, PathLike)):
        return load_model(model, Tracing())
    raise UsageError(
        "TM6008",
        f"model must be a TracedModule, a path or a PyTorch module, got {type_and_value(model)}",
        notes=[("help", "give a PyTorch module together with example_inputs, which it is traced with")],
    )


def graph_of(model: Model, tracing: Tracing, boundary: IoOverrides) -> tuple[TracedModule, IoOverrides]:
    """The model, and its edges with the sizes to leave open; inputs are for models that are traced.

    Raises UsageError TM6016 for inputs of others.
    """
    module, inputs, dynamic = model_of(model, tracing)
    if inputs is not None:
        raise UsageError("TM6016", "the model has a graph already: example inputs are for tracing")
    return module, boundary._replace(dynamic_shapes=dynamic or {})


def model_of(
    model: Model, tracing: Tracing
) -> tuple[TracedModule, Sequence[np.ndarray] | None, Mapping[str, Mapping[int, str]] | None]:
    """The model, inputs to verify with, and the sizes to leave open; what is PyTorch's is traced."""
    if isinstance(model, (str, PathLike)) and not is_traced(model):
        return load_model(model, tracing), None, None
    if callable(model) and not isinstance(model, TracedModule):
        return trace_object(model, tracing), None, None
    if tracing.kwargs or tracing.freeze_control_flow:
        raise UsageError("TM6016", "example_kwargs and freeze_control_flow are for models that are traced")
    return loaded(model), tracing.args or None, tracing.dynamic_shapes


def keep_model(model: Model, *outputs: Path) -> None:
    """Refuses to write over the model that is read, and two outputs to one file."""
    if len({os.path.realpath(path) for path in outputs}) < len(outputs):
        names = ", ".join(map(str, outputs))
        raise UsageError("TM6007", f"two outputs would be the same file: {names}")
    if not isinstance(model, (str, PathLike)):
        return
    for path in outputs:
        with contextlib.suppress(OSError, ValueError):  # one of them does not exist, or cannot
            if path.samefile(model):
                raise UsageError(
                    "TM6013",
                    f"{path} is the model itself, which the output would replace",
                    notes=[("help", "give the output a name of its own")],
                )
