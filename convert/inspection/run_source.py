"""Runs a source model by the reference kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tmconvert.calibration.settings import Settings
from tmconvert.inspection.given_inputs import Inputs, given_inputs
from tmconvert.ir import Input, TensorNode, TracedModule
from tmconvert.targets.written_model import TensorInfo
from tmconvert.transform.run_model import run_model


def run_source(
    module: TracedModule, inputs: Inputs | None, watch: Sequence[str], settings: Settings
) -> dict[str, np.ndarray]:
    """Returns the outputs and the watched tensors by name. Raises UsageError."""
    return run_model(module, given_inputs(inputs, inputs_of(module), settings), watch)


def inputs_of(module: TracedModule) -> list[TensorInfo]:
    """Describes the inputs of a model by its own graph, as it is before passes."""
    if module.graph is None:
        return []
    channels_last = module.vocabulary is not None and module.vocabulary.is_channels_last
    return [
        TensorInfo(
            node.expr.name if isinstance(node.expr, Input) else node.name,
            "" if node.dtype is None else node.dtype.name,
            None if node.shape is None else tuple(int(size) for size in node.shape),
            "NHWC" if channels_last else "NCHW",
        )
        for node in module.graph.inputs[1:]
        if isinstance(node, TensorNode)
    ]
