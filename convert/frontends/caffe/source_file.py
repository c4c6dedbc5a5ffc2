"""The files of a Caffe net as the source of a model: run by a runtime, else by the definitions of layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.formats.caffe.interpreter import run_net, shapes_of
from tmconvert.formats.caffe.net import Net
from tmconvert.frontends.caffe.weights import caffemodel_of
from tmconvert.frontends.frontend import FileRuntime, SourceFile


class CaffeSource(SourceFile):
    """The text of a net, with its weights; ``net`` is what they contain."""

    def __init__(self, path: str, net: Net, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        super().__init__([Path(path)], inputs, outputs)
        self.net = net

    def run(self, runtime: FileRuntime | None, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray] | None:
        """Returns the outputs; None for a net that the runtime refuses and that has an undefined layer."""
        weights = caffemodel_of(str(self.paths[0]))
        self.judge = ""
        try:
            if runtime is not None and weights is not None:
                made = runtime.run([*self.paths, weights], inputs, self.outputs)
                return self._reshaped(made, inputs)
        except (VerificationError, ValueError):  # it does not run the net after all
            pass
        try:
            self.judge = "the NumPy definitions of Caffe's layers"
            return run_net(self.net, inputs, self.outputs)
        except (ValueError, LookupError) as error:  # a layer without a definition
            self.refusal = str(error)
            return None

    def _reshaped(self, made: list[np.ndarray], inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Returns the outputs in the shapes of the net, whose ranks a runtime may not keep."""
        shapes = shapes_of(self.net, {name: array.shape for name, array in inputs.items()})
        return [
            array.reshape(shapes.get(name, array.shape))
            for name, array in zip(self.outputs, made, strict=True)
        ]
