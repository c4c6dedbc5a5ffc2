"""Builds a TracedModule from an ONNX file. Nothing in the file is ever executed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tmconvert.errors import GraphError, LoadError
from tmconvert.errors.source import Source, printable
from tmconvert.formats.mapped_file import map_file
from tmconvert.formats.onnx.messages import messages
from tmconvert.formats.onnx.recognize import IR_VERSIONS
from tmconvert.frontends.frontend import LoadedModel, SourceFile
from tmconvert.frontends.onnx.faults import damaged, unknown_part
from tmconvert.frontends.onnx.graphs import GraphReader
from tmconvert.frontends.onnx.mapped_weights import without_weights
from tmconvert.ir.editing.ids import number

LARGEST = 2**31 - 1  # bytes of a protobuf message


def load_onnx(path: str) -> LoadedModel:
    """Loads an ONNX model of IR version 3 or later.

    Raises LoadError: TM1001 where the file cannot be read, TM1031 for a file that is no valid model, TM1032
    for external data that are missing or lie outside of its folder, TM1033 for parts that are not read.

    >>> load_onnx("model.onnx").module.graph  # doctest: +SKIP
    """
    model = read_onnx(path)
    try:
        module = GraphReader(path, model).module()
    except LoadError:
        raise
    except GraphError as error:
        raise damaged(path, error.message) from error
    # The content is untrusted: names and attributes may be anything, and whatever they break is their fault.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from error
    module.source_file = path
    version = f"{model.producer_name} {model.producer_version}".strip()
    module.producer = printable(version[:200]) or "ONNX"
    number(module)
    stored = {each.name for each in model.graph.initializer}
    stored |= {each.values.name for each in model.graph.sparse_initializer}
    inputs = [each.name for each in model.graph.input if each.name not in stored]
    outputs = [each.name for each in model.graph.output]
    return LoadedModel(module, SourceFile([Path(path)], inputs, outputs))


def read_onnx(path: str) -> Any:
    """Returns the ModelProto of a file; large weights are external data, of other files or of its own.

    Raises LoadError TM1001, TM1031, TM1033.
    """
    from google.protobuf.message import DecodeError

    data = map_file(path)
    if len(data) > LARGEST:
        raise damaged(path, f"it has {len(data)} bytes; a model of more than 2 GB needs external data")
    model = messages().ModelProto()
    try:
        model.ParseFromString(without_weights(data))
    except DecodeError as error:
        raise damaged(path, str(error)) from error
    if not model.HasField("graph"):
        raise damaged(path, "it has no graph")
    if model.ir_version < IR_VERSIONS.start:
        raise unknown_part(
            path,
            f"the file has the version {model.ir_version} of the format, from before {IR_VERSIONS.start}",
            "export the model again, or convert it with onnx.version_converter",
        )
    if not Path(path).exists():
        raise LoadError("TM1001", "the file was removed while it was read", source=Source(path))
    return model
