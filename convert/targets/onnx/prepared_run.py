"""A session of ONNX Runtime that is run many times."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tmconvert.targets.onnx.runtime import onnx_runtime
from tmconvert.verification.runtime import refusals

_TYPES = {"float": "float32", "double": "float64"}  # ONNX Runtime's names that are not NumPy's


def prepared_onnx(path: Path, threads: int) -> Callable[[], object]:
    """Returns a function that runs the file on zeros; open sizes are 1."""
    onnxruntime = onnx_runtime()
    with refusals("ONNX Runtime"):
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 3, threads
        session = onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
        given = {}
        for each in session.get_inputs():
            name = each.type.removeprefix("tensor(").removesuffix(")")
            shape = [size if isinstance(size, int) else 1 for size in each.shape]
            given[each.name] = np.zeros(shape, _TYPES.get(name, name))
    return lambda: session.run(None, given)
