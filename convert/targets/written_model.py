"""Names, types, shapes and layers of a written file, without its content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

Shape = tuple[int, ...] | None  # None where the file does not say all of it


class TensorInfo(NamedTuple):
    """An input or output as a program has to feed or read it.

    ``dtype`` is the name in NumPy, empty where the file lacks it. Open sizes of ``shape`` are texts, which
    are empty where they have no name. ``layout`` is "NHWC" or "NCHW" for images, else empty.
    real = scale * (q - zero_point), with one of each, or one for each index of ``axis``. ``example`` is a
    shape for a first run, which fits those of the other tensors; empty where none is known.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None
    layout: str = ""
    scale: tuple[float, ...] = ()
    zero_point: tuple[int, ...] = ()
    axis: int | None = None
    example: tuple[int, ...] = ()

    @property
    def example_shape(self) -> tuple[int, ...]:
        """Returns a shape without open sizes."""
        return self.example or tuple(size if isinstance(size, int) else 1 for size in self.shape or ())

    @property
    def type_text(self) -> str:
        """Returns ``float32[batch,3,224,224]``."""
        sizes = "?" if self.shape is None else ",".join(str(size) or "?" for size in self.shape)
        return f"{self.dtype or '?'}[{sizes}]"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "dtype": self.dtype or None,
            "shape": None if self.shape is None else list(self.shape),
            "layout": self.layout or None,
            "scale": list(self.scale) or None,
            "zero_point": list(self.zero_point) or None,
        }


TensorInfos = Sequence[TensorInfo]


@dataclass
class WrittenLayer:
    """An operator of the file; its constants are among its inputs, Caffe's blobs under generated names."""

    name: str
    type: str
    inputs: list[str]
    outputs: list[str]


@dataclass
class WrittenModel:
    """``tensors`` has the shape of each tensor, ``types`` its dtype by NumPy's name where that is known.

    ``constants`` are the names of the stored ones. ``input_tensors`` and ``output_tensors`` have the names
    that a program uses, which are those of the signature in TFLite. ``quantized`` are computed tensors with
    scales. ``inner`` are the tensors of graphs that operators run. ``version`` is that of the operators.
    ``ranges`` are those that the file states for its open sizes, ``metadata`` what it states to its users.
    """

    target: str
    tensors: dict[str, Shape] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    inputs: list[str] = field(default_factory=list)
    layers: list[WrittenLayer] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    input_tensors: list[TensorInfo] = field(default_factory=list)
    output_tensors: list[TensorInfo] = field(default_factory=list)
    quantized: dict[str, TensorInfo] = field(default_factory=dict)
    version: str = ""
    producer: str = ""
    ranges: list[str] = field(default_factory=list)
    inner: set[str] = field(default_factory=set)
    metadata: dict[str, str] = field(default_factory=dict)

    def add_constant(self, name: str, shape: Shape, dtype: str = "") -> None:
        self.tensors[name] = shape
        self.constants.add(name)
        if dtype:
            self.types[name] = dtype


def with_examples(
    tensors: Sequence[TensorInfo], ranges: Sequence[str] = (), given: Mapping[str, int] | None = None
) -> list[TensorInfo]:
    """Returns tensors with example shapes that fit each other, at the sizes that are ``given``."""
    shapes = [each.shape or () for each in tensors]
    if not any(isinstance(size, str) and size for shape in shapes for size in shape):
        return list(tensors)
    from tmconvert.ir.symbolic.chosen_sizes import chosen_sizes, shape_at

    sizes = chosen_sizes(shapes, ranges, given)
    return [
        each._replace(example=shape_at(shape, sizes)) for each, shape in zip(tensors, shapes, strict=True)
    ]


def written_model(path: Path) -> WrittenModel:
    """Reads an ONNX or TFLite file, or a prototxt with the caffemodel next to it, if there is one.

    Raises LoadError TM1001, TM1009 and TM1016.
    """
    from tmconvert.targets.recognize import target_of_file

    return target_of_file(path).written_model(path)
