"""A TFLite file in integers, beside the model it was made of.

- The float32 file of the same conversion agrees with the source.
- Each tensor of the file has the scale that belongs there, each constant is the source's, to half a step; a
  bias at the scale of the products, which runtimes do not check.
- Each tensor of the file is what its operands give in float, to two steps: one for rounding, one for the ways
  in which kernels round. Where the runtime has a grid of its own in between, half of its step comes on top.

What integers cost in all is measured and told: the ratio of signal to noise at the outputs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..errors import VerificationError
from ..ir import InternalGraph, TensorNode
from ..lower.integers.integer_model import IntegerGraph
from ..lower.target_graph import Quantization, TargetGraph, Value
from ..serialize.tflite_reader import tflite_tensors
from ..serialize.writers import write
from ..symbolics.op import Op
from .compare import Comparison, example_inputs
from .layers import Layer, layers
from .noise import Noise
from .observed import Observed, observed
from .reference import Reference
from .report import Verification, verify_written
from .runtimes import runtime_for

_STEPS = 2.0
_FLOAT = 1e-4  # of the largest element, where a layer is in float


def verify_integers(
    path: Path,
    plain: TargetGraph,
    made: IntegerGraph,
    lowered: InternalGraph,
    references: Sequence[Reference],
    inputs: Sequence[np.ndarray] | None,
    notes: list[str],
) -> Verification | None:
    """The comparison of the file at ``path`` with what it was made of; None, with a note, as without.

    Raises VerificationError TM4001 for any of the three steps.
    """
    check_tensors(path, made)
    with tempfile.TemporaryDirectory() as folder:
        float_path = Path(folder, "float.tflite")
        with float_path.open("wb") as file:
            write(plain, [file])
        verified = verify_written("tflite", [float_path], plain, references, inputs, notes)
    if verified is None or runtime_for("tflite", path) is None:
        return None
    given = inputs_for(references[0], lowered, inputs)
    stored = dict(zip(plain.input_names, references[0].stored_inputs(given), strict=True))
    found, noise = check_layers(
        lowered, references[0].catalogue, observed(path, stored), given, plain, notes, target="tflite"
    )
    return Verification(verified.runtime, tuple(found), tuple(noise))


def inputs_for(
    reference: Reference, lowered: InternalGraph, inputs: Sequence[np.ndarray] | None
) -> list[np.ndarray]:
    """Those given, or of the source's example; else random ones over the ranges that the model has."""
    if inputs is None and reference.example is None:
        return _within_range(lowered)
    return list(reference.case(inputs)[0])


def check_layers(
    lowered: InternalGraph,
    catalogue: Mapping[str, Op],
    tensors: Mapping[str, Observed],
    given: list[np.ndarray],
    plain: TargetGraph,
    notes: list[str],
    *,
    target: str,
) -> tuple[list[Comparison], list[Noise]]:
    """Comparison and noise of each layer of the file. Raises VerificationError TM4001 for one that is off."""
    found: list[Comparison] = []
    noise: list[Noise] = []
    names = {value.name: name for value, name in zip(plain.outputs, plain.output_names, strict=True)}
    for layer in layers(lowered, catalogue, tensors, given, target):
        comparison = compared(layer, names.get(layer.name, layer.name))
        if not comparison.ok:
            about = f"{layer.name} is not what {layer.function} gives for its operands in the file"
            raise VerificationError("TM4001", f"{about}: {_distance(layer)}")
        found.append(comparison)
        noise.append(layer.noise)
        if layer.name in names:
            ratio = layer.noise.whole
            notes.append(f"signal to noise at {names[layer.name]}: {ratio:.1f} dB, against the float model")
    return found, noise


def _within_range(graph: InternalGraph) -> list[np.ndarray]:
    """Random inputs, uniform over the range of the integers where an input has one."""
    types = [node.type for node in graph.inputs if isinstance(node, TensorNode)]
    arrays, random = example_inputs(types), np.random.default_rng(0)
    for number, node in enumerate(graph.inputs):
        qparams = node.qparams if isinstance(node, TensorNode) else None
        if qparams is not None and len(qparams.scale) == 1:
            zero, scale = qparams.zero_point[0], qparams.scale[0]
            low, high = ((end - zero) * scale for end in (qparams.quant_min, qparams.quant_max))
            arrays[number] = random.uniform(low, high, types[number].shape).astype(types[number].dtype)
    return arrays


def compared(layer: Layer, name: str) -> Comparison:
    """A layer as a share of the range of its integers; of its largest element in float."""
    shapes = (layer.actual.shape, layer.local.shape)
    if layer.actual.shape != layer.local.shape:
        return Comparison(name, float("inf"), 0.0, *shapes)
    off = float(np.max(layer.steps_off(), initial=0))
    if not layer.step:
        largest = float(np.max(np.abs(layer.local), initial=0)) or 1.0
        return Comparison(name, off / largest, _FLOAT, *shapes)
    allowed = _STEPS + layer.slack / layer.step
    return Comparison(name, off / 255, allowed / 255, *shapes)


def _distance(layer: Layer) -> str:
    if layer.actual.shape != layer.local.shape:
        return f"its shape is {list(layer.actual.shape)}, not {list(layer.local.shape)}"
    off = float(np.max(layer.steps_off(), initial=0))
    return f"an element is {off:.1f} steps off" if layer.step else f"an element is {off:.1e} off"


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
