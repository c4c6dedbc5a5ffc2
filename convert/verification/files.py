"""Compares a file written earlier with its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tmconvert.conversion.io_overrides import NO_OVERRIDES, IoOverrides, bind_model
from tmconvert.errors import LoadError, VerificationError
from tmconvert.errors.source import Source
from tmconvert.ir import TensorNode, TracedModule
from tmconvert.ir.unsupported import unsupported_error
from tmconvert.symbolics.op import Op
from tmconvert.targets.caffe.reader import caffe_input_sizes
from tmconvert.targets.options import TITLES
from tmconvert.targets.recognize import written_target
from tmconvert.targets.tflite.reader import tflite_layouts
from tmconvert.verification.compare import Comparison
from tmconvert.verification.judgement import judged
from tmconvert.verification.reference import Reference
from tmconvert.verification.report import PACKAGES, Verification
from tmconvert.verification.runtimes import runtime_for
from tmconvert.verification.vacuous import vacuous_outputs


def verify_file(
    module: TracedModule,
    path: Path,
    inputs: Sequence[np.ndarray] | None,
    catalogue: Mapping[str, Op],
    boundary: IoOverrides = NO_OVERRIDES,
) -> Verification:
    """The comparison of a written file with the reference interpreter; see ``api.verify``."""
    target = written_target(path)
    runtime = runtime_for(target, path)
    if runtime is None:
        raise VerificationError(
            "TM4003",
            f"no runtime for {TITLES[target]} is installed",
            notes=[("help", f"pip install '{PACKAGES[target]}'")],
        )
    normalized = bind_model(module, boundary, catalogue).normalized(catalogue)
    if normalized.unsupported:
        raise unsupported_error(normalized.unsupported, target)
    layouts = tflite_layouts(path) if target == "tflite" else None
    example = module.example if boundary == IoOverrides(rename=boundary.rename) else None
    nhwc_inputs, nhwc_outputs = layouts or ((), ())
    reference = Reference(normalized.graph, catalogue, nhwc_inputs, nhwc_outputs, example)
    lacking = reference.lacks(inputs)
    if lacking:
        raise VerificationError("TM4005", f"there is nothing to compare with: {lacking}")
    names = list(normalized.graph.output_names)
    paths = model_files(path, target)
    if target == "caffe":
        _check_sizes(path, reference)

    def compared(
        given: Sequence[np.ndarray], expected: Sequence[np.ndarray], *, is_second: bool = False
    ) -> list[Comparison]:
        arrays = reference.stored_inputs(given)
        stored = dict(zip([node.name for node in normalized.graph.inputs], arrays, strict=True))
        shapes = [node.type.shape for node in normalized.graph.outputs if isinstance(node, TensorNode)]
        actual = runtime.run(paths, stored, names, shapes=shapes if target == "caffe" else None)
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
    vacuous = vacuous_outputs([expected for _, expected in cases], names)
    return Verification(f"{runtime.name} {runtime.version}", tuple(comparisons), vacuous=vacuous)


def _check_sizes(prototxt: Path, reference: Reference) -> None:
    """Raises VerificationError TM4001 where the net's inputs have other sizes than the model's."""
    sizes = caffe_input_sizes(prototxt)
    for node in reference.graph.inputs:
        if not isinstance(node, TensorNode) or node.name not in sizes:
            continue
        if sizes[node.name] != tuple(node.type.shape):
            raise VerificationError(
                "TM4001",
                f"the input {node.name} is {list(sizes[node.name])} in the file, and "
                f"{list(node.type.shape)} in the model",
            )


def model_files(path: Path, target: str) -> list[Path]:
    """The files that make up the model. Raises LoadError TM1001 when a net has no weights beside it."""
    if target != "caffe":
        return [path]
    weights = path.with_suffix(".caffemodel")
    if not weights.is_file():
        raise LoadError(
            "TM1001",
            f"the net has no weights: {weights} is missing",
            source=Source(str(path)),
            notes=[("help", "put the caffemodel beside the prototxt, under the same name")],
        )
    return [path, weights]
