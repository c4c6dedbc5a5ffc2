"""Verifies an ONNX file with QuantizeLinear/DequantizeLinear against its source.

As for integer TFLite files (``integers.py``): the float file agrees with the source, each integer constant
equals that of the source, and each tensor agrees with the result for its operands.

- The reference result of the file is computed in ONNX Runtime without graph optimizations, where no kernel
  saturates: it is the same on every processor.
- A session with default options, as users run it, returns only the outputs, so that all possible fusions
  apply. Their difference from the reference result is reported, in steps.
- Where that is more than rounding, each quantized tensor must agree as closely in fused kernels, too, unless
  the file has int8 weights whose sums saturate on this processor. Tensors are read as further outputs, which
  changes what ONNX Runtime fuses: this explains a difference, and shows none by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.formats.onnx.model import Initializers, read_model
from tmconvert.formats.onnx.tap import with_outputs
from tmconvert.ir import InternalGraph, Node, QParams
from tmconvert.ir.types import NamedArrays
from tmconvert.lowering.origins import Role
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.output.atomic import temporary_folder, written
from tmconvert.targets.onnx.integer.model import REMEDY, QdqGraph
from tmconvert.targets.onnx.integer.types import activation_qparams
from tmconvert.targets.onnx.verify.sessions import Session, saturates_here
from tmconvert.verification.constants import Kept, check_constants, check_qparams
from tmconvert.verification.integer_rules import IntegerRules
from tmconvert.verification.observed import Observed
from tmconvert.verification.references import References
from tmconvert.verification.tensors import Tensors
from tmconvert.verification.verify import Verification
from tmconvert.verification.verify_layers import STEPS, verify_layers


def verify_qdq(
    path: Path, plain: TargetGraph, made: QdqGraph, lowered: InternalGraph, references: References
) -> Verification | None:
    """Compares the file at ``path`` with its source graphs; returns None, with a note, if not verifiable.

    Raises VerificationError TM4001 for any of the three steps.
    """
    check_tensors(path, made)
    _check_source(plain, made)
    with _opened(path, plain, made) as sessions:
        verified = verify_layers(
            path, plain, lowered, references, sessions.observed, IntegerRules(), sessions.fused
        )
    if verified is None:
        return None
    references.notes.extend(sessions.notes())
    return replace(verified, fused_steps=sessions.steps)


@contextlib.contextmanager
def _opened(path: Path, plain: TargetGraph, made: QdqGraph) -> Iterator[_Sessions]:
    with temporary_folder() as folder:
        sessions = _Sessions(path, folder / "all_outputs.onnx", plain, made)
        try:
            yield sessions
        finally:
            _EXACT.forget()


_EXACT, _FUSED = Session(fuses=False), Session()


class _Sessions:
    """The three sessions that run a file: ``steps`` is the error of users' outputs, by name.

    ``readable`` is the path for a copy of the file that has all tensors as outputs.
    """

    def __init__(self, path: Path, readable: Path, plain: TargetGraph, made: QdqGraph) -> None:
        self.path, self.readable, self.made = path, readable, made
        self.nodes = _nodes(made.graph)
        content, self.requested = with_outputs(path, list(self.nodes))
        with written(readable) as file:
            file.write(content)
        self.outputs = dict(zip(plain.output_names, plain.outputs, strict=True))
        self.meant: list[np.ndarray] = []  # the outputs without graph optimizations
        self.steps: dict[str, float] = {}

    @property
    def saturates(self) -> bool:
        """Whether kernels of this processor may accumulate the file's products incorrectly."""
        return bool(self.made.saturating) and saturates_here()

    def observed(self, inputs: NamedArrays) -> Tensors:
        """Returns the tensors of the file, and the inputs, after their pair."""
        self.meant, arrays = self._run(_EXACT, inputs)
        return self._tensors(arrays)

    def fused(self, inputs: NamedArrays, tensors: Tensors) -> Tensors | None:
        """The same in fused kernels, to explain differing outputs; None if equal, or if sums saturate."""
        worst = 0.0
        made = _FUSED.run([self.path], inputs, list(self.outputs))
        for (name, value), array, meant in zip(self.outputs.items(), made, self.meant, strict=True):
            off = self._steps_off(value.name, np.asarray(array), meant)
            self.steps[name] = max(off, self.steps.get(name, 0.0))
            worst = max(worst, off)
        if worst <= STEPS or self.saturates:
            return None
        return self._tensors(self._run(_FUSED, inputs)[1])

    def notes(self) -> Iterator[str]:
        """Returns notes about the error of outputs in a session with default options."""
        about = "ONNX Runtime's fused kernels"
        if self.saturates:
            about += " saturate on this processor, which has no VNNI"
        for name, steps in self.steps.items():
            if steps:
                remedy = f": {REMEDY}" if self.saturates else ""
                yield f"{about}: {name} is up to {steps:.1f} steps from the exact sums{remedy}"

    def _run(self, session: Session, inputs: NamedArrays) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Returns the outputs of the model, and the requested tensors."""
        names = list(dict.fromkeys([*self.outputs, *self.requested]))
        arrays = dict(zip(names, session.run([self.readable], inputs, names), strict=True))
        return [arrays[name] for name in self.outputs], [arrays[name] for name in self.requested]

    def _tensors(self, arrays: Sequence[np.ndarray]) -> Tensors:
        found = Tensors()
        for name, array in zip(self.requested, arrays, strict=True):
            node, qparams = self.nodes[name]
            found.add(node, Role.TENSOR, _observed(array, qparams))
        return found

    def _steps_off(self, name: str, made: np.ndarray, meant: np.ndarray) -> float:
        """Returns the largest error in steps; for float in 1/255 of the largest element."""
        if made.shape != meant.shape or made.dtype.kind != "f":
            return 0.0 if np.array_equal(made, meant) else float("inf")
        off = np.abs(made.astype(np.float64) - meant)
        largest = float(np.max(np.abs(meant), initial=0, where=np.isfinite(meant))) or 1.0
        qparams = self.made.all_qparams.get(name)
        return float(np.max(off, initial=0, where=np.isfinite(off))) / (
            qparams.scale[0] if qparams else largest / 255
        )


def _nodes(graph: TargetGraph) -> dict[str, tuple[Node, QParams | None]]:
    """Returns the node and the QParams of each tensor, by the tensor's name."""
    found: dict[str, tuple[Node, QParams | None]] = {}
    for value in (value for operator in graph.operators for value in operator.outputs):
        origin = graph.origins.get(value)
        is_node = origin is not None and origin.role in (Role.TENSOR, Role.DEQUANTIZED)
        if origin is not None and is_node and not origin.is_inner:
            found[value.name] = origin.node, origin.qparams
    return found


def _observed(array: np.ndarray, qparams: QParams | None) -> Observed:
    if qparams is None:
        return Observed(array)
    low, high = (
        (end - qparams.zero_point[0]) * qparams.scale[0] for end in (qparams.quant_min, qparams.quant_max)
    )
    return Observed(array, qparams.scale[0], low, high)


def check_tensors(path: Path, made: QdqGraph) -> None:
    """Raises VerificationError TM4001 where a tensor is missing, or has wrong integers or QParams.

    Layers are found by the names of tensors: none may be gone.
    """
    stored = Initializers(str(path))
    computed = {name for node in read_model(str(path)).graph.node for name in node.output}
    for operator in made.graph.operators:
        for value in operator.outputs:
            if value.name not in computed:
                raise VerificationError(
                    "TM4001", f"the file has no tensor {value.name}, which its source has"
                )
        if operator.type not in ("QuantizeLinear", "DequantizeLinear"):
            continue
        for operand in operator.inputs:
            if operand is None or operand.data is None:
                continue
            found = stored.get(operand.name)
            if found is None or found.dtype != operand.dtype or not np.array_equal(found, operand.data):
                message = f"the constant {operand.name} of the file differs from that of its source"
                raise VerificationError("TM4001", message)


def _check_source(plain: TargetGraph, made: QdqGraph) -> None:
    """Raises VerificationError TM4001 where constants or named QParams differ from the source's."""
    kept = []
    for pair, value, qparams in made.stored:
        steps, scale, zero = (operand.data for operand in pair.inputs if operand is not None)
        assert steps is not None and scale is not None and zero is not None
        kept.append(Kept(value.name, steps, scale, zero, value, qparams))
    check_constants(kept)
    for pair, value in made.rounded:
        assert isinstance(plain.version, int)
        _, scale, zero = (operand.data if operand else None for operand in pair.inputs)
        assert scale is not None and zero is not None
        check_qparams(value.name, scale, zero, made.all_qparams[value.name])
        if value.qparams is not None and not value.qparams.inferred:
            qparams = activation_qparams(value.name, value.qparams, zero.dtype.name, plain.version)
            check_qparams(value.name, scale, zero, qparams)
