"""ONNX Runtime, which verifies ONNX files."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.ir.types import Paths, Shapes
from tmconvert.verification.runtime import THREADS, IsolatedRuntime, installed_version, refusals

_SWITCH = "ORT_DISABLE_TELEMETRY"  # read when the library is loaded, from release 1.29 on


def onnx_runtime() -> Any:
    """Imports ``onnxruntime`` with its telemetry disabled.

    Telemetry is not changed if the program has already imported the module, or has set the variable itself.
    """
    if "onnxruntime" in sys.modules:
        return sys.modules["onnxruntime"]
    is_ours = _SWITCH not in os.environ
    os.environ.setdefault(_SWITCH, "1")
    try:
        import onnxruntime
    finally:
        if is_ours:
            os.environ.pop(_SWITCH, None)
    if is_ours:
        with contextlib.suppress(AttributeError):  # builds without telemetry
            onnxruntime.disable_telemetry_events()
    return onnxruntime


class OnnxRuntime(IsolatedRuntime):
    """ONNX Runtime on the CPU. It crashes on some files, as for InstanceNormalization of an empty axis."""

    name = "ONNX Runtime"

    @property
    def version_here(self) -> str:
        return installed_version("onnxruntime")

    version = version_here

    def load(self) -> None:
        onnx_runtime()

    def run_here(
        self, paths: Paths, inputs: Mapping[str, np.ndarray], outputs: Sequence[str], shapes: Shapes | None
    ) -> list[np.ndarray]:
        with refusals(self.name):
            session = self._opened(Path(paths[0]))
            shapes_of = {described.name: described.shape for described in session.get_inputs()}
            known = set(shapes_of)
            from tmconvert.verification.file_edges import check_edges

            check_edges(inputs, outputs, shapes_of, [each.name for each in session.get_outputs()])
            types = {described.name: described.type for described in session.get_inputs()}
            fed = {name: _as_taken(array, types[name]) for name, array in inputs.items() if name in known}
            return [np.asarray(array) for array in session.run(list(outputs), fed)]

    def _opened(self, path: Path) -> Any:
        """Returns a session of the file; it is kept for further inputs if it is small and draws nothing."""
        key = _identity(path)
        if key in _kept:
            return _kept[key]
        onnxruntime = onnx_runtime()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = THREADS
        options.inter_op_num_threads = 1
        options.use_deterministic_compute = True
        # Packing weights, a copy of them, pays in later runs only; mapped ones stay mapped without.
        options.add_session_config_entry("session.disable_prepacking", "1")
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # it waits on the processor
        # products with weights in few bits: do not round activations to 8 bits, too
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
        session = onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
        if key is not None and _is_repeatable(path):
            while len(_kept) >= _MOST_KEPT:
                _kept.pop(next(iter(_kept)))
            _kept[key] = session
        return session


# Sessions of the latest files, in the process that runs them: two files are compared on several inputs.
_kept: dict[tuple[Path, int, int, int], Any] = {}
_MOST_KEPT, _LARGEST_KEPT = 2, 1 << 26
# Bytes of files whose next run may differ, or whose weights are elsewhere and may be large.
_NOT_KEPT = (b"Random", b"Bernoulli", b"Multinomial", b"Dropout", b"location")


def _identity(path: Path) -> tuple[Path, int, int, int] | None:
    """Returns what distinguishes a file from a later one of its name; None for one too large to keep."""
    if not path.is_file():
        return None
    status = path.stat()
    is_small = status.st_size <= _LARGEST_KEPT
    return (path, status.st_ino, status.st_mtime_ns, status.st_size) if is_small else None


def _is_repeatable(path: Path) -> bool:
    content = path.read_bytes()
    return not any(mark in content for mark in _NOT_KEPT)


_FLOATS = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64"}


def _as_taken(array: np.ndarray, type: str) -> np.ndarray:
    """Converts a float input to the file's float type; the file may have been written in another one."""
    if array.dtype.kind != "f" or type not in _FLOATS:
        return array
    return array.astype(_FLOATS[type], copy=False)
