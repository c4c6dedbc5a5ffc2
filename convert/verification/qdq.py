"""An ONNX file with QuantizeLinear and DequantizeLinear, beside the model it was made of.

As for integer TFLite files (``integers.py``): the float file agrees with the source, each integer constant is
the one that belongs there, and each tensor is what its operands give, in ONNX Runtime with all that it fuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..errors import VerificationError
from ..ir import InternalGraph, QParams
from ..lower.onnx_integers import activation_grid
from ..lower.qdq import QdqGraph
from ..lower.target_graph import TargetGraph
from ..serialize.onnx_reader import onnx_constants, onnx_results, with_outputs
from .constants import Kept, check_constants, check_grid
from .layerwise import verify_layers
from .observed import Observed
from .onnx_runtime import onnx_runtime
from .report import Verification
from .runtimes import THREADS, refusals
from .truth import Truth


def verify_qdq(
    path: Path, plain: TargetGraph, made: QdqGraph, lowered: InternalGraph, truth: Truth
) -> Verification | None:
    """The comparison of the file at ``path`` with what it was made of; None, with a note, as without.

    Raises VerificationError TM4001 for any of the three steps.
    """
    check_tensors(path, made)
    _check_source(plain, made)
    names = [node.name for expr in lowered.exprs() for node in expr.outputs]
    return verify_layers(path, plain, lowered, truth, lambda given: observed(path, given, names, made.grids))


def observed(
    path: Path, inputs: Mapping[str, np.ndarray], names: Sequence[str], grids: Mapping[str, QParams]
) -> dict[str, Observed]:
    """The tensors of ``names`` that the file has, and the inputs, as they are behind their pair."""
    onnxruntime = onnx_runtime()

    rounded = {f"{name}_dequantized": name for name in inputs}
    content, asked = with_outputs(path, [*names, *rounded])
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, THREADS
    with refusals("ONNX Runtime"):
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        known = {each.name for each in session.get_inputs()}
        arrays = session.run(asked, {name: array for name, array in inputs.items() if name in known})
    found = {}
    for name, array in zip(asked, arrays, strict=True):
        name = rounded.get(name, name)
        found[name] = _observed(np.asarray(array), grids.get(name))
    return found


def _observed(array: np.ndarray, grid: QParams | None) -> Observed:
    if grid is None:
        return Observed(array)
    low, high = ((end - grid.zero_point[0]) * grid.scale[0] for end in (grid.quant_min, grid.quant_max))
    return Observed(array, grid.scale[0], low, high)


def check_tensors(path: Path, made: QdqGraph) -> None:
    """Raises VerificationError TM4001 where a tensor is missing, or has other integers or another grid.

    Layers are found by the names of tensors: none may be gone.
    """
    stored, computed = onnx_constants(path), onnx_results(path)
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
                message = f"the constant {operand.name} of the file is not that of its source"
                raise VerificationError("TM4001", message)


def _check_source(plain: TargetGraph, made: QdqGraph) -> None:
    """Raises VerificationError TM4001 where constants, or grids that it names, are not the source's."""
    kept = []
    for pair, value, grid in made.stored:
        steps, scale, zero = (operand.data for operand in pair.inputs if operand is not None)
        assert steps is not None and scale is not None and zero is not None
        kept.append(Kept(value.name, steps, scale, zero, value, grid))
    check_constants(kept)
    for pair, value in made.rounded:
        assert isinstance(plain.version, int)
        _, scale, zero = (operand.data if operand else None for operand in pair.inputs)
        assert scale is not None and zero is not None
        check_grid(value.name, scale, zero, made.grids[value.name])
        if value.qparams is not None and not value.qparams.inferred:
            grid = activation_grid(value.name, value.qparams, zero.dtype.name, plain.version)
            check_grid(value.name, scale, zero, grid)
