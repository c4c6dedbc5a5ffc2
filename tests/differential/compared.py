"""Converts one model of a folder and compares what a runtime computes with what MegEngine computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from tmconvert import to_onnx

# The same formula in another order of operations, after up to a dozen of them.
TOLERANCE = 1e-4


def arrays(path: Path, kind: str) -> list[np.ndarray]:
    """``in0``, ``in1``, ... or ``out0``, ... of the .npz beside a model."""
    with np.load(path.with_suffix(".npz")) as file:
        return [file[f"{kind}{i}"] for i in range(len(file.files)) if f"{kind}{i}" in file.files]


def difference(actual: list[np.ndarray], expected: list[np.ndarray]) -> str | None:
    """What is different, or None: element types, shapes, or values by more than ``TOLERANCE``."""
    types = [[(array.dtype.name, array.shape) for array in each] for each in (actual, expected)]
    if types[0] != types[1]:
        return f"types {types[0]}, MegEngine has {types[1]}"
    for i, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
        ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
        tolerance = 1e-2 if expected[i].dtype == np.float16 else TOLERANCE
        error = float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-3))
        if not error <= tolerance:
            return f"output {i} differs by {error:.1e}"
    return None


def onnx_difference(model: Path, folder: Path, opset: int) -> str | None:
    """How the ONNX file of ``model`` differs from MegEngine. Raises what the conversion raises."""
    written = folder / f"{model.stem}_{opset}.onnx"
    to_onnx(model, written, opset=opset, verify=False)
    session = onnxruntime.InferenceSession(written, providers=["CPUExecutionProvider"])
    feeds = dict(zip((each.name for each in session.get_inputs()), arrays(model, "in"), strict=True))
    return difference(session.run(None, feeds), arrays(model, "out"))
