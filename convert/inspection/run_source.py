"""Runs a source model by the reference kernels, also on an image."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from tmconvert.calibration.images import IMAGES
from tmconvert.calibration.settings import Settings
from tmconvert.inspection.run_file import Inputs, image_array
from tmconvert.ir import TensorNode, TracedModule
from tmconvert.targets.written_model import TensorInfo
from tmconvert.transform.run_model import run_model


def run_source(
    module: TracedModule, inputs: Inputs, watch: Sequence[str], settings: Settings
) -> dict[str, np.ndarray]:
    """Returns the outputs and the watched tensors by name. Raises UsageError."""
    is_image = isinstance(inputs, (str, PathLike)) and Path(inputs).suffix.lower() in IMAGES
    if not is_image or module.graph is None:
        return run_model(module, inputs, watch)
    channels_last = module.vocabulary is not None and module.vocabulary.is_channels_last
    infos = [
        TensorInfo(
            node.name,
            "" if node.dtype is None else node.dtype.name,
            None if node.shape is None else tuple(int(size) for size in node.shape),
            "NHWC" if channels_last else "NCHW",
        )
        for node in module.graph.inputs[1:]
        if isinstance(node, TensorNode)
    ]
    return run_model(module, [image_array(Path(str(inputs)), infos, settings)], watch)
