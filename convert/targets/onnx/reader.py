"""Reads metadata, constants and results of an ONNX file for verification."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx


def onnx_options(path: Path) -> Mapping[str, Any]:
    """Returns the options of the conversion that wrote the file, from its metadata; empty where it has none.

    The file is read without its external data.
    """
    try:
        model = onnx.load(path, load_external_data=False)
        entries = {entry.key: entry.value for entry in model.metadata_props}
        found = json.loads(entries.get("tmconvert.options", "{}"))
    except Exception:  # protobuf's own errors; the runtime says what is wrong with the file
        return {}
    return found if isinstance(found, dict) else {}


def onnx_constants(path: Path) -> dict[str, np.ndarray]:
    """The initializers by name."""
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}


def onnx_results(path: Path) -> set[str]:
    """Returns the names of computed values, without those of subgraphs."""
    nodes = onnx.load(path, load_external_data=False).graph.node
    return {name for node in nodes for name in node.output}


def with_outputs(path: Path, names: Sequence[str]) -> tuple[bytes, list[str]]:
    """Returns the model with those of ``names`` that it computes as outputs, and these names."""
    model = onnx.load(path)
    made = {name for node in model.graph.node for name in node.output}
    present = {output.name for output in model.graph.output}
    found = [name for name in dict.fromkeys(names) if name in made]
    model.graph.output.extend(
        onnx.helper.make_empty_tensor_value_info(name) for name in found if name not in present
    )
    return model.SerializeToString(), found
