"""Sessions of ONNX Runtime for the verification of quantized files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from tmconvert.targets.onnx.runtime import onnx_runtime
from tmconvert.targets.onnx.saturation_probe import byte_products
from tmconvert.verification.runtime import THREADS, refusals


class Session:
    """A session for a file or its bytes, on the CPU.

    As users run it, with default options, it fuses operators to integer kernels, some of which saturate on
    some processors. With ``fuses`` off each operator is computed by itself, in float between the roundings.
    """

    def __init__(self, model: Path | bytes, *, fuses: bool = True) -> None:
        onnxruntime = onnx_runtime()
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 3, THREADS
        if not fuses:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        content = model if isinstance(model, bytes) else os.fspath(model)
        with refusals("ONNX Runtime"):
            self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def run(self, names: Sequence[str], inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The arrays of ``names``. Raises VerificationError TM4002."""
        with refusals("ONNX Runtime"):
            known = {each.name for each in self._session.get_inputs()}
            fed = {name: array for name, array in inputs.items() if name in known}
            return [np.asarray(array) for array in self._session.run(list(names), fed)]


@cache
def saturates_here() -> bool:
    """Whether integer kernels of this processor accumulate two products of uint8 and int8 in 16 bits."""
    model, inputs, exact = byte_products()
    (made,) = Session(model).run(["y"], inputs)
    return not np.array_equal(made, exact)
