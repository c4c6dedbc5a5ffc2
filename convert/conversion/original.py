"""Runs the file of a model in its runtime: the reference for what is made of the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.targets.registry import target_named


class OnnxOriginal:
    """An ONNX file with inputs and outputs of these names; see ``ir.traced_module.Original``."""

    target = "onnx"  # whose runtime runs the file

    def __init__(self, path: str, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.path = Path(path)
        self.inputs, self.outputs = list(inputs), list(outputs)

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Returns the outputs that the runtime computes; None where it is missing or refuses the file."""
        runtime = target_named(self.target).runtime(self.path)
        if runtime is None or not self.path.is_file():
            return None
        given = dict(zip(self.inputs, inputs, strict=True))
        try:
            return runtime.run([self.path], given, self.outputs)
        except VerificationError:  # it does not implement everything that the standard has
            return None


class TfliteOriginal(OnnxOriginal):
    """A TFLite file, which LiteRT runs."""

    target = "tflite"
