"""Verifies an integer TFLite file against its source.

- The float32 file of the same conversion agrees with the source.
- Each tensor of the file has the scale that belongs there, by the source and by its operator; each constant
  is the source's, to half a step.
- Each tensor of the file is what its operands give in float, to two steps: one for rounding, one for the ways
  in which kernels round. Where the runtime has QParams of its own in between, half of its step comes on top.

The total error of the integer file is measured and reported: the signal-to-noise ratio of the outputs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.ir import InternalGraph
from tmconvert.lowering.origins import Role
from tmconvert.lowering.target_graph import TargetGraph, Value
from tmconvert.targets.tflite.integer.model import IntegerGraph
from tmconvert.targets.tflite.integer.qparams import activation_qparams, align_qparams
from tmconvert.targets.tflite.reader import tflite_tensors
from tmconvert.targets.tflite.runtime import LiteRtRuntime
from tmconvert.targets.tflite.verify.kernel_rules import TfliteRules
from tmconvert.targets.tflite.verify.qparams_rules import check_rules, zero_points
from tmconvert.verification.constants import Kept, check_constants, check_qparams
from tmconvert.verification.references import References
from tmconvert.verification.tensors import tensors_of
from tmconvert.verification.verify import Verification
from tmconvert.verification.verify_layers import verify_layers


def verify_integers(
    path: Path, plain: TargetGraph, made: IntegerGraph, lowered: InternalGraph, references: References
) -> Verification | None:
    """Compares the file at ``path`` with its source graphs; returns None, with a note, if not verifiable.

    Raises VerificationError TM4001 for any of the three steps.
    """
    check_tensors(path, made)
    _check_source(plain, made)
    check_rules(made.graph)
    return verify_layers(
        path,
        plain,
        lowered,
        references,
        lambda stored: tensors_of(made.graph, LiteRtRuntime().observe(path, stored)),
        TfliteRules(),
    )


def check_tensors(path: Path, made: IntegerGraph) -> None:
    """Raises VerificationError TM4001 where the tensors of the file differ from those of the integer graph.

    Each must exist once, with the same QParams; integer constants must be equal. The results of operators are
    compared layer by layer, by these names.
    """
    tensors = tflite_tensors(path)
    wanted: dict[str, list[Value]] = {}
    for value in _values(made.graph):
        wanted.setdefault(value.name, []).append(value)
    for name, values in wanted.items():
        found = tensors.get(name, [])
        if len(found) != len(values):
            has = "no tensor" if not found else f"{len(found)} tensors"
            raise VerificationError("TM4001", f"the file has {has} {name}, its source {len(values)}")
        for value in values:
            if not any(_is_kept(each, value) for each in found):
                what = "constant" if value.is_constant else "tensor"
                message = (
                    f"the {what} {name} of the file has another type, scale or other values than in its "
                    "source"
                )
                raise VerificationError("TM4001", message)


def _check_source(plain: TargetGraph, made: IntegerGraph) -> None:
    """Raises VerificationError TM4001 where constants or named QParams differ from the source's."""
    kept: list[Kept] = []
    for whole, value, qparams in made.stored:
        assert whole.quantization is not None and whole.data is not None
        quantized = whole.quantization
        kept.append(Kept(whole.name, whole.data, quantized.scale, zero_points(quantized), value, qparams))
    check_constants(kept)
    nodes = {node: value for value in _values(plain) if (node := plain.node_of(value)) is not None}
    for value in _values(made.graph):
        origin = made.graph.origins.get(value)
        if origin is None or origin.role not in (Role.TENSOR, Role.QUANTIZED) or origin.plain is None:
            continue
        source = origin.plain if origin.is_inner else nodes.get(origin.node, origin.plain)
        own = made.all_qparams.get(origin.plain)
        if source.qparams is not None and not source.qparams.inferred:
            own = activation_qparams(source.qparams, made.activations)
        given = value.quantization
        if given is None or own is None or value.dtype.name not in (own.dtype, "uint8"):
            continue
        is_edge = value.dtype == np.uint8  # of the model, in integers of eight bits
        shift, qparams = (128, align_qparams(own, "int8")) if is_edge else (0, own)
        check_qparams(value.name, given.scale, zero_points(given) - shift, qparams)


def _values(graph: TargetGraph) -> list[Value]:
    """Yields all tensors of a graph and its subgraphs."""
    found: dict[tuple[int, int], Value] = {}
    for number, each in enumerate(graph.nested()):
        operators = (value for operator in each.operators for value in [*operator.inputs, *operator.outputs])
        for value in [*each.inputs, *operators, *each.outputs]:
            if value is not None:
                found.setdefault((number, id(value)), value)
    return list(found.values())


def _is_kept(found: Value, value: Value) -> bool:
    """Whether ``found`` has the expected type, scales and integers."""
    expected, given = value.quantization, found.quantization
    is_known = value.data is not None and value.data.size > 0  # nothing is stored of what has no elements
    if found.dtype != value.dtype or (found.data is not None) != is_known:
        return False
    if expected is None or given is None:
        return expected is given
    if given.axis != expected.axis or not np.array_equal(given.scale, expected.scale):
        return False
    if not np.array_equal(zero_points(given), zero_points(expected)):
        return False
    return found.data is None or (value.data is not None and np.array_equal(found.data, value.data))
