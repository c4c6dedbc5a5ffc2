"""MNN as a runtime for Caffe files with layers that OpenCV lacks."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.ir.types import NamedArrays, Paths, Shapes
from tmconvert.targets.caffe.float32_integers import float32_inputs
from tmconvert.verification.processes.worker import command, environment
from tmconvert.verification.runtime import refusals

SECONDS = 300


class MnnRuntime:
    """Converts Caffe nets with MNN's converter, and runs the result in MNN on the CPU."""

    name = "MNN"

    @property
    def version(self) -> str:
        from importlib.metadata import version

        return version("MNN")

    def run(
        self, paths: Paths, inputs: NamedArrays, outputs: Sequence[str], *, shapes: Shapes | None = None
    ) -> list[np.ndarray]:
        from tmconvert.targets.caffe.for_mnn import parts_for_mnn

        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with refusals(self.name):
                given: dict[str, Any] = {**float32_inputs(inputs)}
            np.savez(folder / "inputs.npz", **given)
            for number, part in enumerate(parts_for_mnn(paths[0], outputs)):
                (folder / f"{number}.prototxt").write_text(part, encoding="utf-8")
            self._start([*command(f"{__package__}.mnn_process"), name, str(paths[1].resolve()), *outputs])
            arrays = [np.load(folder / f"{number}.npy") for number in range(len(outputs))]
        if shapes is None:
            return arrays
        return [_as_shaped(array, shape) for array, shape in zip(arrays, shapes, strict=True)]

    def _start(self, command: list[str]) -> None:
        try:
            done = subprocess.run(
                command, capture_output=True, env=environment(), timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise VerificationError("TM4002", f"MNN took more than {SECONDS} s for the file") from error
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise VerificationError(
                "TM4002", f"MNN rejected the file: {said[-1] if said else f'it ended by {-done.returncode}'}"
            )


def _as_shaped(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """MNN's blobs may have axes of one element more than Caffe's."""
    squeezed = tuple(extent for extent in array.shape if extent != 1)
    is_same = squeezed == tuple(extent for extent in shape if extent != 1)
    return array.reshape(shape) if is_same else array
