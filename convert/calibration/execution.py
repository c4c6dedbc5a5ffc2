"""Runs a float graph on samples and returns its tensors: in ONNX Runtime, or else on NumPy."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tmconvert.errors import UsageError
from tmconvert.ir import Expr, InternalGraph
from tmconvert.ir.interpreter import Interpreter
from tmconvert.ir.tree import leaves
from tmconvert.output.atomic import temporary_folder, written
from tmconvert.passes.manager import PassManager
from tmconvert.symbolics.op import Op
from tmconvert.targets.onnx.reader import with_outputs
from tmconvert.targets.onnx.runtime import onnx_runtime
from tmconvert.targets.onnx.target import newest_opset
from tmconvert.targets.options import TargetOptions
from tmconvert.targets.registry import lower, passes_for, write
from tmconvert.verification.runtime import THREADS

# gets the name of a tensor and what it is for one sample
Look = Callable[[str, np.ndarray], None]


def run(
    graph: InternalGraph,
    catalogue: Mapping[str, Op],
    samples: Iterable[Sequence[np.ndarray]],
    names: Sequence[str],
    look: Look,
) -> None:
    """Calls ``look`` for each sample with the inputs in the order of the graph, and the tensors ``names``."""
    inputs = [node.name for node in graph.inputs]
    inner = [name for name in names if name not in inputs]
    execute = (_session(graph, catalogue, inner) or _interpreter(graph, catalogue, inner)) if inner else dict
    for number, sample in enumerate(samples, 1):
        given = dict(zip(inputs, sample, strict=True))
        try:
            seen = {**given, **execute(given)}
        except Exception as error:  # each runtime has its own for what it cannot compute
            reason = str(error).strip().partition("Status Message: ")[2] or str(error) or type(error).__name__
            raise UsageError("TM6033", f"the model cannot be run on sample {number}: {reason}") from error
        for name in names:
            look(name, seen[name])
        del seen  # the next run makes as much again


Execute = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


def _session(graph: InternalGraph, catalogue: Mapping[str, Op], names: Sequence[str]) -> Execute | None:
    """Returns a session, or None where ONNX Runtime is not installed or ONNX cannot express the graph."""
    if importlib.util.find_spec("onnxruntime") is None:
        return None
    onnxruntime = onnx_runtime()

    target_options, copy = TargetOptions("onnx", min(newest_opset(), 21)), graph.copy()
    PassManager(passes_for(target_options, catalogue), catalogue).run(copy)
    lowering = lower(copy, catalogue, target_options.target, target_options.version)
    if lowering.unsupported:
        return None
    with temporary_folder() as folder:
        path = folder / "model.onnx"
        with written(path) as file:
            write(lowering.graph, [file])
        content, found = with_outputs(path, names)
    if not set(names) <= set(found):
        return None
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, THREADS
    options.enable_cpu_mem_arena = False  # it keeps what runs have had
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    known = {each.name for each in session.get_inputs()}

    def execute(given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        fed = {name: array for name, array in given.items() if name in known}
        return dict(zip(found, session.run(found, fed), strict=True))

    return execute


def _interpreter(graph: InternalGraph, catalogue: Mapping[str, Op], names: Sequence[str]) -> Execute:
    wanted = set(names)

    def execute(given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        seen: dict[str, np.ndarray] = {}

        def evaluate(expr: Expr, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
            result = catalogue[expr.function].evaluate(args, kwargs)  # type: ignore[attr-defined]
            for node, array in zip(expr.outputs, leaves(result), strict=True):
                if node.name in wanted:
                    seen[node.name] = array
            return result

        Interpreter(graph, evaluate=evaluate).run(*(given[node.name] for node in graph.inputs))
        return seen

    return execute
