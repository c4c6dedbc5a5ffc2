"""Weights that a folder of transformers stores as integers, or in fewer bits than float32.

Transformers gets them in float32, in scratch files where they are large; the parameters know their integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch

from tmconvert.frontends.torch.checkpoint_layouts import Scheme, matrix_of
from tmconvert.frontends.torch.pretrained import PretrainedFolder, unusable
from tmconvert.frontends.torch.tracing.recording.arrays import INTEGERS, array_of
from tmconvert.ir.fake_quant import IntegerMatrix
from tmconvert.output.scratch import scratch_array

_ROWS = 1 << 22  # elements that are computed at a time
_LARGE = 1 << 24  # bytes of a tensor that is widened into a scratch file


def restore_weights(folder: PretrainedFolder, weights: dict[str, torch.Tensor]) -> dict[str, IntegerMatrix]:
    """Replaces the tensors of quantized matrices by matrices in float32, and widens large floats.

    Returns the integers by the names of the matrices. Raises LoadError TM1028.
    """
    found = dict(_matrices(folder, folder.scheme, weights)) if folder.scheme else {}
    for name, matrix in found.items():
        weights[name] = torch.from_numpy(_restored(matrix))
    for name, tensor in weights.items():
        if tensor.dtype in (torch.bfloat16, torch.float16) and 4 * tensor.numel() >= _LARGE:
            wide = torch.from_numpy(scratch_array(tuple(tensor.shape), np.dtype(np.float32)))
            weights[name] = wide.copy_(tensor)
    return found


def mark_parameters(
    model: torch.nn.Module, found: Mapping[str, IntegerMatrix], weights: Mapping[str, torch.Tensor]
) -> list[str]:
    """Lets the parameters of ``model`` know their integers; returns notes."""
    matrices = {weights[name].data_ptr(): matrix for name, matrix in found.items()}
    marked = 0
    for parameter in model.parameters():
        matrix = matrices.get(parameter.data_ptr())
        if matrix is not None and tuple(parameter.shape) == matrix.values.shape:
            setattr(parameter, INTEGERS, matrix)
            marked += 1
    if not found:
        return []
    lost = len(found) - marked
    notes = [f"{lost} of its weights in integers are rearranged, and are floats here"] if lost > 0 else []
    return [
        *notes,
        f"{marked} weights of it are integers, which --integer-weights MatMulNBits keeps in ONNX files",
    ]


def _matrices(
    folder: PretrainedFolder, scheme: Scheme, weights: dict[str, torch.Tensor]
) -> Iterator[tuple[str, IntegerMatrix]]:
    layout = scheme.layout
    ends = tuple(f".{each}" for each in layout.endings)
    prefixes = [
        name.removesuffix(f".{layout.scale}") for name in weights if name.endswith(f".{layout.scale}")
    ]
    for prefix in prefixes:
        names = {end: f"{prefix}.{end}" for end in layout.endings if f"{prefix}.{end}" in weights}
        if layout.weight not in names:
            raise unusable(folder.path, f"{prefix:.80} has {layout.scale}, but no {layout.weight}")
        tensors = {end: _array(weights.pop(name)) for end, name in names.items()}
        if any(each.ndim > 2 for each in tensors.values()):
            raise unusable(folder.path, f"{prefix:.80} has integers of several matrices in one tensor")
        matrix = matrix_of(scheme, tensors)
        if isinstance(matrix, str):
            raise unusable(folder.path, f"the weight of {prefix:.80} cannot be read: {matrix}")
        yield f"{prefix}.weight", matrix
    left = [name for name in weights if name.endswith(ends) and not name.endswith(".weight")]
    if left:
        raise unusable(folder.path, f"it has no scales for {left[0]:.80}")


def _array(tensor: torch.Tensor) -> np.ndarray:
    return array_of(tensor.float() if tensor.is_floating_point() else tensor)


def _restored(matrix: IntegerMatrix) -> np.ndarray:
    """Returns the matrix in float32, computed a few rows at a time."""
    made = scratch_array(matrix.values.shape, np.dtype(np.float32))
    step = max(1, _ROWS // matrix.values.shape[1])
    for start in range(0, len(made), step):
        rows = slice(start, start + step)
        zeros = None if matrix.zero_point is None else matrix.zero_point[rows]
        part = matrix._replace(values=matrix.values[rows], scale=matrix.scale[rows], zero_point=zeros)
        made[rows] = part.restored()
    return made
