"""Names, shapes and layers of a written file, without its content."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

Shape = tuple[int, ...] | None  # None where the file does not say all of it


@dataclass
class WrittenLayer:
    """An operator of the file; its constants are among its inputs, Caffe's blobs under generated names."""

    name: str
    type: str
    inputs: list[str]
    outputs: list[str]


@dataclass
class WrittenModel:
    """``tensors`` has the shape of each tensor; ``constants`` are the names of the stored ones."""

    target: str
    tensors: dict[str, Shape] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    inputs: list[str] = field(default_factory=list)
    layers: list[WrittenLayer] = field(default_factory=list)

    def add_constant(self, name: str, shape: Shape) -> None:
        self.tensors[name] = shape
        self.constants.add(name)


def written_model(path: Path) -> WrittenModel:
    """Reads an ONNX or TFLite file, or a prototxt with the caffemodel next to it, if there is one.

    Raises LoadError TM1001, TM1009 and TM1016.
    """
    from tmconvert.targets.recognize import target_of_file

    return target_of_file(path).written_model(path)


def blob_name(layer: str, number: int) -> str:
    """Returns the generated name of a Caffe layer's blob, which has none."""
    return f"{layer}_{('weight', 'bias')[number] if number < 2 else f'blob_{number}'}"
