"""One conversion: passes, lowering, writing beside the target, verification, and only then the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .ir import InternalGraph, TensorNode, TracedModule
from .ir.expr import CallFunction
from .lower.fuse_activations import fuse_activations
from .lower.lower import lower
from .lower.target_graph import TargetGraph
from .lower.unsupported import Unsupported, unsupported_error
from .passes.manager import PassManager, PassOptions
from .passes.normalize import Normalized, normalize
from .passes.pipelines import pipeline
from .serialize.atomic import commit_together, staged_outputs
from .serialize.metadata import metadata
from .serialize.writers import check_written, paths_of, write
from .symbolics.op import Op
from .targets import Goal, newest_opset
from .verification.reference import Reference
from .verification.report import Verification, verify_written


@dataclass
class Report:
    """What a conversion made.

    ``max_error`` is the largest max|a - b| / max|b| over the outputs, or None when no runtime for
    the target is installed or verification was switched off (``verified`` is then False).
    ``seconds`` are (pass, time) pairs; ``stopped`` says that ``stop_after`` ended before anything
    was written.
    """

    target: str
    version: int | str
    paths: tuple[Path, ...]
    operators: int = 0
    parameters: int = 0
    verification: Verification | None = None
    notes: list[str] = field(default_factory=list)
    seconds: list[tuple[str, float]] = field(default_factory=list)
    stopped: bool = False

    @property
    def verified(self) -> bool:
        return self.verification is not None

    @property
    def max_error(self) -> float | None:
        return None if self.verification is None else self.verification.max_error

    def to_json(self) -> dict[str, object]:
        return {
            "target": self.target,
            "version": self.version,
            "paths": [str(path) for path in self.paths],
            "operators": self.operators,
            "parameters": self.parameters,
            "verified": self.verified,
            "max_error": self.max_error,
            "verification": None if self.verification is None else self.verification.to_json(),
            "notes": self.notes,
            "stopped": self.stopped,
        }


@dataclass
class Converted:
    """The lowered graph, beside the normalized graph of its source as the truth to compare with."""

    reference: InternalGraph
    graph: TargetGraph
    nhwc_inputs: tuple[bool, ...]
    nhwc_outputs: tuple[bool, ...]
    manager: PassManager
    notes: list[str]


def survey(module: TracedModule, goal: Goal, catalogue: Mapping[str, Op]) -> list[Unsupported]:
    """Every expression that would stop this conversion; empty when it would succeed."""
    normalized = normalize(module.flatten(), catalogue)
    if normalized.unsupported:
        return [*normalized.unsupported, *_without_symbolic(normalized, goal, catalogue)]
    return _lacking(normalized.graph, goal, catalogue)


def sufficient_opset(module: TracedModule, catalogue: Mapping[str, Op], above: int) -> int | None:
    """The lowest opset > ``above`` from which on each one expresses the whole module; None without one."""
    normalized = normalize(module.flatten(), catalogue)
    return None if normalized.unsupported else _sufficient(normalized.graph, catalogue, above)


def _sufficient(graph: InternalGraph, catalogue: Mapping[str, Op], above: int) -> int | None:
    found = None
    for opset in range(newest_opset(), above, -1):
        if _lacking(graph.copy(), Goal("onnx", opset), catalogue):
            break
        found = opset
    return found


def _lacking(graph: InternalGraph, goal: Goal, catalogue: Mapping[str, Op]) -> list[Unsupported]:
    """What stops a normalized graph, which the passes change."""
    PassManager(pipeline(goal, catalogue), catalogue).run(graph)
    return lower(graph, catalogue, goal.target, goal.version).unsupported


def _without_symbolic(normalized: Normalized, goal: Goal, catalogue: Mapping[str, Op]) -> list[Unsupported]:
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
    module: TracedModule, goal: Goal, catalogue: Mapping[str, Op], options: PassOptions | None = None
) -> Converted:
    """Runs passes and lowering. Raises UnsupportedError with everything that stands in the way."""
    normalized = normalize(module.flatten(), catalogue)
    if normalized.unsupported:
        found = [*normalized.unsupported, *_without_symbolic(normalized, goal, catalogue)]
        raise unsupported_error(found, goal.target)
    reference = normalized.graph.copy()
    manager = PassManager(pipeline(goal, catalogue), catalogue, options or PassOptions())
    manager.run(normalized.graph)
    graph = TargetGraph(goal.target, goal.version, module.name)
    if not manager.stopped:
        lowering = lower(normalized.graph, catalogue, goal.target, goal.version)
        if lowering.unsupported:
            opset = _sufficient(reference, catalogue, goal.version) if goal.target == "onnx" else None
            raise unsupported_error(lowering.unsupported, goal.target, opset)
        graph = lowering.graph
        if goal.target == "tflite":
            fuse_activations(graph)
    return Converted(
        reference,
        graph,
        _nhwc(normalized.graph.inputs),
        _nhwc(normalized.graph.outputs),
        manager,
        normalized.notes(),
    )


def _nhwc(nodes: Sequence[Any]) -> tuple[bool, ...]:
    return tuple(isinstance(node, TensorNode) and node.layout == "nhwc" for node in nodes)


def convert(
    module: TracedModule,
    paths: Sequence[Path],
    goal: Goal,
    catalogue: Mapping[str, Op],
    *,
    version_name: int | str,
    verify: bool = True,
    inputs: Sequence[np.ndarray] | None = None,
    options: PassOptions | None = None,
    external_data: bool = False,
) -> Report:
    """Writes ``module`` for ``goal`` to ``paths`` (two for Caffe), verified, whole or not at all.

    ONNX weights go into a file of their own with ``external_data``, or when one file cannot hold them.
    """
    converted = lowered(module, goal, catalogue, options)
    report = Report(
        goal.target,
        version_name,
        tuple(paths),
        notes=converted.notes,
        seconds=converted.manager.seconds,
    )
    if converted.manager.stopped:
        report.stopped = True
        return report
    graph = converted.graph
    asked = {goal.target: version_name, "io_layout": goal.io_layout, "external_data": external_data}
    graph.metadata = metadata(module, goal, converted.nhwc_inputs, converted.nhwc_outputs, asked)
    report.operators = len(graph.operators)
    report.parameters = module.parameter_count()
    report.paths = tuple(paths_of(graph, paths, external_data=external_data))
    with staged_outputs(*report.paths, named=goal.target == "onnx" and len(report.paths) > 1) as outputs:
        write(graph, [output.file for output in outputs], outputs[-1].path.name)
        for output in outputs:
            output.finish()
        staged = [output.path for output in outputs]
        check_written(graph, staged)
        if verify:
            reference = Reference(
                converted.reference, catalogue, converted.nhwc_inputs, converted.nhwc_outputs
            )
            report.verification = verify_written(goal.target, staged, graph, reference, inputs, report.notes)
        commit_together(outputs)
    return report
