"""Compares a file written earlier with its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..boundary import AS_IT_IS, Boundary, open_boundary
from ..errors import LoadError, VerificationError
from ..ir import TensorNode, TracedModule
from ..lower.unsupported import unsupported_error
from ..serialize.recognise import written_target
from ..serialize.tflite_reader import tflite_layouts
from ..source import Source
from ..symbolics.op import Op
from ..targets import TITLES
from .compare import check
from .reference import Reference
from .report import PACKAGES, Verification
from .runtimes import runtime_for


def verify_file(
    module: TracedModule,
    path: Path,
    inputs: Sequence[np.ndarray] | None,
    catalogue: Mapping[str, Op],
    boundary: Boundary = AS_IT_IS,
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
    normalized = open_boundary(module, boundary, catalogue).normalized(catalogue)
    if normalized.unsupported:
        raise unsupported_error(normalized.unsupported, target)
    layouts = tflite_layouts(path) if target == "tflite" else None
    example = module.example if boundary == AS_IT_IS else None
    nhwc_inputs, nhwc_outputs = layouts or ((), ())
    reference = Reference(normalized.graph, catalogue, nhwc_inputs, nhwc_outputs, example)
    lacking = reference.lacks(inputs)
    if lacking:
        raise VerificationError("TM4005", f"there is nothing to compare with: {lacking}")
    given, expected = reference.case(inputs)
    names = list(normalized.graph.output_names)
    stored = dict(
        zip([node.name for node in normalized.graph.inputs], reference.stored_inputs(given), strict=True)
    )
    paths = model_files(path, target)
    shapes = [node.type.shape for node in normalized.graph.outputs if isinstance(node, TensorNode)]
    actual = runtime.run(paths, stored, names, shapes=shapes if target == "caffe" else None)
    comparisons = check(reference.source_outputs(actual), expected, names)
    return Verification(f"{runtime.name} {runtime.version}", tuple(comparisons))


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
