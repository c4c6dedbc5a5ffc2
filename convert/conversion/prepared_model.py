"""The source of a request, loaded or traced, and calibrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tmconvert.calibration.settings import Settings
from tmconvert.conversion.io_overrides import IoOverrides
from tmconvert.conversion.lowering import with_layout
from tmconvert.conversion.preprocessing import Preprocessing
from tmconvert.conversion.request import ConversionRequest, Model
from tmconvert.errors import UsageError
from tmconvert.errors.values import type_and_value
from tmconvert.frontends.torch.entry import trace_object
from tmconvert.frontends.torch.request import Tracing
from tmconvert.ir import InternalGraph, TracedModule
from tmconvert.ir.traced_module import Recording
from tmconvert.progress import reporting
from tmconvert.symbolics.op import Ops
from tmconvert.targets.options import TargetOptions

if TYPE_CHECKING:
    from tmconvert.calibration.calibrate import CalibratedModel


class PreparedModel(NamedTuple):
    """The source of a request, loaded or traced, and calibrated where that was requested.

    ``inputs`` are those to verify with, if any. ``overrides`` and ``options`` are those that still have to be
    applied; ``calibration`` describes the calibration in the metadata of the file, ``notes`` for people.
    ``uncalibrated`` is the graph of the model before its calibration, to which an integer file is compared,
    and ``recording`` what its source computes, unless the model is cut. ``whole`` is the model as it was
    read, where preprocessing or a cut makes another one of it.
    """

    module: TracedModule
    inputs: Sequence[np.ndarray] | None
    overrides: IoOverrides
    options: TargetOptions
    calibration: Mapping[str, object] | None = None
    notes: Sequence[str] = ()
    uncalibrated: InternalGraph | None = None
    recording: Recording | None = None
    whole: TracedModule | None = None

    @classmethod
    def of(cls, request: ConversionRequest, catalogue: Ops) -> PreparedModel:
        """Loads, traces and calibrates the source of a conversion. Raises LoadError, UsageError."""
        prepared = cls.before_calibration(request, catalogue)
        module, inputs, overrides, options, *_ = prepared
        requested = request.calibration
        if requested.data is None:
            if options.integers is not None or options.parameters is not None:
                from tmconvert.qparams.survey import check_converted

                check_converted(module)
            return prepared
        from tmconvert.calibration.calibrate import calibrate_model
        from tmconvert.conversion.calibration_notes import calibration_notes

        with reporting(requested.progress):
            made = calibrate_model(module, requested.data, catalogue, requested.settings, overrides)
        notes = calibration_notes(requested, module, made.module)
        about = {"settings": requested.settings.to_json(), "boundary": made.applied.to_json()}
        recording = None if overrides.is_cut else module.recording()
        left, graph, whole = made.left, made.float_graph, prepared.whole
        return cls(made.module, inputs, left, options, about, notes, graph, recording, whole)

    @classmethod
    def before_calibration(cls, request: ConversionRequest, catalogue: Ops) -> PreparedModel:
        """Loads or traces the source, with its preprocessing. Raises LoadError, UsageError."""
        module, inputs, dynamic, fix = model_of(request.model, request.tracing)
        overrides = request.overrides._replace(dynamic_shapes=dynamic or {}, fix=fix)
        if request.names is not None:
            from tmconvert.conversion.optimum_names import with_names

            overrides = with_names(module, overrides, request.names)
        made, overrides, options = _with_images(request, module, overrides, catalogue)
        whole = module if made is not module or overrides.is_cut else None
        return cls(made, inputs, overrides, options, whole=whole)

    @classmethod
    def of_file(cls, request: ConversionRequest, catalogue: Ops) -> PreparedModel:
        """Loads the source of a file to verify, and calibrates it with the settings that the file records."""
        stored, data = request.stored.get("calibration"), request.calibration.data
        module = loaded(request.model, request.tracing.signature, request.tracing.state)
        module, overrides, options = _with_images(request, module, request.overrides, catalogue)
        made = _calibrated_as(module, stored, data, catalogue)
        if made is None:
            return cls(module, request.inputs, overrides, options)
        recording = None if made.applied.is_cut else module.recording()
        graph = made.float_graph
        return cls(made.module, request.inputs, request.overrides, options, None, (), graph, recording)


def _with_images(
    request: ConversionRequest, module: TracedModule, overrides: IoOverrides, catalogue: Ops
) -> tuple[TracedModule, IoOverrides, TargetOptions]:
    """Returns the model with the preprocessing of a request, and the overrides and options that fit it."""
    options, wanted = with_layout(module, request.options), request.preprocessing
    if wanted == Preprocessing():
        return module, overrides, options
    from tmconvert.conversion.image_options import for_images
    from tmconvert.conversion.preprocessed_model import preprocessed

    in_integers = options.integers is not None and request.target.quantizes_inputs
    made, images = preprocessed(module, wanted, catalogue, takes_floats=in_integers)
    options, overrides = for_images(images, request.target, options, overrides)
    return made, overrides, options


def _calibrated_as(module: TracedModule, stored: Any, data: object, catalogue: Ops) -> CalibratedModel | None:
    """Calibrates a model on ``data`` with the settings stored in a file; None for a model with scales.

    Raises UsageError TM6030 where there is no data to do so, TM6002 for data without an option that uses it.
    """
    from tmconvert.qparams.survey import quantization_of

    if not isinstance(stored, Mapping) or quantization_of(module, catalogue) is not None:
        if data is not None:
            raise UsageError("TM6002", "the file was written without calibration: omit calibration")
        return None
    if data is None:
        raise UsageError(
            "TM6030",
            "the scales of the file were measured on data, but the model has none",
            notes=[("help", "pass that data with --calibration, or the model of `tmconvert calibrate`")],
        )
    from tmconvert.calibration.calibrate import calibrate_model

    settings = Settings.of(stored.get("settings") or {})
    overrides = IoOverrides.from_json(stored.get("boundary") or {})
    return calibrate_model(module, data, catalogue, settings, overrides)


def traced(request: ConversionRequest) -> ConversionRequest:
    """Returns a request for the loaded or traced model, which several conversions can share."""
    module, inputs, dynamic, fix = model_of(request.model, request.tracing)
    tracing = Tracing(tuple(inputs or ()), dynamic_shapes=dynamic, fix=fix)
    return replace(request, model=module, tracing=tracing)


def loaded(model: Model, signature: str = "", state: tuple[str, ...] = ()) -> TracedModule:
    """Returns the model, or loads it from the file. Raises LoadError, UsageError TM6008, TM6016."""
    if signature and not isinstance(model, (str, PathLike)):
        raise UsageError("TM6016", "signature applies to TFLite files")
    if isinstance(model, TracedModule):
        return model
    if isinstance(model, (str, PathLike)):
        from tmconvert.conversion.load import load_model

        return load_model(model, Tracing(signature=signature, state=state))
    raise UsageError(
        "TM6008",
        f"model must be a TracedModule, a path or a PyTorch module, got {type_and_value(model)}",
        notes=[("help", "pass a PyTorch module together with example_inputs, with which it is traced")],
    )


def graph_of(model: Model, tracing: Tracing, overrides: IoOverrides) -> tuple[TracedModule, IoOverrides]:
    """Returns the model, and its overrides with dynamic dimensions.

    Raises UsageError TM6016 for example inputs of models that are not traced.
    """
    module, inputs, dynamic, fix = model_of(model, tracing)
    if inputs is not None:
        raise UsageError("TM6016", "the model has a graph already: example inputs are for tracing")
    return module, overrides._replace(dynamic_shapes=dynamic or {}, fix=fix)


class Loaded(NamedTuple):
    """A model, inputs for verification, and the dynamic dimensions and numbers of some that are left."""

    module: TracedModule
    inputs: Sequence[np.ndarray] | None = None
    dynamic: Mapping[str, Mapping[int, str]] | None = None
    fix: Mapping[str, int] = MappingProxyType({})


def model_of(model: Model, tracing: Tracing) -> Loaded:
    """Returns the model with what is left to do; PyTorch models are traced."""
    if isinstance(model, (str, PathLike)):
        from tmconvert.conversion.load import is_traced, load_model

        if not is_traced(model):
            return Loaded(load_model(model, tracing))
    if callable(model) and not isinstance(model, TracedModule):
        return Loaded(trace_object(model, tracing))
    is_file = isinstance(model, (str, PathLike))
    traced_only = (
        "kwargs",
        "freeze_control_flow",
        "roll_loops",
        "training",
        "noise",
        *(() if is_file else ("state",)),
    )
    given = [name for name in (*traced_only, "sizes_of_call") if getattr(tracing, name)]
    if given:
        public = {"kwargs": "example_kwargs", "sizes_of_call": "dynamic_shapes by argument"}
        name = public.get(given[0], given[0])
        name = "noise='input'" if name == "noise" else name
        raise UsageError("TM6016", f"{name} applies to models that are traced")
    module = loaded(model, tracing.signature, tracing.state)
    return Loaded(module, tracing.args or None, tracing.dynamic_shapes, tracing.fix)
