"""Outputs of models that are run once: of text, images and sound, in a consumer and in PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.packaging.kind import Converted, Parts
from tmconvert.packaging.trial import Trial, Wrong, packed, unpacked

if TYPE_CHECKING:
    from tmconvert.conversion.report import Report
    from tmconvert.ir import TracedModule

EXACT, ROUNDED = 1e-3, 5e-2  # the largest difference by the largest value
Arrays = Mapping[str, np.ndarray]


def trial(made: Converted) -> Trial:
    """Runs each part on the inputs of its trace. Files in float32 must give what PyTorch computed; those that
    round weights or floats, what ONNX Runtime computes with them. So must those in which rounding decides,
    such as the order of equal scores, which the comparison of the file with PyTorch took account of.
    """
    reports = next(made.by_dtype()).files
    runs = {name: _example(module, reports[name][1]) for name, module in made.modules.items()}

    def judge(parts: Parts, answer: Mapping[str, Any]) -> str:
        settings = made.modules[next(iter(runs))].metadata
        for name, value in answer.get("settings", {}).items():
            if value != settings[name]:
                raise Wrong(f"it reads the {name} {value:.80}, not {settings[name]:.80}")
        found = {
            name: {key: unpacked(each) for key, each in answer["outputs"][name].items()} for name in runs
        }
        errors = [_compared(made, parts, name, found[name], *run) for name, run in runs.items()]
        return f"PyTorch's outputs to {max(errors):.1e}"

    question = {
        name: {"inputs": {key: packed(array) for key, array in feeds.items()}, "outputs": list(wanted)}
        for name, (feeds, wanted) in runs.items()
    }
    return Trial({"parts": question}, judge)


def _example(module: TracedModule, report: Report) -> tuple[Arrays, Arrays]:
    """Returns the inputs of a trace and what PyTorch computed, by the names in the file."""
    example = module.example
    assert example is not None
    inputs, outputs = ([each["name"] for each in side] for side in (report.inputs, report.outputs))
    wanted = dict(zip(outputs, example.outputs or (), strict=False))
    return dict(zip(inputs, example.inputs, strict=True)), wanted


def _compared(
    made: Converted, parts: Parts, name: str, found: Arrays, feeds: Arrays, wanted: Arrays
) -> float:
    """Returns the difference of the outputs of a part from PyTorch's. Raises Wrong."""
    path, report = parts.files[name][0].path, parts.files[name][1]
    missing = [key for key in wanted if key not in found]
    if missing or not found:
        raise Wrong(f"it does not return {', '.join(missing) or 'outputs'} of {path}")
    found = {key: found[key] for key in wanted}
    error = difference_of_arrays(found, wanted)
    if parts.is_exact and (error <= EXACT or not report.verified):
        refuse_difference(parts, "PyTorch", error)
    else:
        reference = _in_onnx_runtime(str(made.folder / path), list(wanted), feeds)
        refuse_difference(parts, "ONNX Runtime", difference_of_arrays(found, reference))
    return error


def refuse_difference(parts: Parts, reference: str, error: float) -> None:
    """Raises Wrong for a difference that rounding does not explain, or NaN."""
    if not error <= (EXACT if parts.is_exact else ROUNDED):
        raise Wrong(f"it differs from {reference} by {error:.1e} of the largest value")


def difference_of_arrays(found: Arrays, wanted: Arrays) -> float:
    """Returns the largest difference by the largest value, over all arrays; infinity for other shapes."""
    errors = [np.inf] if not found else []
    for name, array in found.items():
        other = wanted[name].astype(np.float64)
        if array.shape != other.shape:
            return np.inf
        errors.append(np.abs(array - other).max(initial=0.0) / max(np.abs(other).max(initial=0.0), 1e-30))
    return float(max(errors))


def _in_onnx_runtime(path: str, names: list[str], feeds: Arrays) -> dict[str, np.ndarray]:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))
