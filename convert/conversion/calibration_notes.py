"""Notes on a calibration: how many samples were read, how images were changed, and doubtful ranges."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tmconvert.calibration.data import ARRAYS
from tmconvert.calibration.images import IMAGES
from tmconvert.calibration.settings import CalibrationRequest
from tmconvert.conversion.format_numbers import counted
from tmconvert.ir import Node, TensorNode, TracedModule

if TYPE_CHECKING:
    from tmconvert.verification.verify import Verification

COARSE = 20.0  # dB: an error of a tenth
DOUBTFUL = 8  # times larger or smaller than the recorded example
_RESIZED = {"stretch": "stretched to", "crop": "scaled and cropped to", "pad": "scaled and padded to"}
_COLOURS = {1: "grey", 3: "RGB", 4: "RGBA"}


def calibration_notes(request: CalibrationRequest, source: TracedModule, made: TracedModule) -> list[str]:
    """Returns notes on the data of a calibration of ``source`` to ``made``."""
    nodes = [node for node in _inputs(made) if isinstance(node, TensorNode)]
    return [*_counts(request, nodes), *_ranges(source, nodes)]


def coarse_notes(verification: Verification | None) -> Iterator[str]:
    """Yields a warning for an integer file whose outputs are far from those of the float model."""
    ratio = None if verification is None else verification.decibels
    if ratio is not None and ratio < COARSE:
        yield (
            f"warning: integers are too coarse for some layers, since an output has only {ratio:.1f} dB of "
            "signal to noise: --min-sqnr 30 (min_sqnr=30) finds them, and converts them in int16 or float"
        )


def _inputs(module: TracedModule) -> list[Node]:
    return [] if module.graph is None else module.graph.inputs[1:]


def _counts(request: CalibrationRequest, nodes: list[TensorNode]) -> Iterator[str]:
    if not isinstance(request.data, (str, PathLike)):
        return
    path = Path(request.data)
    if not path.is_dir():
        yield f"calibrated on {path}"
        return
    files = [each.suffix.lower() for each in path.rglob("*")]
    images, arrays = sum(each in IMAGES for each in files), sum(each in ARRAYS for each in files)
    parts = [counted(images, "image")] if images else []
    parts += [counted(arrays, "array file")] if arrays else []
    changed = _image_text(request, nodes) if images else ""
    yield f"calibrated on {' and '.join(parts)} of {path}{changed}"


def _image_text(request: CalibrationRequest, nodes: list[TensorNode]) -> str:
    """Returns how images were read: size, colours, and scale of pixels."""
    shape = [] if not nodes or nodes[0].shape is None else [int(size) for size in nodes[0].shape]
    if len(shape) != 4:
        return ""
    settings = request.settings
    is_last = settings.layout == "nhwc"
    height, width = shape[1:3] if is_last else shape[2:4]
    colours = _COLOURS.get(shape[3 if is_last else 1], "")
    scaled = "(pixel / 255 - mean) / std" if settings.scales else "pixels from 0 to 255"
    return f": {colours}, {_RESIZED[settings.resize]} {height}x{width}, {scaled}"


def _ranges(source: TracedModule, nodes: list[TensorNode]) -> Iterator[str]:
    """Yields a warning for inputs whose range in the data is not that of the recorded example."""
    example = source.example
    if example is None or len(example.inputs) != len(nodes):
        return
    for node, array in zip(nodes, example.inputs, strict=True):
        qparams = node.qparams
        if qparams is None or len(qparams.scale) != 1 or array.dtype.kind != "f" or not array.size:
            continue
        ends = (qparams.quant_min, qparams.quant_max)
        low, high = ((end - qparams.zero_point[0]) * qparams.scale[0] for end in ends)
        found, known = max(abs(low), abs(high)), float(np.max(np.abs(array)))
        if known and np.isfinite(known) and not known / DOUBTFUL < found < known * DOUBTFUL:
            example_low, example_high = float(array.min()), float(array.max())
            yield (
                f"warning: {node.name} is between {low:.4g} and {high:.4g} in the calibration data, but "
                f"between {example_low:.4g} and {example_high:.4g} in the example that the model records: "
                "images may need --mean and --std"
            )
