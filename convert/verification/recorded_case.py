"""The inputs of a written file as it takes them, and the outputs that are expected for these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tmconvert.ir.fake_quant import quantize
from tmconvert.ir.types import Paths, QParams
from tmconvert.targets.registry import runtime_for, target_named

if TYPE_CHECKING:
    from tmconvert.lowering.target_graph import TargetGraph
    from tmconvert.verification.references import References

Arrays = dict[str, np.ndarray]


def stored_inputs(paths: Paths, graph: TargetGraph, references: References) -> Arrays:
    """Returns the inputs of the first case by name, in the layout and the type of the file."""
    reference = references.references[0]
    given, _ = reference.case(references.inputs)
    inputs = dict(zip(graph.input_names, reference.stored_inputs(given), strict=True))
    for each in target_named(graph.target).written_model(paths[0]).input_tensors:
        if len(each.scale) == 1 and each.dtype and inputs[each.name].dtype.kind == "f":
            ends = np.iinfo(each.dtype)
            qparams = QParams(each.dtype, each.scale, each.zero_point, int(ends.min), int(ends.max))
            inputs[each.name] = quantize(inputs[each.name], qparams).astype(each.dtype)
        elif each.dtype == "int32":  # of an input in int64, whose range the verification checks
            inputs[each.name] = inputs[each.name].astype(np.int32)
    return inputs


def recorded_case(
    paths: Paths, graph: TargetGraph, references: References, *, is_integer: bool
) -> tuple[Arrays, Arrays]:
    """Returns inputs and the outputs that the source computes for them.

    Those of a file in integers, which is compared with its source layer by layer, are its own.
    """
    inputs, reference = stored_inputs(paths, graph, references), references.references[0]
    if is_integer:
        runtime = runtime_for(graph.target, paths[0])
        assert runtime is not None  # the files were verified in it
        outputs = runtime.run(paths, inputs, graph.output_names)
    else:
        outputs = reference.stored_outputs(reference.case(references.inputs)[1])
    return inputs, dict(zip(graph.output_names, outputs, strict=True))
