"""A session of ONNX Runtime that is run many times."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from tmconvert.targets.onnx.runtime import onnx_runtime
from tmconvert.verification.runtime import refusals


def prepared_onnx(path: Path, threads: int, inputs: Mapping[str, np.ndarray]) -> Callable[[], object]:
    """Returns a function that runs the file on these inputs."""
    onnxruntime = onnx_runtime()
    with refusals("ONNX Runtime"):
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 3, threads
        session = onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, dict(inputs))
