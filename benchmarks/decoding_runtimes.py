"""Files of decoders in ONNX Runtime and LiteRT, run by the names of inputs and outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]


class OrtFile:
    """An ONNX file in ONNX Runtime; ``shapes`` are those of its inputs by name."""

    empty = 0  # the size of a cache before the first step

    def __init__(self, path: Path) -> None:
        import onnxruntime

        self._session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.shapes: dict[str, list[Any]] = {each.name: each.shape for each in self._session.get_inputs()}
        self._outputs = [each.name for each in self._session.get_outputs()]

    def run(self, inputs: Arrays) -> Arrays:
        """Returns the outputs by name; what the file has no input for is left out."""
        fed = {name: array for name, array in inputs.items() if name in self.shapes}
        return dict(zip(self._outputs, self._session.run(None, fed), strict=True))


class LiteRtFile:
    """A TFLite file in LiteRT, whose inputs are resized for each run."""

    empty = 1  # LiteRT has no tensors without elements: one position that the mask hides

    def __init__(self, path: Path) -> None:
        from ai_edge_litert.interpreter import Interpreter

        self._interpreter = Interpreter(str(path))
        self._inputs = {each["name"]: each for each in self._interpreter.get_input_details()}
        self._outputs = {each["name"]: each["index"] for each in self._interpreter.get_output_details()}
        self.shapes: dict[str, list[Any]] = {
            name: ["batch", int(each["shape"][1]), "past", int(each["shape"][3])]
            for name, each in self._inputs.items()
            if len(each["shape"]) == 4
        }

    def run(self, inputs: Arrays) -> Arrays:
        """Returns the outputs by name."""
        for name, each in self._inputs.items():
            self._interpreter.resize_tensor_input(each["index"], inputs[name].shape)
        self._interpreter.allocate_tensors()
        for name, each in self._inputs.items():
            self._interpreter.set_tensor(each["index"], inputs[name].astype(each["dtype"]))
        self._interpreter.invoke()
        return {name: self._interpreter.get_tensor(index) for name, index in self._outputs.items()}
