"""Verifies an existing file against its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tmconvert.conversion.io_overrides import NO_OVERRIDES, IoOverrides, bind_model
from tmconvert.errors import VerificationError
from tmconvert.ir import TensorNode, TracedModule
from tmconvert.ir.unsupported import unsupported_error
from tmconvert.symbolics.op import Op
from tmconvert.targets.recognize import target_of_file
from tmconvert.verification.compare import Comparison
from tmconvert.verification.judgement import judged
from tmconvert.verification.reference import Reference
from tmconvert.verification.report import Verification
from tmconvert.verification.vacuous import independent_outputs, vacuous_outputs


def verify_file(
    module: TracedModule,
    path: Path,
    inputs: Sequence[np.ndarray] | None,
    catalogue: Mapping[str, Op],
    overrides: IoOverrides = NO_OVERRIDES,
) -> Verification:
    """Compares a written file with the reference interpreter; see ``api.verify``."""
    target = target_of_file(path)
    runtime = target.runtime(path)
    if runtime is None:
        raise VerificationError(
            "TM4003",
            f"no runtime for {target.title} is installed",
            notes=[("help", f"pip install '{target.runtime_package}'")],
        )
    normalized = bind_model(module, overrides, catalogue).normalized(catalogue)
    if normalized.unsupported:
        raise unsupported_error(normalized.unsupported, target.name)
    layouts = target.stored_layouts(path)
    example = module.example if overrides == IoOverrides(rename=overrides.rename) else None
    nhwc_inputs, nhwc_outputs = layouts or ((), ())
    reference = Reference(normalized.graph, catalogue, nhwc_inputs, nhwc_outputs, example)
    lacking = reference.lacks(inputs)
    if lacking:
        raise VerificationError("TM4005", f"there is no reference to compare with: {lacking}")
    names = list(normalized.graph.output_names)
    paths = target.model_files(path)
    _check_sizes(target.stored_input_shapes(path), reference)

    def compared(
        given: Sequence[np.ndarray], expected: Sequence[np.ndarray], *, is_second: bool = False
    ) -> list[Comparison]:
        arrays = reference.stored_inputs(given)
        stored = dict(zip([node.name for node in normalized.graph.inputs], arrays, strict=True))
        shapes = [node.type.shape for node in normalized.graph.outputs if isinstance(node, TensorNode)]
        actual = runtime.run(paths, stored, names, shapes=shapes if target.drops_low_ranks else None)
        return judged(
            reference, given, reference.source_outputs(actual), expected, names, is_second=is_second
        )

    cases = [reference.case(inputs)]
    comparisons = compared(*cases[0])
    second = reference.second_case() if inputs is None and not reference.lacks([]) else None
    if second is not None:
        cases.append(second)
        compared(*second, is_second=True)
        for case in reference.further_cases():
            compared(*case, is_second=True)
    if inputs is None:
        for case in reference.cases_for([expected for _, expected in cases], names):
            cases.append(case)
            compared(*case, is_second=True)
    arrays = [expected for _, expected in cases]
    return Verification(
        f"{runtime.name} {runtime.version}",
        tuple(comparisons),
        vacuous=vacuous_outputs(arrays, names),
        independent=tuple(independent_outputs([reference.graph], arrays, names)),
    )


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
