"""Runs a float graph on samples and returns its tensors: in ONNX Runtime if installed, else in NumPy."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tmconvert.errors import TmconvertError, UsageError
from tmconvert.formats.onnx.tap import with_outputs
from tmconvert.ir import Expr, InternalGraph
from tmconvert.ir.interpreter import Interpreter
from tmconvert.ir.tree import leaves
from tmconvert.output.atomic import temporary_folder, written
from tmconvert.passes.manager import PassManager
from tmconvert.symbolics.op import Op
from tmconvert.targets.onnx.target import newest_opset
from tmconvert.targets.onnx.verify.sessions import Session
from tmconvert.targets.options import TargetOptions
from tmconvert.targets.registry import lower, passes_for, write
from tmconvert.verification.processes import worker

_RUNTIME = Session(keeps_memory=False)  # memory that it kept would be that of all tensors
Execute = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


def run_sample(execute: Execute, given: Mapping[str, np.ndarray], number: int) -> Mapping[str, np.ndarray]:
    """Returns the inputs and tensors of a sample. Raises UsageError TM6033 where the model cannot be run."""
    try:
        return {**given, **execute(given)}
    except Exception as error:  # each runtime has its own for what it cannot compute
        message = f"the model cannot be run on sample {number}: {_reason(error)}"
        raise UsageError("TM6033", message) from error


def _reason(error: Exception) -> str:
    said = error.message if isinstance(error, TmconvertError) else str(error).strip()
    return said.partition("Status Message: ")[2] or said or type(error).__name__


@contextmanager
def execution(graph: InternalGraph, catalogue: Mapping[str, Op], names: Sequence[str]) -> Iterator[Execute]:
    """Yields a function from inputs to the tensors ``names``; it is gone afterwards."""
    observed = observed_file(graph, catalogue, names) if names else (b"", ())
    if observed is None:
        yield _interpreter(graph, catalogue, names)
        return
    with running(*observed) as execute:
        yield execute


@contextmanager
def running(content: bytes, names: Sequence[str]) -> Iterator[Execute]:
    """Yields a function from inputs to the outputs ``names`` of an ONNX model, in a process of its own."""
    if not names:
        yield dict
        return
    with temporary_folder() as folder:
        path = folder / "observed.onnx"
        path.write_bytes(content)

        def execute(given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
            return dict(zip(names, _RUNTIME.run([path], given, names), strict=True))

        try:
            yield execute
        finally:
            _RUNTIME.forget()


def observed_file(
    graph: InternalGraph, catalogue: Mapping[str, Op], names: Sequence[str]
) -> tuple[bytes, Sequence[str]] | None:
    """Returns the content and outputs of an ONNX model that computes the tensors ``names``; None where ONNX
    Runtime is not installed or ONNX cannot express the graph.
    """
    if importlib.util.find_spec("onnxruntime") is None:
        return None
    worker.start(_RUNTIME)  # it imports ONNX Runtime meanwhile
    target_options, copy = TargetOptions("onnx", min(newest_opset(), 21)), graph.copy()
    PassManager(passes_for(target_options, catalogue), catalogue).run(copy)
    lowering = lower(copy, catalogue, target_options.target, target_options.version)
    if lowering.unsupported:
        return None
    with temporary_folder() as folder:
        path = folder / "lowered.onnx"
        with written(path) as file:
            write(lowering.graph, [file])
        content, found = with_outputs(path, names)
    return (content, found) if set(names) <= set(found) else None


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
