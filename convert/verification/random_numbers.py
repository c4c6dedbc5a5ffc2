"""Verifies files that draw random numbers.

Their outputs differ in each run, so two things are shown instead:

- All other operators: copies of the file are written in which the random operators are inputs. Numbers that
  the reference draws are fed there, and the outputs are compared with the reference's as those of any file.
- The random operators: a copy consists of these alone. It is run until there are enough numbers, first as it
  is, then with other seeds. The numbers must lie in the support of the distribution, fit it by the
  Kolmogorov-Smirnov statistic, and differ from operator to operator and from seed to seed.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.ir.expr import CallFunction
from tmconvert.ir.types import NamedArrays, Paths, Shapes
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.output.atomic import temporary_folder
from tmconvert.symbolics.registry import trait_of
from tmconvert.symbolics.traits import DrawsRandom
from tmconvert.targets.registry import target_named, write_files
from tmconvert.verification.reference import Reference
from tmconvert.verification.runtime import Runtime

ENOUGH, MOST_RUNS = 4096, 64
MOST_TESTED = 1 << 16
MOST_SEEDS = 1 << 24
FEWEST = 4  # numbers that are never equal by chance
# sqrt(n) times the greatest distance of two distribution functions is above it once in 30 million times
_KS_LIMIT = 3.0


@dataclass(frozen=True)
class Drawn:
    """A random operator of a file, its result, and the call of the graph that it was lowered from."""

    operator: Operator
    value: Value
    call: CallFunction

    @property
    def stream(self) -> int:
        stream = self.call.kwargs["stream"]
        assert isinstance(stream, int)
        return stream


def random_operators(graph: TargetGraph) -> list[Drawn]:
    """Returns the operators of a file that draw random numbers, in order."""
    names = target_named(graph.target).random_operators
    found = []
    for operator in graph.operators if names else ():
        if operator.type in names:
            call = graph.origins[operator.outputs[0]].node.expr
            assert isinstance(call, CallFunction)
            found.append(Drawn(operator, operator.outputs[0], call))
    return found


class FedRuntime:
    """Runs a copy of a file in which random operators are inputs; ``numbers`` are fed there, by stream."""

    def __init__(self, runtime: Runtime, paths: Paths, drawn: Sequence[Drawn]) -> None:
        self.runtime, self.paths, self.drawn = runtime, paths, drawn
        self.name = runtime.name
        self.numbers: Mapping[int, np.ndarray] = {}

    @property
    def version(self) -> str:
        return self.runtime.version

    def feed(self, reference: Reference, inputs: Sequence[np.ndarray]) -> None:
        """Takes the numbers that the reference draws for these inputs."""
        self.numbers = reference.drawn(inputs)

    def run(
        self, paths: Paths, inputs: NamedArrays, outputs: Sequence[str], *, shapes: Shapes | None = None
    ) -> list[np.ndarray]:
        fed = {each.value.name: self.numbers[each.stream] for each in self.drawn}
        return self.runtime.run(self.paths, {**inputs, **fed}, outputs, shapes=shapes)


@contextmanager
def fed_runtime(
    runtime: Runtime, paths: Paths, graph: TargetGraph, drawn: Sequence[Drawn]
) -> Iterator[FedRuntime]:
    """Writes the copy of a file in which random operators are inputs, for as long as the context lasts."""
    operators = [each.operator for each in drawn]
    values = [each.value for each in drawn]
    copy = replace(
        graph,
        inputs=[*graph.inputs, *values],
        input_names=[*graph.input_names, *(value.name for value in values)],
        operators=[operator for operator in graph.operators if operator not in operators],
    )
    with _copies(copy, paths) as files:
        yield FedRuntime(runtime, files, drawn)


@contextmanager
def _copies(graph: TargetGraph, paths: Paths) -> Iterator[list[Path]]:
    with temporary_folder() as folder:
        files = [folder / path.name for path in paths]
        write_files(graph, files)
        yield files


def check_distribution(
    runtime: Runtime, paths: Paths, graph: TargetGraph, drawn: Sequence[Drawn], inputs: NamedArrays
) -> str:
    """Tests the numbers that the file at ``paths`` draws for ``inputs``; returns what was tested, as text.

    Raises VerificationError TM4001 for numbers of another distribution, for equal ones, and for outputs that
    the file does not compute.
    """
    runtime.run(paths, inputs, graph.output_names)
    names = [each.value.name for each in drawn]
    part, runs = _only_random(graph, drawn), list[list[np.ndarray]]()
    while len(runs) < _runs_needed(runs):
        made = part if not runs else _reseeded(part, len(runs))
        with _copies(made, paths[:1]) as files:
            runs.append([np.asarray(each) for each in runtime.run(files, inputs, names)])
    _check_independence(drawn, runs)
    samples = [np.concatenate([run[number].reshape(-1) for run in runs]) for number in range(len(drawn))]
    for each, numbers in zip(drawn, samples, strict=True):
        _check_sample(each, numbers[:MOST_TESTED])
    total = sum(min(numbers.size, MOST_TESTED) for numbers in samples)
    return f"the distribution of {total} numbers that they drew"


def _only_random(graph: TargetGraph, drawn: Sequence[Drawn]) -> TargetGraph:
    """Returns a graph whose outputs are the random numbers, with the operators that these need."""
    values = [each.value for each in drawn]
    needed, kept = set(map(id, values)), list[Operator]()
    for operator in reversed(graph.operators):
        if any(id(value) in needed for value in operator.outputs):
            kept.append(operator)
            needed.update(id(value) for value in operator.inputs if value is not None)
    names = [value.name for value in values]
    return replace(graph, operators=kept[::-1], outputs=values, output_names=names)


def _reseeded(graph: TargetGraph, run: int) -> TargetGraph:
    """Returns the graph with seeds of its own for a run, so that the run draws numbers of its own."""
    seeds = target_named(graph.target).random_operators
    operators = []
    for number, operator in enumerate(graph.operators):
        if operator.type in seeds:
            # small seeds, and those that follow each other, begin with similar numbers in some generators
            seed = zlib.crc32(b"%d %d" % (run, number)) % MOST_SEEDS
            operator = replace(operator, attributes={**operator.attributes, **seeds[operator.type](seed)})
        operators.append(operator)
    return replace(graph, operators=operators)


def _runs_needed(runs: Sequence[Sequence[np.ndarray]]) -> int:
    if not runs:
        return 1
    fewest = min((array.size for array in runs[0] if array.size), default=ENOUGH)
    return min(MOST_RUNS, math.ceil(ENOUGH / fewest))


def _check_independence(drawn: Sequence[Drawn], runs: Sequence[Sequence[np.ndarray]]) -> None:
    """Raises VerificationError TM4001 if two operators, or two runs with other seeds, drew equal numbers."""
    seen: dict[bytes, str] = {}
    for number, run in enumerate(runs):
        for each, array in zip(drawn, run, strict=True):
            name = f"{each.value.name} in run {number}"
            if array.size < FEWEST:
                continue
            other = seen.setdefault(array.reshape(-1)[:FEWEST].tobytes(), name)
            if other != name:
                raise VerificationError("TM4001", f"random operators draw equal numbers: {other}, and {name}")


def _check_sample(drawn: Drawn, numbers: np.ndarray) -> None:
    trait = trait_of(drawn.call, DrawsRandom)
    assert trait is not None
    if not numbers.size:
        return
    low, high = trait.support
    if not np.isfinite(numbers).all() or numbers.min() < low or numbers.max() > high:
        raise VerificationError(
            "TM4001", f"the random operator {drawn.value.name} draws numbers beyond {low:g} to {high:g}"
        )
    ordered = np.sort(numbers.astype(np.float64))
    steps = np.arange(ordered.size + 1) / ordered.size
    expected = trait.cdf(ordered)
    distance = max(np.max(steps[1:] - expected), np.max(expected - steps[:-1]))
    if distance * math.sqrt(ordered.size) > _KS_LIMIT:
        raise VerificationError(
            "TM4001",
            f"the random operator {drawn.value.name} draws numbers of another distribution: the "
            f"Kolmogorov-Smirnov distance of {ordered.size} of them is {distance:.3f}",
        )
