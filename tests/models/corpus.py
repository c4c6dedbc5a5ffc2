"""Real TracedModules with the inputs and outputs that MegEngine computed for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import tmconvert
from tmconvert.conversion.report import Report
from tmconvert.formats.tflite.metadata import tflite_layouts
from tmconvert.symbolics.layouts import NCHW_TO_NHWC, NHWC_TO_NCHW
from tmconvert.targets.registry import runtime_for

DATA = Path(__file__).parents[1] / "data"
SUFFIXES = {"onnx": ".onnx", "tflite": ".tflite", "caffe": ".prototxt"}


def model(name: str) -> Path:
    return DATA / f"{name}.tm"


def golden(name: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(inputs, outputs), in order."""
    with np.load(DATA / f"{name}.npz") as arrays:
        inputs, outputs = (
            [arrays[f"{kind}{i}"] for i in range(sum(key.startswith(kind) for key in arrays.files))]
            for kind in ("in", "out")
        )
    return inputs, outputs


# models that return dicts: the keys name the outputs
BY_KEYS = {
    "op_multi_io": ["feat", "lst_0", "lst_1", "pool_avg", "pool_max"],
    "surgery_reset_outputs": ["high", "low"],
}


def names(name: str) -> tuple[list[str], list[str]]:
    """Names of inputs and outputs, by the source's keys or else as MegEngine's own listing has them."""
    description = json.loads((DATA / f"{name}.json").read_text())
    inputs, outputs = ([entry["node"] for entry in description[kind]] for kind in ("inputs", "outputs"))
    return inputs, BY_KEYS.get(name, outputs)


def converted(name: str, target: str, folder: Path, **options: object) -> tuple[Report, list[Path]]:
    """Converts a model of the corpus; the files, the one with the structure first."""
    path = folder / f"{name}{SUFFIXES[target]}"
    convert = getattr(tmconvert, f"to_{target}")
    report = convert(model(name), path, **options)
    return report, list(report.paths)


def run(target: str, paths: Sequence[Path], name: str) -> list[np.ndarray]:
    """Outputs of a written file for the golden inputs, in the order of the source."""
    inputs, outputs = golden(name)
    input_names, output_names = names(name)
    layouts = tflite_layouts(paths[0]) if target == "tflite" else None
    nhwc_inputs, nhwc_outputs = layouts or ([False] * len(inputs), [False] * len(outputs))
    fed = {
        key: array.transpose(NCHW_TO_NHWC) if nhwc else array
        for key, array, nhwc in zip(input_names, inputs, nhwc_inputs, strict=True)
    }
    runtime = runtime_for(target, paths[0])
    assert runtime is not None, f"the runtime of {target} is not installed"
    shapes = [output.shape for output in outputs] if target == "caffe" else None
    made = runtime.run(paths, fed, output_names, shapes=shapes)
    return [
        array.transpose(NHWC_TO_NCHW) if nhwc else array
        for array, nhwc in zip(made, nhwc_outputs, strict=True)
    ]


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    """max|a - b| / max|b|."""
    assert actual.shape == expected.shape
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    return float(np.abs(actual - expected).max(initial=0) / max(np.abs(expected).max(initial=0), 1e-30))
