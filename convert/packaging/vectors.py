"""Outputs of models that are run once: encoders of text, images and sound, in a consumer and in PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.packaging.kind import Converted, Parts
from tmconvert.packaging.trial import Trial, Wrong, packed, unpacked

EXACT, ROUNDED = 1e-3, 5e-2  # the largest difference by the largest value


def trial(made: Converted) -> Trial:
    """Runs the model on the inputs of the trace. Files in float32 must give what PyTorch computed; one that
    rounds weights or floats, what ONNX Runtime computes with the file.
    """
    example = made.modules[""].example
    assert example is not None
    report = made.files[0][1]
    names = [each["name"] for each in report.outputs]
    feeds = {each["name"]: array for each, array in zip(report.inputs, example.inputs, strict=True)}
    wanted = dict(zip(names, example.outputs or (), strict=False))

    def judge(parts: Parts, answer: Mapping[str, Any]) -> str:
        found = {name: unpacked(each) for name, each in answer["outputs"].items() if name in wanted}
        missing = [name for name in wanted if name not in found]
        if missing or not found:
            raise Wrong(f"it does not return {', '.join(missing) or 'outputs'}")
        error = difference_of_arrays(found, wanted)
        if parts.is_exact:
            refuse_difference(parts, "PyTorch", error)
        else:
            reference = _in_onnx_runtime(str(made.folder / parts.name), names, feeds)
            refuse_difference(parts, "ONNX Runtime", difference_of_arrays(found, reference))
        return f"PyTorch's outputs to {error:.1e}"

    return Trial({"inputs": {name: packed(array) for name, array in feeds.items()}}, judge)


def refuse_difference(parts: Parts, reference: str, error: float) -> None:
    """Raises Wrong for a difference that rounding does not explain, or NaN."""
    if not error <= (EXACT if parts.is_exact else ROUNDED):
        raise Wrong(f"it differs from {reference} by {error:.1e} of the largest value")


def difference_of_arrays(found: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> float:
    """Returns the largest difference by the largest value, over all arrays; infinity for other shapes."""
    errors = [np.inf] if not found else []
    for name, array in found.items():
        other = wanted[name].astype(np.float64)
        if array.shape != other.shape:
            return np.inf
        errors.append(np.abs(array - other).max(initial=0.0) / max(np.abs(other).max(initial=0.0), 1e-30))
    return float(max(errors))


def _in_onnx_runtime(path: str, names: list[str], feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))
