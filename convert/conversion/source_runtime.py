"""Runs the file of a model in its runtime: the reference for what is made of the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.targets.registry import target_named

if TYPE_CHECKING:
    from tmconvert.formats.caffe.net import Net


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


class CaffeOriginal(OnnxOriginal):
    """A Caffe net, which OpenCV runs where it supports all layers; others run by their definitions."""

    target = "caffe"

    def __init__(self, path: str, inputs: Sequence[str], outputs: Sequence[str], net: Net) -> None:
        super().__init__(path, inputs, outputs)
        self.net = net

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        from tmconvert.frontends.caffe.weights import caffemodel_of
        from tmconvert.targets.caffe.interpreter import run_net, shapes_of
        from tmconvert.targets.caffe.runtimes import opencv_runtime

        given = dict(zip(self.inputs, inputs, strict=True))
        weights = caffemodel_of(str(self.path))
        runtime = opencv_runtime(self.path)
        try:
            if runtime is not None and weights is not None:
                shapes = shapes_of(self.net, {name: array.shape for name, array in given.items()})
                made = runtime.run([self.path, weights], given, self.outputs)
                wanted = [
                    shapes.get(name, array.shape) for name, array in zip(self.outputs, made, strict=True)
                ]
                return [array.reshape(shape) for array, shape in zip(made, wanted, strict=True)]
        except (VerificationError, ValueError):  # it does not run the net after all
            pass
        try:
            return run_net(self.net, given, self.outputs)
        except (ValueError, LookupError):  # a layer without a definition
            return None
