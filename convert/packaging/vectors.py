"""Outputs of models that are run once: encoders of text, images and sound, in a consumer and in PyTorch."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.kind import Converted, ModelFile
from tmconvert.packaging.report import Check

EXACT, ROUNDED = 1e-3, 5e-2  # the largest difference by the largest value


def check_vectors(consumer: Consumer, made: Converted, dtypes: tuple[str, ...] = ()) -> list[Check]:
    """Runs each model file in the consumer on the inputs of the trace, and compares the outputs.

    A file in float32 must give those that PyTorch computed; one that rounds weights or floats, those of ONNX
    Runtime. ``dtypes`` are those of the files, for consumers that choose by them. Raises VerificationError
    TM4008.
    """
    checks: list[Check] = []
    example = made.module.example
    assert example is not None
    for number, (file, report) in enumerate(made.files):
        names = [each["name"] for each in report.outputs]
        feeds = {each["name"]: array for each, array in zip(report.inputs, example.inputs, strict=True)}
        wanted = dict(zip(names, example.outputs or (), strict=False))
        question = {
            "task": "vectors",
            "inputs": {name: _packed(array) for name, array in feeds.items()},
            "dtype": dtypes[number] if dtypes else "",
            "text": "",
        }
        answer = consumer.ask(question, made.folder, made.source.folder)
        if isinstance(answer, str):
            return [*checks, Check(consumer.name, file.path, "", answer)]
        found = {name: unpacked(each) for name, each in answer["outputs"].items() if name in wanted}
        missing = [name for name in wanted if name not in found]
        if missing or not found:
            raise consumer.refuses(f"it does not return {', '.join(missing) or 'outputs'} of {file.path}")
        error = difference_of_arrays(found, wanted)
        if file.is_exact:
            refuse_difference(consumer, file, "PyTorch", error)
        else:
            reference = _in_onnx_runtime(str(made.folder / file.path), names, feeds)
            refuse_difference(consumer, file, "ONNX Runtime", difference_of_arrays(found, reference))
        checks.append(
            Check(f"{consumer.name} {answer['version']}", file.path, f"PyTorch's outputs to {error:.1e}")
        )
    return checks


def refuse_difference(consumer: Consumer, file: ModelFile, reference: str, error: float) -> None:
    """Raises VerificationError TM4008 for a difference that rounding does not explain, or NaN."""
    if not error <= (EXACT if file.is_exact else ROUNDED):
        raise consumer.refuses(f"{file.path} differs from {reference} by {error:.1e} of the largest value")


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


def _packed(array: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": data}


def unpacked(given: Mapping[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(given["data"]), np.float32).reshape(given["shape"])
