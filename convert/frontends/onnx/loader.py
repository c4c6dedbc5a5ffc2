"""Builds a TracedModule from an ONNX file. Nothing in the file is ever executed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tmconvert.errors.source import printable
from tmconvert.formats.mapped_file import blaming
from tmconvert.formats.onnx.faults import damaged
from tmconvert.formats.onnx.model import metadata_of, read_model
from tmconvert.frontends.frontend import LoadedModel
from tmconvert.frontends.onnx.graphs import GraphReader
from tmconvert.frontends.onnx.source_file import OnnxSource
from tmconvert.ir.ids import number


def load_onnx(path: str) -> LoadedModel:
    """Loads an ONNX model of IR version 3 or later.

    Raises LoadError: TM1001 where the file cannot be read, TM1031 for a file that is no valid model, TM1032
    for external data that are missing or lie outside of its folder, TM1033 for parts that are not read.

    >>> load_onnx("model.onnx").module.graph  # doctest: +SKIP
    """
    model = read_model(path)
    with blaming(partial(damaged, path)):
        module = GraphReader(path, model).module()
    module.source_file = path
    version = f"{model.producer_name} {model.producer_version}".strip()
    module.producer = printable(version[:200]) or "ONNX"
    module.metadata = metadata_of(model)
    number(module)
    stored = {each.name for each in model.graph.initializer}
    stored |= {each.values.name for each in model.graph.sparse_initializer}
    inputs = [each.name for each in model.graph.input if each.name not in stored]
    shapes = {each.name: _sizes(each) for each in model.graph.input if each.name not in stored}
    outputs = [each.name for each in model.graph.output]
    return LoadedModel(module, OnnxSource(Path(path), inputs, outputs, shapes))


def _sizes(value: Any) -> list[int | None]:
    """Returns the shape of an input, with None for open sizes."""
    dims = value.type.tensor_type.shape.dim
    return [int(each.dim_value) if each.dim_value > 0 else None for each in dims]
