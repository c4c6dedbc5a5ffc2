"""One conversion: passes, lowering, writing beside the target, verification, and only then the file."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.calibration.settings import CalibrationRequest
from tmconvert.conversion.encodings import encoding_of
from tmconvert.conversion.io_overrides import NO_OVERRIDES, BoundModel, IoOverrides, bind_model
from tmconvert.conversion.pass_pipelines import pipeline
from tmconvert.conversion.size_ranges import SizeChecks, Trial, checked_sizes
from tmconvert.conversion.writers import check_written, limits_broken, paths_of, write
from tmconvert.errors import InternalError, UsageError, VerificationError
from tmconvert.ir import InternalGraph, TensorNode, TracedModule
from tmconvert.ir.expr import CallFunction
from tmconvert.ir.symbolic.data_dependent import depends_on_data
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.ir.symbolic.journal import SizeJournal, SizesSettled, note_of, summarized
from tmconvert.ir.traced_module import Example
from tmconvert.ir.unsupported import Unsupported, unsupported_error
from tmconvert.lowering.lower import lower
from tmconvert.lowering.target_graph import TargetGraph, Value
from tmconvert.output.atomic import StagedOutput, commit_together, staged_outputs, temporary_folder, written
from tmconvert.output.metadata import metadata
from tmconvert.passes.decompose import Undecomposed
from tmconvert.passes.manager import PassManager, PassOptions
from tmconvert.passes.normalize import Normalized
from tmconvert.symbolics.op import Op
from tmconvert.targets.options import TITLES, TargetOptions, newest_opset
from tmconvert.targets.tflite.passes.drop_reshapes import drop_reshapes
from tmconvert.targets.tflite.passes.fuse_activations import fuse_activations
from tmconvert.targets.tflite.passes.fuse_scales import fuse_scales
from tmconvert.targets.tflite.passes.narrow_integers import narrow_integers
from tmconvert.targets.tflite.passes.own_biases import own_biases
from tmconvert.targets.tflite.passes.split_slices import split_slices

if TYPE_CHECKING:
    from tmconvert.targets.caffe.violation import Violation
    from tmconvert.verification.references import References
    from tmconvert.verification.report import Verification

MAX_ATTEMPTS = 100


@dataclass
class Report:
    """What a conversion made.

    ``max_error`` is the largest max|a - b| / max|b| over the outputs, or None when no runtime for
    the target is installed or verification was switched off (``verified`` is then False).
    ``seconds`` are (pass, time) pairs; ``stopped`` says that ``stop_after`` ended before anything
    was written. ``inputs`` and ``outputs`` describe those of the file: name, dtype, and shape, in which a
    dynamic size is a text. ``ranges`` says in which ranges of dynamic sizes the file is right: ``n <= 512``.
    """

    target: str
    version: int | str
    paths: tuple[Path, ...]
    operators: int = 0
    parameters: int = 0
    verification: Verification | None = None
    notes: list[str] = field(default_factory=list)
    seconds: list[tuple[str, float]] = field(default_factory=list, repr=False)
    stopped: bool = False
    inputs: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)

    @property
    def verified(self) -> bool:
        return self.verification is not None and self.verification.tells

    @property
    def max_error(self) -> float | None:
        return None if self.verification is None else self.verification.max_error

    def write_layers(self, path: str | PathLike[str]) -> None:
        """Writes what each layer of a file in integers costs, as .html, .json or .txt.

        Raises UsageError TM6002 for another suffix, and where there are no layers in integers that were
        verified.
        """
        from tmconvert.verification.quantization_report.report_file import check_suffix, report_text

        path = Path(path)
        check_suffix(path)
        if self.verification is None or not self.verification.noise:
            raise UsageError("TM6002", f"there is nothing for {path}: no file in integers was verified")
        text = report_text(path.suffix.lower(), self.paths[0].name, self.verification)
        with staged_outputs(path) as outputs:
            outputs[0].file.write(text.encode())
            outputs[0].finish()
            commit_together(outputs)

    def to_json(self) -> dict[str, object]:
        return {
            "target": self.target,
            "version": self.version,
            "paths": [str(path) for path in self.paths],
            "inputs": self.inputs,
            "outputs": self.outputs,
            "operators": self.operators,
            "parameters": self.parameters,
            "verified": self.verified,
            "max_error": self.max_error,
            "verification": None if self.verification is None else self.verification.to_json(),
            "ranges": self.ranges,
            "notes": self.notes,
            "stopped": self.stopped,
        }


@dataclass
class LoweredModel:
    """The lowered graph, beside normalized graphs of its source as the truth to compare with.

    The first is for the sizes of the example, others for other sizes where some are dynamic. ``lowered``
    is what the passes made of it. ``truths`` are what the source framework computes at these sizes, where it
    could be asked; ``ranges`` are the guards of the sizes in words.
    """

    references: list[InternalGraph]
    truths: list[Example | None]
    ranges: list[str]
    lowered: InternalGraph
    graph: TargetGraph
    nhwc_inputs: tuple[bool, ...]
    nhwc_outputs: tuple[bool, ...]
    manager: PassManager
    notes: list[str]

    @property
    def layouts(self) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
        return self.nhwc_inputs, self.nhwc_outputs


def survey(
    module: TracedModule,
    goal: TargetOptions,
    catalogue: Mapping[str, Op],
    boundary: IoOverrides = NO_OVERRIDES,
) -> list[Unsupported]:
    """Every expression that would stop this conversion; empty when it would succeed."""
    opened = bind_model(module, boundary, catalogue)
    with SizeJournal():
        return _surveyed(opened.normalized(catalogue, opened.example()), goal, catalogue)


def beyond_limits(
    module: TracedModule,
    goal: TargetOptions,
    catalogue: Mapping[str, Op],
    boundary: IoOverrides = NO_OVERRIDES,
) -> list[Violation]:
    """Where the net of a module that can be converted is beyond the limits of the Caffe dialect ``goal``."""
    graph = lowered(module, goal, catalogue, boundary=boundary).graph
    with temporary_folder() as folder, Path(os.devnull).open("wb") as weights:
        prototxt = folder / "net.prototxt"
        with written(prototxt) as text:
            write(graph, [text, weights])
        return limits_broken(graph, prototxt)


def _surveyed(normalized: Normalized, goal: TargetOptions, catalogue: Mapping[str, Op]) -> list[Unsupported]:
    if normalized.unsupported or _is_out_of_reach(normalized, goal):
        return [*normalized.unsupported, *_without_symbolic(normalized, goal, catalogue)]
    return _lacking(normalized.graph, goal, catalogue)


def sufficient_opset(
    module: TracedModule, catalogue: Mapping[str, Op], above: int, boundary: IoOverrides = NO_OVERRIDES
) -> int | None:
    """The lowest opset > ``above`` from which on each one expresses the whole module; None without one."""
    opened = bind_model(module, boundary, catalogue)
    with SizeJournal():
        normalized = opened.normalized(catalogue, opened.example())
        return None if normalized.unsupported else _sufficient(normalized.graph, catalogue, above)


def _is_out_of_reach(normalized: Normalized, goal: TargetOptions) -> bool:
    """Whether there are sizes that only the data tells, which passes for Caffe do not expect."""
    return goal.target == "caffe" and depends_on_data(normalized.graph)


def _sufficient(graph: InternalGraph, catalogue: Mapping[str, Op], above: int) -> int | None:
    found = None
    for opset in range(newest_opset(), above, -1):
        if _lacking(graph.copy(), TargetOptions("onnx", opset), catalogue):
            break
        found = opset
    return found


def _lacking(graph: InternalGraph, goal: TargetOptions, catalogue: Mapping[str, Op]) -> list[Unsupported]:
    """What stops a normalized graph, which the passes change."""
    try:
        PassManager(pipeline(goal, catalogue), catalogue).run(graph)
    except Undecomposed as found:
        return [found.unsupported]
    return lower(graph, catalogue, goal.target, goal.version).unsupported


def _without_symbolic(
    normalized: Normalized, goal: TargetOptions, catalogue: Mapping[str, Op]
) -> list[Unsupported]:
    """The catalogued ops that the target lacks, found by look-up alone: some types are not known."""
    found = []
    for expr in normalized.graph.exprs():
        op = catalogue.get(expr.function) if isinstance(expr, CallFunction) else None
        if op is None or op.lookup(goal.target, goal.version) or op.is_decomposed(goal.target, goal.version):
            continue
        reason = op.reasons.get(goal.target, f"no {goal.target} symbolic for {op.name}")
        found.append(Unsupported(expr, reason))
    return found


def lowered(
    module: TracedModule,
    goal: TargetOptions,
    catalogue: Mapping[str, Op],
    options: PassOptions | None = None,
    boundary: IoOverrides = NO_OVERRIDES,
) -> LoweredModel:
    """Runs passes and lowering. Raises UnsupportedError with everything that stands in the way.

    Where symbolic sizes turn out to be bound or needed as numbers, all starts again with these.
    """
    opened = bind_model(module, boundary, catalogue)._replace(bakes_weights=goal.bakes_weights)
    if opened.symbols and goal.target == "caffe":
        raise UsageError("TM6014", f"dynamic sizes are not available for {TITLES[goal.target]} yet")
    options = options or PassOptions()
    for _ in range(MAX_ATTEMPTS):
        with SizeJournal(opened.symbols) as journal:
            try:
                converted = _attempt(opened, goal, catalogue, options, journal, module, boundary)
                converted.notes += [*opened.remarks.values(), *note_of(converted.ranges)]
                return converted
            except SizesSettled:
                pass
            except (TypeError, ValueError, IndexError) as error:
                if not opened.symbols:
                    raise
                raise InternalError(
                    "TM9005",
                    f"{journal.place or 'the conversion'} does not take symbolic sizes ({error})",
                    source=journal.source,
                    notes=[("help", "convert without --dynamic, and report this as a defect")],
                ) from error
        opened = opened.settled(journal)
    raise InternalError("TM9004", f"the sizes {', '.join(opened.symbols)} do not settle")


def _attempt(
    opened: BoundModel,
    goal: TargetOptions,
    catalogue: Mapping[str, Op],
    options: PassOptions,
    journal: SizeJournal,
    module: TracedModule,
    boundary: IoOverrides,
) -> LoweredModel:
    """A conversion. Raises SizesSettled where it came to nothing because of what ``journal`` has noted."""
    normalized = opened.normalized(catalogue)
    if normalized.unsupported or _is_out_of_reach(normalized, goal):
        found = [*normalized.unsupported, *_without_symbolic(normalized, goal, catalogue)]
        raise unsupported_error(found, goal.target, context=opened.context)
    first = Trial(opened.example(), normalized.graph.copy())
    checks: SizeChecks | None = None
    if opened.symbols:
        has_source = not boundary.is_cut and not goal.bakes_weights
        checks = SizeChecks(opened, module, normalized, catalogue, has_source=has_source)
        at_example = checks.example(journal)
        if at_example is None:
            journal.check()
            raise InternalError("TM9004", f"the sizes {', '.join(opened.symbols)} do not settle")
        first = at_example
    source = first.graph.copy()
    journal.in_passes = True
    manager, graph, notes = _through_passes(normalized, source, goal, catalogue, options, opened)
    journal.check()
    nhwc_inputs, nhwc_outputs = _nhwc(normalized.graph.inputs), _nhwc(normalized.graph.outputs)
    trials, guards = [Trial(first.sizes, source, first.truth)], journal.guards
    if checks is not None:
        trials, guards = checked_sizes(checks, trials, opened, journal, accept_range=boundary.accept_range)
    return LoweredModel(
        [trial.graph for trial in trials],
        [trial.truth for trial in trials],
        summarized(guards),
        normalized.graph,
        graph,
        nhwc_inputs,
        nhwc_outputs,
        manager,
        notes,
    )


def _through_passes(
    normalized: Normalized,
    source: InternalGraph,
    goal: TargetOptions,
    catalogue: Mapping[str, Op],
    options: PassOptions,
    opened: BoundModel,
) -> tuple[PassManager, TargetGraph, list[str]]:
    """What passes and lowering make of the normalized graph; ``source`` is it before, at plain sizes."""
    manager = PassManager(pipeline(goal, catalogue), catalogue, options)
    graph, unsupported = TargetGraph(goal.target, goal.version, opened.flat.name), []
    try:
        manager.run(normalized.graph)
        if not manager.stopped:
            lowering = lower(normalized.graph, catalogue, goal.target, goal.version)
            graph, unsupported = lowering.graph, lowering.unsupported
    except Undecomposed as found:
        unsupported = [found.unsupported]
    if unsupported:
        opset = _sufficient(source, catalogue, goal.version) if goal.target == "onnx" else None
        raise unsupported_error(unsupported, goal.target, opset, opened.context)
    notes = normalized.notes()
    if goal.target == "tflite" and not manager.stopped:
        for each in graph.nested():
            fuse_activations(each, keeps_grids=goal.keeps_grids)
            if not goal.keeps_grids:  # a rescaling between the two would be lost
                fuse_scales(each)
            drop_reshapes(each)
            split_slices(each)
            own_biases(each)
        told = "" if goal.keep_int64 else narrow_integers(graph).note()
        notes += [told] * bool(told)
    return manager, graph, notes


def _nhwc(nodes: Sequence[Any]) -> tuple[bool, ...]:
    return tuple(isinstance(node, TensorNode) and node.layout == "nhwc" for node in nodes)


def _described(names: Sequence[str], values: Sequence[Value]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "dtype": value.dtype.name,
            "shape": [str(extent) if isinstance(extent, Dim) else extent for extent in value.shape],
        }
        for name, value in zip(names, values, strict=True)
    ]


def _describe(report: Report, graph: TargetGraph, paths: Sequence[Path]) -> None:
    """Fills in what ``report`` says of the graph that is written to ``paths``."""
    report.inputs = _described(graph.input_names, graph.inputs)
    report.outputs = _described(graph.output_names, graph.outputs)
    report.operators = len(list(graph.all_operators()))
    report.parameters = _parameters(graph)
    report.paths = tuple(paths)


def convert(
    module: TracedModule,
    paths: Sequence[Path],
    goal: TargetOptions,
    catalogue: Mapping[str, Op],
    *,
    version_name: int | str,
    verify: bool = True,
    inputs: Sequence[np.ndarray] | None = None,
    options: PassOptions | None = None,
    external_data: bool = False,
    value_info: bool = True,
    weights: str | None = None,
    boundary: IoOverrides = NO_OVERRIDES,
    measuring: CalibrationRequest | None = None,
    calibration: Mapping[str, object] | None = None,
) -> Report:
    """Writes ``module`` for ``goal`` to ``paths`` (two for Caffe), verified, whole or not at all.

    ONNX weights go into a file of their own with ``external_data``, or when one file cannot hold them;
    without ``value_info`` the types of intermediate results are left out. The layers of files in integers
    are measured on the data of ``measuring``. ``calibration`` is what the file says of that.
    """
    converted = lowered(module, goal, catalogue, (options or PassOptions()).beside(paths[0]), boundary)
    report = Report(goal.target, version_name, tuple(paths), notes=[*module.notes, *converted.notes])
    report.seconds, report.ranges = converted.manager.seconds, converted.ranges
    if converted.manager.stopped:
        report.stopped = True
        return report
    asked: dict[str, object] = {
        goal.target: version_name,
        **goal.asked(),
        "external_data": external_data,
        "no_value_info": not value_info,
        "weights": weights,
        "calibration": calibration,
        **boundary.to_json(),
    }
    converted.graph.metadata = metadata(module, goal, *converted.layouts, asked, converted.ranges)
    source = converted.references[0]
    form = encoding_of(
        converted.graph, converted.lowered, source, goal, weights, report.notes, catalogue, module
    )
    graph = form.graph
    _describe(report, graph, paths_of(graph, paths, external_data=external_data))
    with (
        staged_outputs(*report.paths, named=goal.target == "onnx" and len(report.paths) > 1) as outputs,
        _staged_parameters(goal, graph, report.notes) as parameter_files,
    ):
        files = [output.file for output in outputs]
        write(graph, files, outputs[-1].path.name, value_info=value_info)
        for output in outputs:
            output.finish()
        staged = [output.path for output in outputs]
        report.notes += check_written(graph, staged)
        if verify:
            truth = _truth(converted, catalogue, module, goal, boundary, inputs, report.notes, measuring)
            report.verification = form.verify(staged, truth)
        commit_together([*outputs, *parameter_files])
    return report


def _staged_parameters(
    goal: TargetOptions, graph: TargetGraph, notes: list[str]
) -> AbstractContextManager[tuple[StagedOutput, ...]]:
    """The file of quantization parameters that goes with ``graph``, if one is asked for."""
    if goal.parameters is None:
        return nullcontext(())
    from tmconvert.qparams.file import staged_parameters

    return staged_parameters(goal.parameters, graph, notes)


def _parameters(graph: TargetGraph) -> int:
    """Elements of the weights in the file: of its constants but for single numbers, indices and shapes."""
    readers = (each for each in graph.all_operators() if each.type == "DequantizeLinear")
    quantized = {id(each.inputs[0]) for each in readers}  # ONNX has the scales of weights in operators
    return sum(
        math.prod(value.shape)
        for value in graph.constants()
        if value.shape
        and (
            value.quantization is not None
            or id(value) in quantized
            or not np.issubdtype(value.dtype, np.integer)
        )
    )


def verify_form(
    module: TracedModule,
    path: Path,
    goal: TargetOptions,
    weights: str | None,
    inputs: Sequence[np.ndarray] | None,
    catalogue: Mapping[str, Op],
    boundary: IoOverrides = NO_OVERRIDES,
) -> Verification:
    """The comparison with ``module`` of a file whose weights have fewer bits or are rounded, or in integers.

    Raises VerificationError as the form's ``verify``; TM4005 where there is nothing to compare with.
    """
    from tmconvert.verification.files import model_files

    converted, notes = lowered(module, goal, catalogue, None, boundary), list[str]()
    source = converted.references[0]
    form = encoding_of(converted.graph, converted.lowered, source, goal, weights, notes, catalogue, module)
    truth = _truth(converted, catalogue, module, goal, boundary, inputs, notes)
    verified = form.verify(model_files(path, goal.target), truth)
    if verified is None:
        raise VerificationError("TM4005", f"there is nothing to compare with: {notes[-1]}")
    return verified


def _truth(
    converted: LoweredModel,
    catalogue: Mapping[str, Op],
    module: TracedModule,
    goal: TargetOptions,
    boundary: IoOverrides,
    inputs: Sequence[np.ndarray] | None,
    notes: list[str],
    measuring: CalibrationRequest | None = None,
) -> References:
    """What the file is compared with; the source framework's own example is for the first sizes."""
    from tmconvert.verification.reference import Reference
    from tmconvert.verification.references import References

    example = None if boundary.is_cut or goal.bakes_weights else module.example
    if module.is_edited():
        notes.append("the model was edited after it was traced: the file is compared with the edited graph")
    references = [
        Reference(graph, catalogue, *converted.layouts, truth if number else example)
        for number, (graph, truth) in enumerate(zip(converted.references, converted.truths, strict=True))
    ]
    if goal.integers is not None:
        from tmconvert.verification.source import beside_source

        notes += beside_source(module)
    if measuring is None or goal.integers is None or not measuring.has_data:
        return References(references, inputs, notes)
    from tmconvert.calibration.data import report_samples

    return References(references, inputs, notes, *report_samples(measuring, converted.references[0]))
