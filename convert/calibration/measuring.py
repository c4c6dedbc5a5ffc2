"""Statistics of tensors over the samples of calibration data.

Samples are measured in chunks of ``CHUNK``. Each chunk has statistics of its own, which are merged in the
order of the chunks, so that the result does not depend on who measures a chunk: ``distributing`` sets a
function that has the chunks measured elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from tmconvert.calibration.data import Samples
from tmconvert.calibration.execution import Execute, execution, observed_file, run_sample, running
from tmconvert.errors import UsageError
from tmconvert.ir import InternalGraph
from tmconvert.progress import counter
from tmconvert.symbolics.op import Op

CHUNK = 32  # samples; sums of floats, and so the bytes of models, depend on it

S = TypeVar("S", bound="Statistic")


class Statistic(Protocol):
    """A statistic of a tensor; it is pickled to be measured elsewhere."""

    def add(self, array: np.ndarray) -> None:
        """Adds the tensor for one sample. Raises ValueError for values that cannot be measured."""

    def merge(self: S, later: S) -> None:
        """Adds what was measured on later samples."""


# by the name of a tensor; the same for each chunk before anything is measured
Statistics = dict[str, list[Any]]


class Observed(NamedTuple):
    """An ONNX model whose outputs are tensors to measure: its content, inputs and outputs by name."""

    content: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    samples: Samples
    statistics: Statistics


class Chunk(NamedTuple):
    """Samples from ``first`` to before ``end``."""

    first: int
    end: int


# (function, what is common to all chunks, chunks) -> results of function(common, chunk), in order
Measures = Callable[[Observed, Chunk], Statistics]
Distribute = Callable[[Measures, Observed, Sequence[Chunk]], Iterable[Statistics]]
_distribute: ContextVar[Distribute | None] = ContextVar("distribute", default=None)


@contextmanager
def distributing(distribute: Distribute) -> Iterator[None]:
    """Has chunks measured by ``distribute`` within the context."""
    token = _distribute.set(distribute)
    try:
        yield
    finally:
        _distribute.reset(token)


def measure(
    graph: InternalGraph,
    catalogue: Mapping[str, Op],
    samples: Iterable[Sequence[np.ndarray]],
    make: Callable[[], Statistics],
    *,
    counts: bool = False,
) -> tuple[Statistics, int]:
    """Returns statistics over all samples, and the number of samples.

    The keys of what ``make`` returns are names of inputs and tensors of ``graph``. With ``counts`` samples
    are reported as progress. Raises UsageError TM6033 where the model cannot be run on a sample.
    """
    inputs = tuple(node.name for node in graph.inputs)
    inner = [name for name in make() if name not in inputs]
    distribute = _distribute.get()
    if distribute is not None and isinstance(samples, Samples):
        observed = observed_file(graph, catalogue, inner) if inner else (b"", ())
        if observed is not None:
            work = Observed(observed[0], inputs, tuple(observed[1]), samples, make())
            return _elsewhere(distribute, work, counter("calibrate") if counts else None)
    total: Statistics | None = None
    count, tell = 0, counter("calibrate") if counts else None
    known = len(samples) if tell is not None and isinstance(samples, Samples) else 0
    waiting = iter(samples)
    with execution(graph, catalogue, inner) as execute:
        while True:
            chunk, number = make(), 0
            for sample in islice(waiting, CHUNK):
                number += 1
                _add(chunk, execute, inputs, sample, count + number)
                if tell is not None:
                    tell(count + number, known)
            count += number
            if number:
                total = chunk if total is None else _merge(total, chunk)
            if number < CHUNK:
                return make() if total is None else total, count


def _add(
    statistics: Statistics, execute: Execute, inputs: Sequence[str], sample: Sequence[np.ndarray], number: int
) -> None:
    seen = run_sample(execute, dict(zip(inputs, sample, strict=True)), number)
    for name, wanted in statistics.items():
        for each in wanted:
            try:
                each.add(seen[name])
            except ValueError as error:
                message = f"{name} cannot be measured on sample {number}: {error}"
                help = (
                    f"clamp what {name} is computed of in the model, as with torch.clamp(x, max=80) before "
                    f"exp, leave the sample out, or keep it in float: --rule '{name}=float'"
                )
                raise UsageError("TM6033", message, notes=[("help", help)]) from error


def _merge(total: Statistics, chunk: Statistics) -> Statistics:
    for name, wanted in total.items():
        for each, later in zip(wanted, chunk[name], strict=True):
            each.merge(later)
    return total


def measure_chunk(work: Observed, chunk: Chunk) -> Statistics:
    """Returns the statistics of a chunk; a worker calls it."""
    statistics = deepcopy(work.statistics)  # other chunks have the same object
    with running(work.content, work.outputs) as execute:
        for number, sample in enumerate(work.samples.part(*chunk), chunk.first + 1):
            _add(statistics, execute, work.inputs, sample, number)
    return statistics


def _elsewhere(
    distribute: Distribute, work: Observed, tell: Callable[[int, int], object] | None
) -> tuple[Statistics, int]:
    count = work.samples.exact_count()
    chunks = [Chunk(first, min(first + CHUNK, count)) for first in range(0, count, CHUNK)]
    total: Statistics | None = None
    for chunk, part in zip(chunks, distribute(measure_chunk, work, chunks), strict=True):
        total = part if total is None else _merge(total, part)
        if tell is not None:
            tell(chunk.end, count)
    return work.statistics if total is None else total, count
