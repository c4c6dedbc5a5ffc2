"""Runs a float graph on samples and returns its tensors: in ONNX Runtime if it is installed, else in
NumPy.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.errors import TmconvertError, UsageError
from tmconvert.ir import Expr, InternalGraph
from tmconvert.ir.interpreter import Interpreter
from tmconvert.ir.tree import leaves
from tmconvert.output.atomic import temporary_folder, written
from tmconvert.passes.manager import PassManager
from tmconvert.symbolics.op import Op
from tmconvert.targets.onnx.reader import with_outputs
from tmconvert.targets.onnx.sessions import Session
from tmconvert.targets.onnx.target import newest_opset
from tmconvert.targets.options import TargetOptions
from tmconvert.targets.registry import lower, passes_for, write
from tmconvert.verification import worker

_RUNTIME = Session(keeps_memory=False)  # memory that it kept would be that of all tensors
# gets the name of a tensor and what it is for one sample
Look = Callable[[str, np.ndarray], None]


def run(
    graph: InternalGraph,
    catalogue: Mapping[str, Op],
    samples: Iterable[Sequence[np.ndarray]],
    names: Sequence[str],
    look: Look,
) -> None:
    """Calls ``look`` for each sample with the inputs in the order of the graph, and the tensors ``names``.

    Raises UsageError TM6033 where the model cannot be run on a sample.
    """
    inputs = [node.name for node in graph.inputs]
    inner = [name for name in names if name not in inputs]
    with _execution(graph, catalogue, inner) as execute:
        for number, sample in enumerate(samples, 1):
            given = dict(zip(inputs, sample, strict=True))
            try:
                seen = {**given, **execute(given)}
            except Exception as error:  # each runtime has its own for what it cannot compute
                message = f"the model cannot be run on sample {number}: {_reason(error)}"
                raise UsageError("TM6033", message) from error
            for name in names:
                look(name, seen[name])
            del seen  # the next run makes as much again


def _reason(error: Exception) -> str:
    said = error.message if isinstance(error, TmconvertError) else str(error).strip()
    return said.partition("Status Message: ")[2] or said or type(error).__name__


Execute = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


@contextmanager
def _execution(graph: InternalGraph, catalogue: Mapping[str, Op], names: Sequence[str]) -> Iterator[Execute]:
    """Yields a function from inputs to the tensors ``names``; it is gone afterwards."""
    if not names:
        yield dict
        return
    with temporary_folder() as folder:
        execute = _session(graph, catalogue, names, folder / "observed.onnx")
        try:
            yield execute or _interpreter(graph, catalogue, names)
        finally:
            if execute is not None:
                _RUNTIME.forget()


def _session(
    graph: InternalGraph, catalogue: Mapping[str, Op], names: Sequence[str], path: Path
) -> Execute | None:
    """Returns a session, or None where ONNX Runtime is not installed or ONNX cannot express the graph.

    ``path`` is where the model is written that the session runs, in a process of its own.
    """
    if importlib.util.find_spec("onnxruntime") is None:
        return None
    worker.start(_RUNTIME)  # it imports ONNX Runtime meanwhile
    target_options, copy = TargetOptions("onnx", min(newest_opset(), 21)), graph.copy()
    PassManager(passes_for(target_options, catalogue), catalogue).run(copy)
    lowering = lower(copy, catalogue, target_options.target, target_options.version)
    if lowering.unsupported:
        return None
    with written(path) as file:
        write(lowering.graph, [file])
    content, found = with_outputs(path, names)
    if not set(names) <= set(found):
        return None
    path.write_bytes(content)

    def execute(given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        return dict(zip(found, _RUNTIME.run([path], given, found), strict=True))

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
