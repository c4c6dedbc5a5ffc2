"""MNN scales of layers' inputs and outputs, as PPQ writes them for convolutions, products and sums.

``<output> input_tensor_0`` and ``<output> output_tensor_0``, by the name of the layer's result, after the
extents of the model's input. It has activations only, in int8 with zero points of 0.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from tmconvert.qparams.formats.format import Format, Unreadable, known_role, one_scale, symmetric_bytes
from tmconvert.qparams.formats.json_text import Fields, parsed, written
from tmconvert.qparams.records import ACTIVATION, WEIGHT, Record

_TYPES = ("Conv", "Convolution", "Gemm", "InnerProduct")
_SUMS = ("Add", "Eltwise")
_INPUT, _OUTPUT = " input_tensor_0", " output_tensor_0"
_EXTENTS = ("channels", "height", "width")


def places(records: Sequence[Record]) -> list[Record]:
    """Returns the results of supported layers, and their inputs."""
    makers = {record.producer for record in records if record.operator in _TYPES}
    return [record for record in records if record.role != WEIGHT and _has_place(record, makers)]


def _has_place(record: Record, makers: Collection[str]) -> bool:
    """Whether the record can be stored: it is of a layer of this file, or of an unknown one, an error."""
    if record.name.endswith((_INPUT, _OUTPUT)) or record.operator in (*_TYPES, *_SUMS):
        return True
    return any(name in makers for name in record.consumers) or not (record.operator or record.consumers)


def write(records: Sequence[Record]) -> str:
    shape = next((record.shape for record in records if record.shape and len(record.shape) == 4), None)
    file: dict[str, Any] = {"shape": dict(zip(_EXTENTS, shape[1:], strict=True)) if shape else {}}
    given = {name: record for record in reversed(records) for name in record.consumers}
    for record in records:
        if record.operator in _TYPES and record.producer in given:
            file[record.name + _INPUT] = given[record.producer].scales[0]
        if record.operator in (*_TYPES, *_SUMS):
            file[record.name + _OUTPUT] = record.scales[0]
        elif record.name.endswith((_INPUT, _OUTPUT)):  # of such a file
            file[record.name] = record.scales[0]
    return written(file if len(file) > 1 else {})


def read(text: str) -> list[Record]:
    file = Fields(parsed(text), "the file")
    found = []
    extents = file.inner("shape") if file.has("shape") else Fields({}, "'shape'")
    shape = (1, *(extents.integer(name, 0) for name in _EXTENTS)) if extents.given else None
    for name in file.given:
        if name == "shape":
            continue
        if not name.endswith((_INPUT, _OUTPUT)):
            raise Unreadable(f"{name!r} is neither an input_tensor_0 nor an output_tensor_0")
        layer = name.removesuffix(_INPUT).removesuffix(_OUTPUT)
        scale = (file.number(name),)
        found.append(
            Record(name, ACTIVATION, "int8", scale, (0,), -128, 127, None, True, shape, consumers=(layer,))
        )
    return found


def made_or_taken(record: Record) -> str:
    return "" if record.producer or record.consumers else "the layers that use or compute it are unknown"


def recognises(text: str, found: dict[str, object]) -> bool:
    return any(name.endswith((_INPUT, _OUTPUT)) for name in found)


MNN = Format(
    "mnn",
    "MNN scales, JSON of PPQ",
    write,
    read,
    recognises,
    (known_role, one_scale, symmetric_bytes, made_or_taken),
    (ACTIVATION,),
    places,
    ("onnx", "caffe"),
    by_layer=True,
)
