"""Runs a step file over whole streams, and compares its joined outputs with those of the offline model."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from tmconvert.calibration.module import as_module
from tmconvert.conversion.io_names import written_outputs
from tmconvert.conversion.io_overrides import IoOverrides, bind_model
from tmconvert.errors import TmconvertError, VerificationError
from tmconvert.inspection.run_file import NHWC_TO_NCHW, FileRunner
from tmconvert.ir import TensorNode, TracedModule
from tmconvert.ir.interpreter import run_module
from tmconvert.ir.symbolic.dims import example
from tmconvert.ir.symbolic.journal import SizeJournal
from tmconvert.ir.tree import leaves
from tmconvert.streaming.attention import limit_context
from tmconvert.streaming.builder import END
from tmconvert.streaming.forms import form_for_steps
from tmconvert.streaming.step_model import StepModel
from tmconvert.symbolics.op import Op
from tmconvert.transform.normal_form import normal_form
from tmconvert.transform.run_model import run_model

TOLERANCE = 1e-5  # of the largest value of an output
MOST_CHUNK = 16  # times the fewest frames, in the steps of a proof for an open chunk
MOST_STEPS = 400  # that a proof runs; of a longer stream, the first frames are compared
Arrays = dict[str, np.ndarray]
Run = Callable[[Arrays], Arrays]


class _Steps(FileRunner):
    """A file whose states are variables, in one interpreter."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.steps = self.target.steps(path)

    def computed(self, fed: Mapping[str, np.ndarray], names: Sequence[str]) -> Sequence[np.ndarray]:
        made = self.steps(fed)
        return [made[name] for name in names]


def step_runner(step: StepModel, path: Path | None, *, has_variables: bool = False) -> Callable[[], Run]:
    """Returns a function that starts a stream: it returns one that runs one step, in the runtime of the file
    or, without one, in NumPy.
    """
    if path is None:
        return lambda: lambda arrays: run_model(step.module, arrays)
    whole = None if has_variables else FileRunner(path)
    return lambda: _run_of(_Steps(path) if whole is None else whole)


def _run_of(runner: FileRunner) -> Run:
    layouts = {each.name: each.layout for each in runner.outputs}

    def run(arrays: Arrays) -> Arrays:
        found = runner.run(arrays)
        return {
            name: array.transpose(NHWC_TO_NCHW) if layouts[name] == "NHWC" and array.ndim == 4 else array
            for name, array in found.items()
        }

    return run


def run_stream(
    step: StepModel, run: Run, inputs: Mapping[str, np.ndarray], states: Mapping[str, TensorNode]
) -> Arrays:
    """Returns the outputs of a stream: chunk after chunk, then zeros until the delayed frames are out.

    ``inputs`` are those of the offline model, ``states`` those that are inputs of the file.
    """
    first = next(iter(step.axes))
    total = inputs[first].shape[step.axes[first]]
    wanted = {name: each.length.of(total) for name, each in step.outputs.items()}
    chunks = _chunks(step, max(total, *map(partial(_frames_for, step, wanted), step.outputs)))
    given = {
        name: _filled(array, step.axes[name], step.at(step.frames[name], sum(chunks)))
        if name in step.axes
        else array
        for name, array in inputs.items()
    }
    state = {name: np.zeros(node.type.shape, node.type.dtype) for name, node in states.items()}
    parts: dict[str, list[np.ndarray]] = {name: [] for name in step.outputs}
    for done, chunk in zip(itertools.accumulate(chunks), chunks, strict=True):
        fed = dict(given)
        for name, axis in step.axes.items():
            bounds = (step.at(step.frames[name], frames) for frames in (done - chunk, done))
            fed[name] = np.take(given[name], range(*bounds), axis)
        if step.has_end:
            fed[END] = np.asarray([total if done >= total else 0], np.int32)
        made = run({**fed, **state})
        state = {name: made[f"{name}_next"] for name in state}
        for name, found in parts.items():
            found.append(made[name])
    return {
        name: _joined(parts[name], each.axis, each.delay, wanted[name]) for name, each in step.outputs.items()
    }


def _frames_for(step: StepModel, wanted: Mapping[str, int], name: str) -> int:
    """Returns how many frames a stream must have for all wanted frames of an output."""
    made = step.outputs[name]
    return -(-(wanted[name] + made.delay) * example(step.chunk) // example(made.frames))


def _chunks(step: StepModel, frames: int) -> list[int]:
    """Returns the frames of each step of a stream: random ones where the file takes any."""
    least, sizes = step.least, np.random.default_rng(0)
    count = min(-(-frames // least), MOST_STEPS)
    if not step.is_open:
        return [least] * count
    found = [least, 2 * least]
    while sum(found) < count * least:
        found.append(int(sizes.integers(1, MOST_CHUNK + 1)) * least)
    return found


def _filled(array: np.ndarray, axis: int, frames: int) -> np.ndarray:
    missing = max(frames - array.shape[axis], 0)
    return np.pad(array, [(0, missing if each == axis else 0) for each in range(array.ndim)])


def _joined(parts: Sequence[np.ndarray], axis: int, delay: int, frames: int) -> np.ndarray:
    whole = np.concatenate(parts, axis)
    return whole.take(range(delay, min(delay + frames, whole.shape[axis])), axis)


def prove(
    module: TracedModule,
    step: StepModel,
    path: Path | None,
    catalogue: Mapping[str, Op],
    *,
    has_variables: bool = False,
) -> tuple[float, list[int]]:
    """Returns the largest error over all streams, relative to the largest value of an output, and the numbers
    of frames of the streams.

    The streams are the example, whose outputs are those of the source framework where they are known, and
    random values of other lengths, where the model can be computed at them. Raises VerificationError TM4009.
    """
    start, error, lengths = step_runner(step, path, has_variables=has_variables), 0.0, []
    states = {} if has_variables else step.states
    graph = normal_form(module, catalogue)
    names = [node.name for node in graph.inputs]
    example = module.example
    shapes = {node.name: node.type.shape for node in graph.inputs if isinstance(node, TensorNode)}
    rng = np.random.default_rng(0)
    first = next(iter(step.axes))
    total = shapes[first][step.axes[first]]
    for frames in dict.fromkeys((total, total + step.least, total + 2 * step.least + 1)):
        longer = {name: _at_length(shapes[name], step.axes.get(name), frames, total) for name in names}
        arrays = {node.name: _random(rng, longer[node.name], node) for node in graph.inputs}
        if frames == total and example is not None:
            arrays = dict(zip(names, example.inputs, strict=True))
        offline = _offline(module, step, arrays, longer if frames != total else {}, catalogue)
        if offline is None:
            continue
        for name, made in run_stream(step, start(), arrays, states).items():
            axis = step.outputs[name].axis
            expected = offline[name].take(range(made.shape[axis]), axis)
            worst = _difference(made, expected)
            if not worst <= TOLERANCE:
                raise _differs(name, frames, made, expected, axis, worst)
            error = max(error, worst)
        lengths.append(frames)
    return error, lengths


def _at_length(shape: Sequence[int], axis: int | None, frames: int, total: int) -> tuple[int, ...]:
    return tuple(size * frames // total if each == axis else size for each, size in enumerate(shape))


def _random(rng: np.random.Generator, shape: Sequence[int], node: object) -> np.ndarray:
    assert isinstance(node, TensorNode)
    if node.type.dtype.kind == "f":
        return rng.standard_normal(shape).astype(node.type.dtype)
    return rng.integers(0, 2, shape).astype(node.type.dtype)


def _offline(
    module: TracedModule,
    step: StepModel,
    arrays: Arrays,
    shapes: Mapping[str, Sequence[int]],
    catalogue: Mapping[str, Op],
) -> Arrays | None:
    """Returns the outputs of the whole model; None where it cannot be computed at other lengths."""
    example = module.example
    try:
        with SizeJournal():
            bound = bind_model(module, IoOverrides(input_shapes=shapes), catalogue)
            normalized = bound.normalized(catalogue, bound.example())
    except TmconvertError:
        if not shapes:
            raise
        return None
    if normalized.unsupported:  # sizes that do not fit each other
        return None
    names = written_outputs(normal_form(module, catalogue))
    if step.limited:
        limit_context(form_for_steps(normalized.graph, catalogue), step.limited, catalogue)
    elif not shapes and example is not None and example.outputs is not None:
        return dict(zip(names, example.outputs, strict=True))
    made = run_module(as_module(normalized.graph, module, catalogue), list(arrays.values()))
    return dict(zip(names, [each for each in leaves(made) if isinstance(each, np.ndarray)], strict=True))


def _difference(made: np.ndarray, expected: np.ndarray) -> float:
    if made.dtype.kind != "f":
        return float(np.mean(made != expected)) if made.size else 0.0
    scale = float(np.abs(expected).max(initial=0.0)) or 1.0
    return float(np.abs(made - expected).max(initial=0.0)) / scale


def _differs(
    name: str, frames: int, made: np.ndarray, expected: np.ndarray, axis: int, worst: float
) -> VerificationError:
    others = tuple(each for each in range(made.ndim) if each != axis)
    errors = np.abs(made.astype(np.float64) - expected).max(others)
    frame = int(np.argmax(errors > TOLERANCE * (float(np.abs(expected).max(initial=0.0)) or 1.0)))
    return VerificationError(
        "TM4009",
        f"the steps compute another {name} than the model for a stream of {frames} frames: "
        f"the error is {worst:.2g} of the largest value, from frame {frame} on",
    )
