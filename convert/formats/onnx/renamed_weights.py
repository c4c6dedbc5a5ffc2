"""Renames the file of weights of a written model."""

from __future__ import annotations

from pathlib import Path

from tmconvert.formats.onnx.external_data import location_of, tensors_of
from tmconvert.formats.onnx.model import read_whole_model


def rename_weights(model: Path) -> bool:
    """Renames ``model.onnx.data`` to ``model.onnx_data``, as transformers.js expects; False without one."""
    weights, name = Path(f"{model}.data"), f"{model.name}_data"
    if not weights.exists():
        return False
    proto = read_whole_model(str(model), keeps_links=True)
    for tensor in tensors_of(proto.graph):
        if location_of(tensor) == weights.name:
            for entry in tensor.external_data:
                entry.value = name if entry.key == "location" else entry.value
    content = proto.SerializeToString(deterministic=True)
    model.write_bytes(content)
    weights.rename(model.with_name(name))
    return True
