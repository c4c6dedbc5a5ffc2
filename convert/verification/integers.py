"""A TFLite file in integers, beside the model it was made of.

- The float32 file of the same conversion agrees with the source.
- Each tensor of the file has the scale that belongs there, each constant is the source's, to half a step; a
  bias at the scale of the products, which runtimes do not check.
- Each tensor of the file is what its operands give in float, to two steps: one for rounding, one for the ways
  in which kernels round. Where the runtime has a grid of its own in between, half of its step comes on top.

What integers cost in all is measured and told: the ratio of signal to noise at the outputs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import VerificationError
from ..ir import InternalGraph
from ..lower.integers.integer_model import IntegerGraph
from ..lower.target_graph import Quantization, TargetGraph, Value
from ..serialize.tflite_reader import tflite_tensors
from .layerwise import verify_layers
from .observed import observed
from .report import Verification
from .truth import Truth


def verify_integers(
    path: Path, plain: TargetGraph, made: IntegerGraph, lowered: InternalGraph, truth: Truth
) -> Verification | None:
    """The comparison of the file at ``path`` with what it was made of; None, with a note, as without.

    Raises VerificationError TM4001 for any of the three steps.
    """
    check_tensors(path, made)
    return verify_layers(path, plain, lowered, truth, lambda stored: observed(path, stored))


def check_tensors(path: Path, made: IntegerGraph) -> None:
    """Raises VerificationError TM4001 where the file has not the tensors that belong to its source.

    Each is there once, on the grid that it has; integer constants are the same, and those of the source. What
    operators do with them is for the layers to show, which are found by these names.
    """
    tensors = tflite_tensors(path)
    wanted: dict[str, list[Value]] = {}
    for value in _values(made.graph):
        wanted.setdefault(value.name, []).append(value)
    near = {id(whole): _is_near(whole, plain) for whole, plain in made.stored}
    for name, values in wanted.items():
        found = tensors.get(name, [])
        if len(found) != len(values):
            has = "no tensor" if not found else f"{len(found)} tensors"
            raise VerificationError("TM4001", f"the file has {has} {name}, its source {len(values)}")
        for value in values:
            if not any(_is_kept(each, value) for each in found):
                what = "constant" if value.is_constant else "tensor"
                message = f"the {what} {name} of the file has not the type, scale or numbers of its source"
                raise VerificationError("TM4001", message)
            if not near.get(id(value), True):
                message = f"the constant {name} of the file is not that of its source, to half a step"
                raise VerificationError("TM4001", message)


def _values(graph: TargetGraph) -> list[Value]:
    """All tensors of a graph and of those inside, once."""
    found: dict[int, Value] = {}
    for each in graph.nested():
        operators = (value for operator in each.operators for value in [*operator.inputs, *operator.outputs])
        for value in [*each.inputs, *operators, *each.outputs]:
            if value is not None:
                found.setdefault(id(value), value)
    return list(found.values())


def _is_kept(found: Value, value: Value) -> bool:
    """Whether ``found`` has the type and the scales that belong to it, and the integers on them."""
    expected, given = value.quantization, found.quantization
    if found.dtype != value.dtype or (found.data is None) != (value.data is None):
        return False
    if expected is None or given is None:
        return expected is given
    if given.axis != expected.axis or not np.array_equal(given.scale, expected.scale):
        return False
    if not np.array_equal(_zero_points(given), _zero_points(expected)):
        return False
    return value.data is None or (found.data is not None and np.array_equal(found.data, value.data))


def _is_near(whole: Value, plain: Value) -> bool:
    """Whether integers stand for these numbers: to half a step, or as the end that they lie beyond.

    Another half step is allowed of a grid that the source has the numbers on.
    """
    assert whole.quantization is not None and whole.data is not None and plain.data is not None
    columns = [1] * whole.data.ndim
    if len(whole.quantization.scale) > 1:
        columns[whole.quantization.axis] = -1
    scale = whole.quantization.scale.astype(np.float64).reshape(columns if whole.data.ndim else ())
    zero = _zero_points(whole.quantization).reshape(scale.shape)
    off = plain.data - (whole.data.astype(np.float64) - zero) * scale
    allowed = 0.5 * scale * (1 + 1e-5) + 1e-6 * np.abs(plain.data)
    if plain.qparams is not None and whole.dtype == np.int8:
        allowed = allowed + max(plain.qparams.scale) / 2
    lowest, highest = np.min(whole.data, initial=0), np.max(whole.data, initial=0)
    beyond = ((off > 0) & (whole.data == highest)) | ((off < 0) & (whole.data == lowest))
    return bool(np.all((np.abs(off) <= allowed) | beyond))


def _zero_points(quantization: Quantization) -> np.ndarray:
    if quantization.zero_point is None:
        return np.zeros(len(quantization.scale), np.int64)
    return quantization.zero_point
