"""Verifies a written file: runs it and compares its outputs with the source's."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tmconvert.errors import RuntimeTooOld, UnknownOperator, VerificationError
from tmconvert.ir.symbolic.data_dependent import depends_on_data
from tmconvert.ir.types import Paths
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.targets.registry import runtime_of, target_named
from tmconvert.verification.compare import Comparison
from tmconvert.verification.random_numbers import (
    FedRuntime,
    check_distribution,
    fed_runtime,
    random_operators,
)
from tmconvert.verification.reference import OWN_READING, SMALL, TOO_LARGE, Reference
from tmconvert.verification.runtime import Runtime
from tmconvert.verification.tolerance import comparisons_of
from tmconvert.verification.vacuous import (
    independent_notes,
    independent_outputs,
    shown_outputs,
    vacuous_notes,
    vacuous_outputs,
    with_noise,
)

if TYPE_CHECKING:
    from tmconvert.verification.noise import Noise
    from tmconvert.verification.quality import OutputQuality
    from tmconvert.verification.references import Budget, References

REFUSED = "TM4002"


@dataclass(frozen=True, repr=False)
class Verification:
    """A successful verification: the runtime that ran the file, and each output's error.

    ``vacuous`` maps outputs that were constant, NaN or empty for all tested inputs to that reason: their
    comparison is not informative. ``independent`` are those that depend on no input. For a file in integers
    ``noise`` has what each layer costs, measured on what ``inputs`` says, and for ONNX ``fused_steps`` how
    far each output is in the session that users run from the one that fuses nothing, in steps of its scale.
    ``reference`` names what computed the expected outputs of the first inputs; ``refusal`` states why that is
    tmconvert's own reading of a source that a runtime could run: then the file is not verified.
    ``undecided`` are outputs that differ by no more than rounding moves them in the source itself, such as by
    the choice among equal values.
    ``outputs`` are the outputs where ``comparisons`` have other layers, too; ``quality`` compares those of a
    file in integers with the float model. ``accelerators`` has a sentence on each that was compared.
    """

    runtime: str
    comparisons: tuple[Comparison, ...]
    noise: tuple[Noise, ...] = ()
    inputs: str = ""
    fused_steps: Mapping[str, float] = field(default_factory=dict)
    vacuous: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    independent: tuple[str, ...] = ()
    quality: tuple[OutputQuality, ...] = ()
    reference: str = OWN_READING
    refusal: str = ""
    undecided: tuple[str, ...] = ()
    accelerators: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Returns what was compared and how close it came, without arrays and layers."""
        outputs = list(self.outputs or [each.output for each in self.comparisons])
        decibels = "" if self.decibels is None else f", decibels={self.decibels:.1f}"
        left_out = f", vacuous={dict(self.vacuous)}" if self.vacuous else ""
        return (
            f"Verification(runtime={self.runtime!r}, outputs={outputs}, max_error={self.max_error:.2g}"
            f"{decibels}{left_out})"
        )

    @property
    def tells(self) -> bool:
        """Whether the comparison shows something: with the source itself, where that runs, and of at least
        one output that is not constant, NaN, empty, or independent of the inputs, where none is undecided.
        """
        if self.refusal or self.undecided:
            return False
        outputs = self.outputs or [each.output for each in self.comparisons]
        return not outputs or any(
            name not in self.vacuous and name not in self.independent for name in outputs
        )

    @property
    def max_error(self) -> float:
        """Returns the largest max|a - b| / max|b| over the outputs that are not undecided."""
        return max((each.max_error for each in self.comparisons if not each.is_undecided), default=0.0)

    @property
    def decibels(self) -> float | None:
        """Returns the lowest signal-to-noise ratio of the outputs of an integer file, if any has one."""
        return min((each.decibels for each in self.quality), default=None)

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {
            "runtime": self.runtime,
            "reference": self.reference,
            **({"refusal": self.refusal} if self.refusal else {}),
            **({"undecided": list(self.undecided)} if self.undecided else {}),
            **({"accelerators": list(self.accelerators)} if self.accelerators else {}),
            "max_error": self.max_error,
            "outputs": [self._output(each) for each in self.comparisons],
        }
        layers = {"inputs": self.inputs, "layers": [each.to_json() for each in self.noise]}
        fused = {"fused_steps": dict(self.fused_steps)} if self.fused_steps else {}
        return found | fused | (layers if self.noise else {})

    def _output(self, each: Comparison) -> dict[str, object]:
        what = self.vacuous.get(each.output)
        shown: dict[str, object] = {
            "name": each.output,
            "max_error": each.max_error,
            "shape": list(each.expected_shape),
        }
        return shown if what is None else shown | {"not_compared": what}


def verify_written(
    target: str, paths: Paths, graph: TargetGraph, references: References, *, runtime: Runtime | None = None
) -> Verification | None:
    """Verifies files just written; returns None, with a note, where verification is not possible.

    ``runtime`` is by default the target's. The report is about the first of ``references``; the file must
    agree with the others, too. Raises VerificationError when the runtime rejects the file or returns other
    results.
    """
    notes = references.notes
    described, installed = target_named(target), runtime_of(graph, paths[0])
    runtime = runtime if runtime is not None and installed is not None else installed
    if runtime is None:
        package = described.runtime_package
        notes.append(f"not verified: no runtime for {described.title} is installed (pip install '{package}')")
        return None
    if any(reference.is_too_large() for reference in references.references):
        notes.append(f"not verified: {TOO_LARGE}")
        return None
    names = graph.output_names
    try:
        found = _cases_of(runtime, paths, graph, references)
    except RuntimeTooOld:
        notes.append(
            f"not verified: {runtime.name} {runtime.version} is too old for this version of {described.title}"
        )
        return None
    except UnknownOperator:
        domains = sorted({operator.type for operator in graph.all_operators() if operator.domain})
        if not domains:
            raise
        notes.append(f"not verified: {runtime.name} has no operator {', '.join(domains)}")
        return None
    if not found:
        return None
    cases = [case.expected for case in found]
    shown = [shown_outputs(case.comparisons, case.expected) for case in found]
    vacuous = with_noise(vacuous_outputs(shown, names), [case.comparisons for case in found])
    graphs = [each.graph for each in references.references]
    independent = independent_outputs(graphs, cases, names)
    notes += independent_notes(independent)
    notes += vacuous_notes({name: what for name, what in vacuous.items() if name not in independent})
    comparisons, refusal, computed_by = found[0].comparisons, found[0].refusal, found[0].computed_by
    if references.compares_source and found[0].reference.is_quantized():
        from tmconvert.verification.source import against_source

        for case in reversed(found):
            own = notes if case is found[0] else None
            comparisons = against_source(case.reference, case.given, case.actual, case.comparisons, own)
        refusal, computed_by = refusal or found[0].reference.refusal, found[0].reference.reading
    name = f"{runtime.name} {runtime.version}"
    notes += references.budget.notes()
    if sides := sum(case.is_side for case in found):
        notes.append(f"other sides of branches that were compared: {sides}")
    failure = found[0].reference.failure
    refused = found[0].reference.refused
    notes += [f"further inputs were left out, for which the model fails ({failure})"] if failure else []
    notes += [f"further inputs were left out, which the file does not take ({refused})"] if refused else []
    notes += _undecided_notes(found[1:])
    return Verification(
        name,
        tuple(comparisons),
        vacuous=vacuous,
        independent=tuple(independent),
        reference=computed_by,
        refusal=refusal,
        undecided=tuple(each.output for each in comparisons if each.is_undecided),
    )


def _undecided_notes(cases: Sequence[_Case]) -> list[str]:
    """Returns a note on the outputs that are undecided for further inputs, if any."""
    names = {each.output: None for case in cases for each in case.comparisons if each.is_undecided}
    return [f"undecided for further inputs: {', '.join(names)}"] if names else []


def _cases_of(runtime: Runtime, paths: Paths, graph: TargetGraph, references: References) -> list[_Case]:
    """Runs the test cases; of a file that draws random numbers, in a copy to which these are fed."""
    notes = references.notes
    drawn = random_operators(graph)
    if not drawn:
        return _cases(runtime, paths, graph, references)
    with fed_runtime(runtime, paths, graph, drawn) as fed:
        found = _cases(fed, paths, graph, references)
    if found:
        stored = found[0].reference.stored_inputs(found[0].given)
        given = dict(zip(graph.input_names, stored, strict=True))
        tested = check_distribution(runtime, paths, graph, drawn, given)
        notes.append(
            f"random numbers: the outputs were compared for given results of {len(drawn)} random operators; "
            f"tested by itself: {tested}"
        )
    return found


def _cases(runtime: Runtime, paths: Paths, graph: TargetGraph, references: References) -> list[_Case]:
    """Runs test cases for each of the references, and a second one where it is informative.

    Stops, with a note, at what cannot be compared. Empty where the first cannot.
    """
    names, found = graph.output_names, list[_Case]()
    inputs, notes, budget = references.inputs, references.notes, references.budget
    for number, reference in enumerate(references.references):
        if number and not budget.allows("other sizes"):
            break
        lacking = reference.lacks(None if number else inputs)
        if lacking:
            notes.append(f"not verified{' at other sizes' if number else ''}: {lacking}")
            break
        try:
            given, expected = reference.case(None if number else inputs)
        except (ValueError, IndexError, ArithmeticError) as error:
            if not (depends_on_data(reference.graph) or reference.refusal):
                raise
            notes.append(f"not verified: the model itself fails for these inputs ({error})")
            return []
        reference.deadline = budget.deadline
        is_drawn = (inputs is None or number > 0) and not reference.has_example()
        case = _Case(reference, given, expected, is_drawn)
        started = time.perf_counter()
        try:
            case.run(runtime, paths, graph.input_names, names, number)
        except VerificationError as error:
            if not (is_drawn and _fails_as_source(error, case.refusal)):
                raise
            notes.append(f"not verified: the model itself fails for inputs that were drawn ({error.message})")
            break
        budget.spend(time.perf_counter() - started)
        found.append(case)
    if found and inputs is None and budget.allows("further inputs"):
        found += _second(found, runtime, paths, graph.input_names, names, budget)
    return found


def _fails_as_source(error: VerificationError, refusal: str) -> bool:
    """Whether a kernel of the file refuses inputs with the words with which it refused them in the source."""
    reason = error.message.rpartition("Status Message: ")[2]
    return error.code == REFUSED and reason != error.message and reason in refusal


@dataclass
class _Case:
    """A test case: inputs for a reference, expected outputs, and the comparison with the file's.

    ``is_drawn`` states that the inputs are of our own making, ``is_side`` that Python takes another side of a
    branch for them than for the example.
    """

    reference: Reference
    given: Sequence[np.ndarray]
    expected: Sequence[np.ndarray]
    is_drawn: bool = False
    is_side: bool = False
    comparisons: list[Comparison] = field(default_factory=list)
    actual: Sequence[np.ndarray] = ()

    def __post_init__(self) -> None:
        self.computed_by, self.refusal = self.reference.computed_by, self.reference.refusal

    def run(
        self,
        runtime: Runtime,
        paths: Paths,
        inputs: Sequence[str],
        names: Sequence[str],
        number: int,
        *,
        is_second: bool = False,
    ) -> None:
        """Runs the test case. Raises VerificationError where outputs differ."""
        stored = dict(zip(inputs, self.reference.stored_inputs(self.given), strict=True))
        shapes = [array.shape for array in self.expected]
        if isinstance(runtime, FedRuntime):
            runtime.feed(self.reference, self.given)
        actual = runtime.run(paths, stored, names, shapes=shapes)
        self.comparisons = self._checked(actual, names, number, is_second)

    def _checked(
        self, actual: Sequence[np.ndarray], names: Sequence[str], number: int, is_second: bool
    ) -> list[Comparison]:
        reference, is_drawn = self.reference, self.is_drawn or is_second
        outputs = self.actual = reference.source_outputs(actual)
        try:
            return comparisons_of(
                reference, self.given, outputs, self.expected, names, is_drawn=is_drawn, is_second=is_second
            )
        except VerificationError as error:
            if not number:
                raise
            shapes = ", ".join(map(str, reference.input_types))
            raise VerificationError(
                error.code,
                f"{error.message}, for inputs {shapes}",
                notes=[*error.notes, ("help", "convert without --dynamic, and report this as a defect")],
            ) from error


def _second(
    found: Sequence[_Case],
    runtime: Runtime,
    paths: Paths,
    inputs: Sequence[str],
    names: Sequence[str],
    budget: Budget,
) -> list[_Case]:
    """Runs further test cases at the first sizes if those were an example and cheap, or not informative."""
    first = found[0]
    is_cheap = not first.reference.has_example() or first.reference.bytes_needed() <= SMALL
    is_cheap |= first.reference.original is not None
    known: list[Sequence[np.ndarray]] = [shown_outputs(case.comparisons, case.expected) for case in found]
    is_informative = len(vacuous_outputs(known, names)) < len(names)
    if not is_cheap and is_informative:
        return []
    drawn = (first.reference.second_case(), first.reference.extreme_case())
    cases = [_Case(first.reference, *each) for each in drawn if each is not None]
    cases += [_Case(first.reference, *each, is_side=True) for each in first.reference.side_cases()]
    known += [case.expected for case in cases]
    if budget.allows("further inputs"):
        cases += [_Case(first.reference, *each) for each in first.reference.cases_for(known, names)]
    for case in cases:
        try:
            case.run(runtime, paths, inputs, names, 0, is_second=True)
        except VerificationError as error:
            if error.code != REFUSED:
                raise
            first.reference.refused = error.message  # by a kernel, for elements that it does not take
        if not budget.allows("further inputs"):
            break
    return [case for case in cases if case.comparisons]
