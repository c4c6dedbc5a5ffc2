"""Sessions of ONNX Runtime for the verification of quantized files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.ir.types import Paths, Shapes
from tmconvert.output.atomic import temporary_folder
from tmconvert.targets.onnx.runtime import OnnxRuntime, onnx_runtime
from tmconvert.verification.runtime import THREADS, refusals

_sessions: dict[tuple[str, bool, bool], Any] = {}  # of the process that runs them, until they are forgotten


class Session(OnnxRuntime):
    """A session that is kept for further inputs, until ``forget``.

    With default options, as users run it, operators are fused to integer kernels, some of which saturate on
    some processors. Without ``fuses`` each operator is computed separately, in float between the
    quantizations. With ``keeps_memory`` off it frees the memory of a run after it.
    """

    def __init__(self, *, fuses: bool = True, keeps_memory: bool = True) -> None:
        self.fuses, self.keeps_memory = fuses, keeps_memory

    @property
    def settings(self) -> dict[str, Any]:
        return {"fuses": self.fuses, "keeps_memory": self.keeps_memory}

    def run_here(
        self, paths: Paths, inputs: Mapping[str, np.ndarray], outputs: Sequence[str], shapes: Shapes | None
    ) -> list[np.ndarray]:
        with refusals(self.name):
            key = os.fspath(paths[0]), self.fuses, self.keeps_memory
            if key not in _sessions:
                _sessions[key] = self._session(paths[0])
            session = _sessions[key]
            known = {each.name for each in session.get_inputs()}
            fed = {name: array for name, array in inputs.items() if name in known}
            return [np.asarray(array) for array in session.run(list(outputs), fed)]

    def forget_here(self) -> None:
        _sessions.clear()

    def _session(self, path: Path) -> Any:
        onnxruntime = onnx_runtime()
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 3, THREADS
        options.enable_cpu_mem_arena = self.keeps_memory
        if not self.fuses:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])


@cache
def saturates_here() -> bool:
    """Whether integer kernels of this processor accumulate two products of uint8 and int8 in 16 bits."""
    from tmconvert.targets.onnx.verify.saturation_probe import byte_products

    model, inputs, exact = byte_products()
    with temporary_folder() as folder:
        path = folder / "byte_products.onnx"
        path.write_bytes(model)
        session = Session()
        (made,) = session.run([path], inputs, ["y"])
        session.forget()
    return not np.array_equal(made, exact)
