"""The stages of a conversion: passes, lowering, encoding, writing, verification, and only then the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tmconvert.calibration.settings import CalibrationRequest
from tmconvert.conversion.io_overrides import NO_OVERRIDES, IoOverrides
from tmconvert.conversion.lowering import LoweredModel, lowered
from tmconvert.conversion.report import Report, describe
from tmconvert.errors import VerificationError
from tmconvert.ir import TracedModule
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.output.atomic import StagedOutput, commit_together, staged_outputs
from tmconvert.output.metadata import metadata
from tmconvert.passes.manager import PassOptions
from tmconvert.symbolics.op import Op
from tmconvert.targets.options import TargetOptions
from tmconvert.targets.registry import target_named
from tmconvert.targets.target import Encoding, LoweredGraphs

if TYPE_CHECKING:
    from tmconvert.verification.references import References
    from tmconvert.verification.report import Verification


def convert(
    module: TracedModule,
    paths: Sequence[Path],
    options: TargetOptions,
    catalogue: Mapping[str, Op],
    *,
    verify: bool = True,
    inputs: Sequence[np.ndarray] | None = None,
    pass_options: PassOptions | None = None,
    overrides: IoOverrides = NO_OVERRIDES,
    calibration_request: CalibrationRequest | None = None,
    calibration: Mapping[str, object] | None = None,
) -> Report:
    """Writes ``module`` for a target to ``paths`` (two for Caffe), verified, whole or not at all.

    The layers of files in integers are measured on the data of ``calibration_request``. ``calibration`` is
    what the file's metadata says of that.
    """
    target = target_named(options.target)
    version = target.version_name(options.version)
    pass_options = (pass_options or PassOptions()).beside(paths[0])
    model = lowered(module, options, catalogue, pass_options, overrides)
    report = Report(target.name, version, tuple(paths), notes=[*module.notes, *model.notes])
    report.seconds, report.passes = model.manager.seconds, model.manager.records
    report.ranges = model.ranges
    if model.manager.stopped:
        report.stopped = True
        return report
    chosen = {target.name: version, **options.recorded(), "calibration": calibration, **overrides.to_json()}
    layouts = model.layouts if target.default_io_layout == "nhwc" else None
    model.graph.metadata = metadata(module, layouts, chosen, model.ranges)
    encoding = _encoded(model, module, options, catalogue, report.notes)
    graph = encoding.graph
    describe(report, graph, target.files(graph, paths, options))
    is_named = len(report.paths) > len(paths)  # the first file refers to the second one by its name
    with (
        staged_outputs(*report.paths, named=is_named) as outputs,
        _staged_parameters(options, graph, report.notes) as parameter_files,
    ):
        files, names = [output.file for output in outputs], [output.path.name for output in outputs]
        target.write(graph, files, names, value_info=options.value_info)
        for output in outputs:
            output.finish()
        staged = [output.path for output in outputs]
        report.notes += target.check(graph, staged)
        if verify:
            references = _references(
                model, catalogue, module, options, overrides, inputs, report.notes, calibration_request
            )
            report.verification = encoding.verify(staged, references)
        commit_together([*outputs, *parameter_files])
    return report


def _encoded(
    model: LoweredModel,
    module: TracedModule,
    options: TargetOptions,
    catalogue: Mapping[str, Op],
    notes: list[str],
) -> Encoding:
    graphs = LoweredGraphs(model.graph, model.lowered, model.references[0], module, catalogue)
    encoding = target_named(options.target).encode(graphs, options)
    notes += graphs.notes
    return encoding


def _staged_parameters(
    options: TargetOptions, graph: TargetGraph, notes: list[str]
) -> AbstractContextManager[tuple[StagedOutput, ...]]:
    """The file of quantization parameters that goes with ``graph``, if one is requested."""
    if options.parameters is None:
        return nullcontext(())
    from tmconvert.qparams.file import staged_parameters

    return staged_parameters(options.parameters, graph, notes)


def verify_encoding(
    module: TracedModule,
    path: Path,
    options: TargetOptions,
    inputs: Sequence[np.ndarray] | None,
    catalogue: Mapping[str, Op],
    overrides: IoOverrides = NO_OVERRIDES,
) -> Verification:
    """The comparison with ``module`` of a file whose weights have fewer bits or are rounded, or in integers.

    Raises VerificationError as ``Encoding.verify``; TM4005 where there is nothing to compare with.
    """
    model, notes = lowered(module, options, catalogue, None, overrides), list[str]()
    encoding = _encoded(model, module, options, catalogue, notes)
    references = _references(model, catalogue, module, options, overrides, inputs, notes)
    verified = encoding.verify(target_named(options.target).model_files(path), references)
    if verified is None:
        raise VerificationError("TM4005", f"there is nothing to compare with: {notes[-1]}")
    return verified


def _references(
    model: LoweredModel,
    catalogue: Mapping[str, Op],
    module: TracedModule,
    options: TargetOptions,
    overrides: IoOverrides,
    inputs: Sequence[np.ndarray] | None,
    notes: list[str],
    calibration_request: CalibrationRequest | None = None,
) -> References:
    """What the file is compared with; the source framework's own example is for the first sizes."""
    from tmconvert.verification.reference import Reference
    from tmconvert.verification.references import References

    example = None if overrides.is_cut or options.bakes_weights else module.example
    if module.is_edited():
        notes.append("the model was edited after it was traced: the file is compared with the edited graph")
    references = [
        Reference(graph, catalogue, *model.layouts, source_outputs if number else example)
        for number, (graph, source_outputs) in enumerate(zip(model.references, model.truths, strict=True))
    ]
    if options.integers is not None:
        from tmconvert.verification.source import beside_source

        notes += beside_source(module)
    request = calibration_request
    if request is None or options.integers is None or not request.has_data:
        return References(references, inputs, notes)
    from tmconvert.calibration.data import report_samples

    return References(references, inputs, notes, *report_samples(request, model.references[0]))
