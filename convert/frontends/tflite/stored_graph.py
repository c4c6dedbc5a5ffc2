"""The graph of a TFLite file as it is stored."""

from __future__ import annotations

from pathlib import Path

from tmconvert.errors import LoadError
from tmconvert.formats.mapped_file import map_file
from tmconvert.formats.tflite.records import (
    ModelRecord,
    OperatorRecord,
    SubgraphRecord,
    TensorRecord,
    read_model,
)
from tmconvert.formats.tflite.tensors import TYPES, TensorReader
from tmconvert.frontends.shared.view_graph import Path as ModulePath
from tmconvert.frontends.shared.view_graph import (
    ViewGraph,
    ViewNode,
    ViewTensor,
    qparams_record,
    type_text,
    value_text,
)

_CALLS = (
    "then_subgraph_index", "else_subgraph_index", "cond_subgraph_index", "body_subgraph_index", "subgraph",
)  # fmt: skip
MAX_DEPTH = 20  # of subgraphs in subgraphs


def tflite_graph(path: Path) -> ViewGraph:
    """Returns the graph of a TFLite file; subgraphs are modules. Raises LoadError."""
    model = read_model(str(path), map_file(str(path)))
    view = ViewGraph(path.name, "TFLite")
    view.summary = [("description", model.description)] if model.description else []
    _Reader(view, model, TensorReader(str(path))).add(model.subgraphs[0], (), is_main=True)
    return view


class _Reader:
    def __init__(self, view: ViewGraph, model: ModelRecord, arrays: TensorReader) -> None:
        self.view = view
        self.model = model
        self.arrays = arrays

    def add(self, subgraph: SubgraphRecord, path: ModulePath, *, is_main: bool = False) -> None:
        tensors = [
            self.view.add_tensor(_tensor(record, subgraph.label(number), self.arrays))
            for number, record in enumerate(subgraph.tensors)
        ]
        if is_main:
            self.view.inputs = [tensors[index] for index in subgraph.inputs]
            self.view.outputs = [tensors[index] for index in subgraph.outputs]
        for number, operator in enumerate(subgraph.operators):
            self._operator(operator, number, path, tensors)

    def _operator(self, operator: OperatorRecord, number: int, path: ModulePath, tensors: list[int]) -> None:
        outputs = [tensors[index] for index in operator.outputs if index >= 0]
        called = [key for key in _CALLS if key in operator.options]
        shown = {key: value_text(value) for key, value in operator.options.items() if key not in called}
        name = self.view.tensors[outputs[0]].name if outputs else f"{operator.name} {number}"
        parts = tuple(part for part in name.split(";")[0].split("/") if part)
        where = (*path, *parts[:-1])
        inputs = [-1 if index < 0 else tensors[index] for index in operator.inputs]
        self.view.add_node(ViewNode(name, operator.name, where, inputs, outputs, shown))
        for key in called:
            if len(path) < MAX_DEPTH:
                body = self.model.subgraphs[operator.options[key]]
                self.add(body, (*where, parts[-1] if parts else name, key.removesuffix("_subgraph_index")))


def _tensor(record: TensorRecord, name: str, arrays: TensorReader) -> ViewTensor:
    element = TYPES.get(record.type)
    shape = ["?" if extent < 0 else extent for extent in record.shape]
    tensor = ViewTensor(name, type_text("" if element is None else element.name, shape))
    quantization = record.quantization
    if quantization is not None and element is not None:
        tensor.qparams = qparams_record(
            element.name, quantization.scale, quantization.zero_point, quantization.axis
        )
    if record.content is not None and len(record.content) and element is not None:
        try:
            tensor.values = arrays.stored_array(record)
            tensor.channel_axis = None if quantization is None else quantization.axis
        except LoadError:  # a damaged constant: the graph is shown without it
            tensor.notes["missing"] = "its bytes do not fit its type"
    return tensor
