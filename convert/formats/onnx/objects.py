"""ONNX models as objects: of ``onnx``, of ``onnx_ir``, and those that ``torch.onnx.export`` returns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from onnx import ModelProto

SMALL = 4096  # bytes of a weight that stays in the file of the graph


def writer_of_object(value: object) -> Callable[[Any, Path], None] | None:
    """Returns the function that writes an ONNX model to a file; None for other objects."""
    if type(value).__name__ == "ModelProto" and hasattr(value, "ListFields"):
        return write_proto
    onnx_ir = sys.modules.get("onnx_ir")
    if onnx_ir is not None and isinstance(getattr(value, "model", value), onnx_ir.Model):
        return write_onnx_ir  # or a torch.onnx.ONNXProgram, which has one
    return None


def write_onnx_ir(value: object, path: Path) -> None:
    model = getattr(value, "model", value)
    sys.modules["onnx_ir"].save(model, path, external_data="weights", size_threshold_bytes=SMALL)


def write_proto(model: ModelProto, path: Path) -> None:
    """Writes a ModelProto, with one weight at a time in memory: a ModelProto above 2 GiB has no bytes."""
    light = type(model)()
    _copy_fields(model, light, but="graph")
    _copy_fields(model.graph, light.graph, but="initializer")
    with path.with_name("weights").open("wb") as weights:
        for tensor in model.graph.initializer:
            copied = light.graph.initializer.add()
            if not tensor.HasField("raw_data") or tensor.ByteSize() < SMALL:
                copied.CopyFrom(tensor)
                continue
            _copy_fields(tensor, copied, but="raw_data")
            weights.write(bytes(-weights.tell() % 64))
            offset, length = weights.tell(), weights.write(tensor.raw_data)
            copied.data_location = copied.EXTERNAL
            for key, text in {"location": "weights", "offset": str(offset), "length": str(length)}.items():
                copied.external_data.add(key=key, value=text)
    path.write_bytes(light.SerializeToString())


def save_proto(model: ModelProto, path: Path, *, is_external: bool) -> None:
    """Writes a ModelProto; with ``is_external`` its weights are in the file ``NAME.data`` next to it."""
    import onnx

    location = f"{path.name}.data" if is_external else None
    onnx.save(model, path, save_as_external_data=is_external, location=location)


def _copy_fields(message: Message, copy: Message, but: str) -> None:
    """Copies the fields of a protobuf message other than one."""
    for field, value in message.ListFields():
        if field.name == but:
            continue
        target = getattr(copy, field.name)
        if hasattr(target, "extend"):
            target.extend(value)
        elif hasattr(target, "CopyFrom"):
            target.CopyFrom(value)
        else:
            setattr(copy, field.name, value)
