"""The stages of a conversion: passes, lowering, encoding, writing, verification, renaming of the file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tmconvert.conversion.io_description import fed_tensors
from tmconvert.conversion.io_names import source_outputs
from tmconvert.conversion.io_overrides import saturates
from tmconvert.conversion.lowering import LoweredModel, in_words, lowered, with_version
from tmconvert.conversion.prepared_model import PreparedModel
from tmconvert.conversion.report import Report, describe
from tmconvert.conversion.request import ConversionRequest
from tmconvert.errors import VerificationError
from tmconvert.ir import TracedModule
from tmconvert.ir.traced_module import IN_FLOAT, Recording
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.output.atomic import StagedOutput, commit_together, staged_outputs
from tmconvert.output.metadata import metadata
from tmconvert.progress import begin
from tmconvert.symbolics.op import Ops
from tmconvert.targets.options import TargetOptions
from tmconvert.targets.registry import target_named
from tmconvert.targets.target import Encoding, LoweredGraphs

if TYPE_CHECKING:
    from tmconvert.targets.target import SharedWeights
    from tmconvert.verification.reference import Reference
    from tmconvert.verification.references import References
    from tmconvert.verification.verify import Verification


class EncodedModel(NamedTuple):
    """A model of a request, ready to be written; ``started`` is the processor's time at its beginning.

    Where the conversion was stopped before, ``encoding`` is None. ``recording`` is kept, since it is only
    valid for unchanged weights, which are summed up for that.
    """

    request: ConversionRequest
    source: PreparedModel
    recording: Recording
    lowered: LoweredModel
    encoding: Encoding | None
    report: Report
    started: float

    @property
    def graph(self) -> TargetGraph:
        assert self.encoding is not None
        return self.encoding.graph

    def verify(self, catalogue: Ops, staged: Sequence[Path]) -> None:
        """Compares the staged files with the source. Raises VerificationError."""
        assert self.encoding is not None
        if self.request.verify:
            _verify(self, self.encoding, catalogue, staged)


def convert(
    request: ConversionRequest, catalogue: Ops, check: Callable[[Path], None] = lambda _: None
) -> Report:
    """Writes and verifies the files of a request. On failure no file is left.

    ``check`` gets the first file before it is verified, and may raise. Raises LoadError, UnsupportedError,
    VerificationError, WriteError, UsageError.
    """
    made = encode_model(request, catalogue)
    report = made.report
    if report.stopped:
        return report
    is_named = len(report.paths) > len(request.paths)  # the first file refers to the second one by its name
    with (
        staged_outputs(*report.paths, named=is_named) as outputs,
        _staged_parameters(request.options, made.graph, report.notes) as parameter_files,
    ):
        files, names = [output.file for output in outputs], [output.path.name for output in outputs]
        begin("write")
        request.target.write(made.graph, files, names, value_info=request.options.value_info)
        staged = finish_files(outputs)
        report.notes += request.target.check(made.graph, staged)
        check(staged[0])
        made.verify(catalogue, staged)
        commit_together([*outputs, *parameter_files])
    return report


def finish_files(outputs: Sequence[StagedOutput]) -> list[Path]:
    """Flushes staged files, and returns their paths."""
    for output in outputs:
        output.finish()
    return [output.path for output in outputs]


def encode_model(
    request: ConversionRequest, catalogue: Ops, weights: SharedWeights | None = None
) -> EncodedModel:
    """Loads, optimizes, lowers and encodes the model of a request; the report describes the graph.

    ``weights`` has what other signatures of the file store in fewer bits, and gets what this one stores.
    Raises LoadError, UnsupportedError, UsageError.
    """
    target, paths, started = request.target, request.paths, time.process_time()
    source = PreparedModel.of(request, catalogue)
    module, overrides, recording = source.module, source.overrides, source.module.recording()
    begin("convert")
    options = with_version(module, source.options, catalogue, overrides)
    version = target.version_name(options.version)
    model = lowered(module, options, catalogue, request.pass_options.next_to(paths[0]), overrides)
    if request.signature:
        _name_signature(model, request.signature)
    own = [each for each in module.notes if options.integers is None or not each.endswith(IN_FLOAT)]
    report = Report(target.name, version, paths, notes=[*own, *model.notes])
    report.seconds, report.passes = model.manager.seconds, model.manager.records
    report.ranges = in_words(model.ranges)
    if model.manager.stopped:
        report.stopped = True
        return EncodedModel(request, source, recording, model, None, report, started)
    chosen = {
        target.name: version,
        **options.recorded(),
        "calibration": source.calibration,
        **request.preprocessing.to_json(),
        **overrides.to_json(),
    }
    layouts = model.layouts if target.default_io_layout == "nhwc" else None
    report.settings = {name: value for name, value in chosen.items() if value and name != target.name}
    model.graph.metadata = metadata(module, layouts, chosen, model.ranges)
    encoding = _encoded(model, module, options, catalogue, report.notes, weights)
    report.notes += source.notes
    graph = encoding.graph
    if request.annotations.is_given or module.metadata:
        from tmconvert.conversion.annotations import annotate

        report.notes += annotate(graph, request, module.metadata)
    if options.profile:
        from tmconvert.conversion.profile_notes import check_profile

        report.notes += check_profile(graph, options.profile)
    elif target.widespread_profile and options.integers is None:
        from tmconvert.conversion.profile_notes import known_defects

        report.notes += known_defects(graph, target.widespread_profile)
    example = None if recording.example is None or overrides.is_cut else recording.example.inputs
    fed = fed_tensors(graph, model.references[0], model.layouts, example)
    describe(report, graph, target.files(graph, paths, options), fed)
    return EncodedModel(request, source, recording, model, encoding, report, started)


def _name_signature(model: LoweredModel, signature: str) -> None:
    """Names the graph, and its outputs as in the source: in signatures they may have the names of inputs."""
    names = source_outputs(model.references[0])
    model.graph.signature = signature
    if len(set(names)) == len(names) == len(model.graph.output_names):
        model.graph.output_names = names


def _verify(made: EncodedModel, encoding: Encoding, catalogue: Ops, staged: Sequence[Path]) -> None:
    """Verifies the staged files, and sets the fields of the report. Raises VerificationError."""
    request, source, recording, model, _, report, started = made
    begin("verify")
    seconds, samples = time.process_time() - started, _report_samples(request, model)
    references = _references(request, source, model, catalogue, recording, report.notes, *samples)
    if request.verification is None:
        references.budget.limit(seconds)
    report.verification = encoding.verify(staged, references)
    if request.calibration.data is not None and request.min_sqnr is None and request.score_bound is None:
        from tmconvert.conversion.calibration_notes import coarse_notes

        report.notes += coarse_notes(report.verification)
    if request.verify_on and report.verification is not None:
        report.notes += _notes_of_accelerators(request, staged, encoding.graph, references)
    if request.lock is not None and report.verification is not None:
        from tmconvert.verification.recorded_case import recorded_case

        is_integer = request.options.integers is not None
        report.case = recorded_case(staged, encoding.graph, references, is_integer=is_integer)
    if request.require_verified:
        check_verified(report)


def _notes_of_accelerators(
    request: ConversionRequest, staged: Sequence[Path], graph: TargetGraph, references: References
) -> list[str]:
    """Returns what accelerators did with the staged files. Raises VerificationError TM4003, TM4007."""
    from tmconvert.targets.registry import runtime_for
    from tmconvert.verification.accelerators.check import check_on
    from tmconvert.verification.accelerators.registry import accelerators_named
    from tmconvert.verification.recorded_case import stored_inputs

    runtime = runtime_for(graph.target, staged[0])
    assert runtime is not None  # the files were verified in it
    inputs = stored_inputs(staged, graph, references)
    accelerators = accelerators_named(request.verify_on or (), graph.target)
    return check_on(accelerators, runtime, staged, inputs, graph.output_names)


def _encoded(
    model: LoweredModel,
    module: TracedModule,
    options: TargetOptions,
    catalogue: Ops,
    notes: list[str],
    weights: SharedWeights | None = None,
) -> Encoding:
    shared = {} if weights is None else weights
    graphs = LoweredGraphs(model.graph, model.lowered, model.references[0], module, catalogue, weights=shared)
    encoding = target_named(options.target).encode(graphs, options)
    notes += graphs.notes
    return encoding


def _staged_parameters(
    options: TargetOptions, graph: TargetGraph, notes: list[str]
) -> AbstractContextManager[tuple[StagedOutput, ...]]:
    """Stages the file of quantization parameters for ``graph``, if one is requested."""
    if options.parameters is None:
        return nullcontext(())
    from tmconvert.qparams.file import staged_parameters

    return staged_parameters(options.parameters, graph, notes)


def check_verified(report: Report) -> None:
    """Raises VerificationError TM4006 for a report of a file that is not verified."""
    if not report.verified:
        from tmconvert.conversion.report_text import verified

        found = report.verification
        why = next(iter(each for each in report.notes if each.startswith("not verified")), "not verified")
        why = why if found is None else verified(found)
        raise VerificationError("TM4006", f"no file was written, since it is {why}")


def verify_file(request: ConversionRequest, catalogue: Ops) -> Verification:
    """Compares a written file with its source; the request is that of ``ConversionRequest.of_file``.

    A file whose weights have fewer bits or are rounded, or in integers, is compared with the source converted
    again. Raises VerificationError as ``Encoding.verify``; TM4005 for a file without a source to compare
    with.
    """
    request.target.start_runtime()
    source, path = PreparedModel.of_file(request, catalogue), request.paths[0]
    begin("verify")
    options = source.options
    if options.is_plain_float:
        from tmconvert.verification.files import verify_file as verify_plain

        keeps_ranges = not request.stored.get("unclamped")
        return verify_plain(
            source.module,
            path,
            source.inputs,
            catalogue,
            source.overrides,
            keeps_ranges=keeps_ranges,
            signature=request.signature,
        )
    model, notes = lowered(source.module, options, catalogue, None, source.overrides), list[str]()
    if request.signature:
        _name_signature(model, request.signature)
    encoding = _encoded(model, source.module, options, catalogue, notes)
    references = _references(request, source, model, catalogue, source.module.recording(), notes)
    verified = encoding.verify(request.target.model_files(path), references)
    if verified is None:
        raise VerificationError("TM4005", f"there is no reference to compare with: {notes[-1]}")
    return verified


def _references(
    request: ConversionRequest,
    source: PreparedModel,
    model: LoweredModel,
    catalogue: Ops,
    recording: Recording,
    notes: list[str],
    *samples: Any,
) -> References:
    """Returns the references for the file; the source framework's example is for the first sizes."""
    from tmconvert.verification.reference import Reference
    from tmconvert.verification.references import References

    module, options, by = source.module, request.options, source.module.producer
    is_other = source.overrides.is_cut or options.bakes_weights
    example, original = (None, None) if is_other else recording[:2]
    if recording.is_edited:
        notes.append("the model was edited after it was traced: the file is compared with the edited graph")
    references = [
        Reference(graph, catalogue, *model.layouts, source_outputs if number else example, original, by)
        for number, (graph, source_outputs) in enumerate(zip(model.references, model.truths, strict=True))
    ]
    for reference in references:
        reference.keeps_ranges = options.keeps_ranges and saturates(module)
    whole = _confirmed(source, references, model.graph.output_names, recording, catalogue)
    if options.integers is not None:
        from tmconvert.verification.source import compare_with_source

        notes += compare_with_source(module)
        if source.uncalibrated is None and references[0].is_quantized() and saturates(module):
            from tmconvert.passes.keep_saturation import keep_saturation

            whole = Reference(references[0].graph.copy(), catalogue)
            keep_saturation(whole.graph, catalogue)
    inputs = source.inputs
    if request.verify_with is not None:
        from tmconvert.verification.input_files import given_inputs

        inputs = given_inputs(request.verify_with, model.graph.input_names, references[0].input_names)
    return replace(
        References(references, inputs, notes, *samples),
        uncalibrated=whole,
        compares_source=options.integers is None,
    )


def _confirmed(
    source: PreparedModel,
    references: Sequence[Reference],
    names: Sequence[str],
    recording: Recording,
    catalogue: Ops,
) -> Reference | None:
    """Compares the graph of a calibrated or quantized model with its source, and tells ``references`` so.

    Returns the graph before the calibration, if its sizes are the same. Raises VerificationError TM4001.
    """
    from tmconvert.verification.reference import CONFIRMED, OWN_READING, Reference

    first, graph = references[0], source.uncalibrated or references[0].graph.copy()
    recorded = source.recording if source.uncalibrated is not None else recording
    outputs, file = (None, None) if recorded is None or source.overrides.is_cut else recorded[:2]
    checked = Reference(graph, catalogue, example=outputs, original=file, producer=source.module.producer)
    if checked.input_types != first.input_types:
        return None
    by = doubt = ""
    if checked.is_too_large() or checked.is_random:
        pass
    elif source.whole is not None:
        by, doubt = _confirmed_whole(source.whole, catalogue)
    elif source.uncalibrated is not None:
        from tmconvert.verification.source import check_float_graph

        by, doubt = check_float_graph(checked, names)
    elif file is not None and first.is_quantized() and not first.keeps_ranges:
        from tmconvert.verification.integer_source import check_quantized_graph

        doubt = check_quantized_graph(checked, names)
        by = file.name
    for each in references:
        each.doubt = doubt
        each.reading = CONFIRMED % by if by and not doubt else OWN_READING
    return None if source.uncalibrated is None else checked


def _confirmed_whole(module: TracedModule, catalogue: Ops) -> tuple[str, str]:
    """Compares the graph of the model as it was read, before cuts and preprocessing, with its source.

    Returns what ``check_float_graph`` does.
    """
    from tmconvert.conversion.io_overrides import NO_OVERRIDES, bind_model
    from tmconvert.verification.reference import Reference
    from tmconvert.verification.source import check_float_graph

    example, original, is_edited = module.recording()
    if is_edited or (original is None and (example is None or example.outputs is None)):
        return "", ""
    bound = bind_model(module, NO_OVERRIDES, catalogue)
    normalized = bound.normalized(catalogue, bound.example())
    if normalized.unsupported:  # in a part that is not converted
        return "", ""
    reference = Reference(
        normalized.graph, catalogue, example=example, original=original, producer=module.producer
    )
    if reference.is_quantized():
        return "", ""
    return check_float_graph(reference, list(normalized.graph.output_names))


def _report_samples(request: ConversionRequest, model: LoweredModel) -> tuple[Any, ...]:
    """Returns the samples for layer statistics of an integer file, if data is given."""
    if request.options.integers is None or not request.calibration.has_data:
        return ()
    from tmconvert.calibration.data import report_samples

    return report_samples(request.calibration, model.references[0])
