"""Verifies an existing file against its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tmconvert.conversion.io_overrides import NO_OVERRIDES, IoOverrides, bind_model, saturates
from tmconvert.errors import VerificationError
from tmconvert.ir import InternalGraph, TensorNode, TracedModule
from tmconvert.ir.symbolic.journal import SizesSpecialized
from tmconvert.ir.types import Arrays
from tmconvert.passes.unsupported import unsupported_error
from tmconvert.symbolics.op import Op
from tmconvert.targets.recognize import target_of_file
from tmconvert.targets.target import Target
from tmconvert.verification.compare import Comparison
from tmconvert.verification.reference import Reference
from tmconvert.verification.runtime import Runtime
from tmconvert.verification.tolerance import comparisons_of
from tmconvert.verification.vacuous import independent_outputs, shown_outputs, vacuous_outputs, with_noise
from tmconvert.verification.verify import REFUSED, Verification


def verify_file(
    module: TracedModule,
    path: Path,
    inputs: Arrays | None,
    catalogue: Mapping[str, Op],
    overrides: IoOverrides = NO_OVERRIDES,
    *,
    keeps_ranges: bool = True,
    signature: str = "",
) -> Verification:
    """Compares a written file, or a signature of it, with the reference interpreter; see ``api.verify``.

    ``keeps_ranges`` states that the file has clamps where its source saturates.
    """
    target = target_of_file(path)
    runtime = _runtime(target, path, signature)
    bound = bind_model(module, overrides, catalogue)._replace(keeps_ranges=keeps_ranges)
    try:
        normalized = bound.normalized(catalogue)
    except SizesSpecialized:  # the file has those of the example
        normalized = bound.normalized(catalogue, bound.example())
    if normalized.unsupported:
        raise unsupported_error(normalized.unsupported, target.name)
    layouts = target.stored_layouts(path)
    reference = _reference_of(module, normalized.graph, layouts, catalogue, overrides, keeps_ranges)
    lacking = reference.lacks(inputs)
    if lacking:
        raise VerificationError("TM4005", f"there is no reference to compare with: {lacking}")
    names = list(normalized.graph.output_names)
    paths = target.model_files(path)
    _check_sizes(target.stored_input_shapes(path), reference)

    def compared(given: Arrays, expected: Arrays, *, is_second: bool = False) -> list[Comparison]:
        arrays = reference.stored_inputs(given)
        stored = dict(zip([node.name for node in normalized.graph.inputs], arrays, strict=True))
        shapes = [node.type.shape for node in normalized.graph.outputs if isinstance(node, TensorNode)]
        actual = runtime.run(paths, stored, names, shapes=shapes if target.drops_low_ranks else None)
        outputs = reference.source_outputs(actual)
        found = comparisons_of(reference, given, outputs, expected, names, is_second=is_second)
        if not reference.is_quantized():
            return found
        from tmconvert.verification.source import against_source

        return against_source(reference, given, outputs, found)

    first = reference.case(inputs)
    computed_by, refusal = reference.computed_by, reference.refusal
    cases = [compared(*first)]
    if reference.is_quantized():
        computed_by, refusal = reference.reading, refusal or reference.refusal
    arrays: list[Sequence[np.ndarray]] = [shown_outputs(cases[0], first[1])]
    for given, expected, shows_dependence in _other_cases(reference, arrays, names) if inputs is None else ():
        try:
            cases.append(compared(given, expected, is_second=True))
        except VerificationError as error:
            if error.code != REFUSED:  # by a kernel, for elements that it does not take
                raise
            continue
        arrays += [shown_outputs(cases[-1], expected)] if shows_dependence else []
    comparisons = cases[0]
    return Verification(
        f"{runtime.name} {runtime.version}",
        tuple(comparisons),
        vacuous=with_noise(vacuous_outputs(arrays, names), cases),
        independent=tuple(independent_outputs([reference.graph], arrays, names)),
        reference=computed_by,
        refusal=refusal,
        undecided=tuple(each.output for each in comparisons if each.is_undecided),
    )


def _reference_of(
    module: TracedModule,
    graph: InternalGraph,
    layouts: tuple[Sequence[bool], Sequence[bool]] | None,
    catalogue: Mapping[str, Op],
    overrides: IoOverrides,
    keeps_ranges: bool,
) -> Reference:
    is_whole = overrides == IoOverrides(rename=overrides.rename)
    example, original = module.recording()[:2] if is_whole else (None, None)
    found = Reference(graph, catalogue, *(layouts or ((), ())), example, original, module.producer)
    found.keeps_ranges = keeps_ranges and saturates(module)
    return found


def _runtime(target: Target, path: Path, signature: str) -> Runtime:
    """Returns the runtime for a file. Raises VerificationError TM4003 where it is not installed."""
    runtime = target.signature_runtime(path, signature)
    if runtime is None:
        raise VerificationError(
            "TM4003",
            f"no runtime for {target.title} is installed",
            notes=[("help", f"pip install '{target.runtime_package}'")],
        )
    return runtime


def _other_cases(
    reference: Reference, arrays: list[Arrays], names: Sequence[str]
) -> Iterator[tuple[Arrays, Arrays, bool]]:
    """Yields inputs and outputs besides the first, and whether they show what an output depends on.

    ``arrays`` are the outputs so far.
    """
    second = None if reference.lacks([]) else reference.second_case()
    extreme = None if reference.lacks([]) else reference.extreme_case()
    if extreme is not None:
        yield *extreme, True
    if second is not None:
        yield *second, True
        for given, expected in reference.further_cases():
            yield given, expected, False
    for given, expected in reference.cases_for(list(arrays), names):
        yield given, expected, True


def _check_sizes(sizes: Mapping[str, Sequence[int]], reference: Reference) -> None:
    """Raises VerificationError TM4001 where the file's inputs have other sizes than the model's."""
    for node in reference.graph.inputs:
        if not isinstance(node, TensorNode) or node.name not in sizes:
            continue
        if tuple(sizes[node.name]) != tuple(node.type.shape):
            raise VerificationError(
                "TM4001",
                f"the input {node.name} has shape {list(sizes[node.name])} in the file, but "
                f"{list(node.type.shape)} in the model",
            )
