"""Converts a model to temporary files with fewer bits, and measures how good they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tmconvert.calibration.data import measured_samples, spread
from tmconvert.calibration.execution import execution, run_sample
from tmconvert.calibration.preparation import Calibration, prepare
from tmconvert.calibration.settings import Settings
from tmconvert.conversion.pipeline import convert
from tmconvert.conversion.prepared_model import PreparedModel
from tmconvert.conversion.request import ConversionRequest
from tmconvert.errors import InternalError, TmconvertError, UsageError
from tmconvert.inspection.run_file import FileRunner
from tmconvert.ir import InternalGraph, TensorNode
from tmconvert.ir.symbolic.dims import example_count
from tmconvert.ir.types import Arrays
from tmconvert.mixed_precision.layers import Layer, layers_of
from tmconvert.output.atomic import temporary_folder
from tmconvert.passes.manager import PassOptions
from tmconvert.symbolics.op import Ops
from tmconvert.verification.quality import OutputQuality

MOST_SAMPLES, MOST_BYTES = 64, 1 << 28


class Trials:
    """Converts a model with further rules, and measures the files. Subclasses have the measure.

    ``layers`` are those that rules can name, ``about`` describes the data. ``refusal`` is why the target
    cannot express all layers in int16x8, if it was tried and cannot.
    """

    layers: list[Layer]
    about: str

    def __init__(self, request: ConversionRequest, catalogue: Ops) -> None:
        self.catalogue, self.refusal = catalogue, ""
        options = request.options._replace(parameters=None, io_layout="source", io_layouts=())
        passes = PassOptions(requested=request.pass_options.requested)
        self.request = replace(request, options=options, pass_options=passes, verify=False)

    def value_of(self, path: Path) -> float:
        """Returns how good a file is; more is better."""
        raise NotImplementedError

    def measured(self, rules: Mapping[str, str]) -> float | None:
        """Returns how good the file with further rules is; None if the target cannot do them."""
        try:
            return self.value_with(with_rules(self.request, rules))
        except InternalError:
            raise
        except TmconvertError as error:
            if not rules:
                raise
            if dict(rules) == {"*": "int16x8"}:
                self.refusal = error.message
            return None

    def value_with(self, request: ConversionRequest) -> float:
        """Returns how good the file of a request is, which is not kept."""
        with temporary_folder() as folder:
            paths = tuple(folder / path.name for path in request.paths)
            convert(replace(request, paths=paths), self.catalogue)
            return self.value_of(paths[0])


def calibrated_layers(request: ConversionRequest, catalogue: Ops) -> tuple[Calibration, list[Layer]]:
    """Returns the float model of a request as it is calibrated, and its layers."""
    source = PreparedModel.before_calibration(request, catalogue)
    data, settings = request.calibration.data, request.calibration.settings
    work = prepare(source.module, data, catalogue, settings, source.overrides)
    return work, layers_of(work, settings)


class SignalTrials(Trials):
    """Compares the outputs of integer files with those of the float model: the lowest ratio in dB.

    Raises the errors of the conversion, UsageError TM6032 for a model without outputs of floats.
    """

    def __init__(self, request: ConversionRequest, catalogue: Ops) -> None:
        super().__init__(request, catalogue)
        work, self.layers = calibrated_layers(request, catalogue)
        samples, name = measured_samples(request.calibration, work.graph)
        most = max(1, min(MOST_SAMPLES, MOST_BYTES // max(1, _bytes(work.graph))))
        self.samples, self.about = spread(samples, name, most)
        self.expected = _outputs(work.graph, catalogue, self.samples)
        if not any(array.dtype.kind == "f" for array in self.expected[0]):
            raise UsageError("TM6032", "min_sqnr requires an output of floats, whose noise is measured")

    def value_of(self, path: Path) -> float:
        runner = FileRunner(path, warns=False)
        quality = [OutputQuality(each.name) for each in runner.outputs]
        for sample, expected in zip(self.samples, self.expected, strict=True):
            made = runner.run(sample).values()
            for each, actual, wanted in zip(quality, made, expected, strict=True):
                if wanted.dtype.kind == "f":
                    each.add(actual.reshape(wanted.shape), wanted)
        return min((each.decibels for each in quality if each.signal), default=float("inf"))


def with_rules(request: ConversionRequest, rules: Mapping[str, str]) -> ConversionRequest:
    """Returns the request with further rules; those of the user count more."""
    options, calibration = request.options, request.calibration
    if options.weights is not None:
        return replace(request, options=options._replace(rules=(*rules.items(), *options.rules)))
    settings = calibration.settings
    settings = Settings.of({**settings._asdict(), "rules": {**rules, **settings.rules}})
    return replace(request, calibration=calibration._replace(settings=settings))


def _bytes(graph: InternalGraph) -> int:
    """Returns the size of the inputs and outputs of a run."""
    nodes = [node for node in (*graph.inputs, *graph.outputs) if isinstance(node, TensorNode)]
    return sum(example_count(node.type.shape) * node.type.dtype.itemsize for node in nodes)


def _outputs(graph: InternalGraph, catalogue: Ops, samples: Sequence[Arrays]) -> list[list[np.ndarray]]:
    inputs, names = ([node.name for node in nodes] for nodes in (graph.inputs, graph.outputs))
    computed = [name for name in dict.fromkeys(names) if name not in inputs]
    found = []
    with execution(graph, catalogue, computed) as execute:
        for number, sample in enumerate(samples, 1):
            seen = run_sample(execute, dict(zip(inputs, sample, strict=True)), number)
            found.append([np.asarray(seen[name]) for name in names])
    return found
