"""The tensors and the layers of a written file, by name; nothing of their content."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.targets.recognize import written_target

Shape = tuple[int, ...] | None  # None where the file does not say all of it


@dataclass
class WrittenLayer:
    """An operator of the file; its constants come with what it takes, Caffe's blobs under names of ours."""

    name: str
    type: str
    inputs: list[str]
    outputs: list[str]


@dataclass
class WrittenModel:
    """``tensors`` has the shape of each tensor; ``constants`` are the names of those that the file holds."""

    target: str
    tensors: dict[str, Shape] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    inputs: list[str] = field(default_factory=list)
    layers: list[WrittenLayer] = field(default_factory=list)

    def add_constant(self, name: str, shape: Shape) -> None:
        self.tensors[name] = shape
        self.constants.add(name)


def written_tensors(path: Path) -> WrittenModel:
    """Of an ONNX or TFLite file, or of a prototxt with its caffemodel, if there is one, beside it.

    Raises LoadError TM1001, TM1009 and TM1016.
    """
    target = written_target(path)
    model = WrittenModel(target)
    {"onnx": _onnx, "tflite": _tflite, "caffe": _caffe}[target](path, model)
    return model


def _onnx(path: Path, model: WrittenModel) -> None:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        file = onnx.load(path, load_external_data=False)
    except DecodeError as error:
        raise LoadError("TM1009", "this is a damaged ONNX file", source=Source(str(path))) from error
    _onnx_graph(file.graph, model)
    model.inputs = [each.name for each in file.graph.input if each.name not in model.constants]


def _onnx_graph(graph: Any, model: WrittenModel) -> None:
    for initializer in graph.initializer:
        model.add_constant(initializer.name, tuple(initializer.dims))
    for info in (*graph.input, *graph.value_info, *graph.output):
        shape = info.type.tensor_type.shape
        known = all(dim.HasField("dim_value") for dim in shape.dim)
        model.tensors.setdefault(info.name, tuple(dim.dim_value for dim in shape.dim) if known else None)
    for node in graph.node:
        inputs, outputs = ([name for name in names if name] for names in (node.input, node.output))
        model.layers.append(WrittenLayer(node.name, node.op_type, inputs, outputs))
        for name in outputs:
            model.tensors.setdefault(name, None)
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _onnx_graph(inner, model)


def _tflite(path: Path, model: WrittenModel) -> None:
    import struct

    import tflite

    from tmconvert.targets.tflite.reader import tflite_model

    names = {code: name for name, code in vars(tflite.BuiltinOperator).items() if isinstance(code, int)}
    try:
        file = tflite_model(path)
        codes = [file.OperatorCodes(i) for i in range(file.OperatorCodesLength())]
        types = [names.get(max(code.DeprecatedBuiltinCode(), code.BuiltinCode()), "CUSTOM") for code in codes]
        for i in range(file.SubgraphsLength()):
            _tflite_subgraph(file, file.Subgraphs(i), types, model)
    except (struct.error, IndexError, ValueError, TypeError, AttributeError) as error:
        raise LoadError("TM1009", "this is a damaged TFLite file", source=Source(str(path))) from error


def _tflite_subgraph(file: Any, subgraph: Any, types: list[str], model: WrittenModel) -> None:
    """Layers have no names in TFLite: each goes by that of its first result."""
    names = []
    for tensor in (subgraph.Tensors(i) for i in range(subgraph.TensorsLength())):
        shape = tuple(int(tensor.Shape(i)) for i in range(tensor.ShapeLength()))
        names.append(tensor.Name().decode())
        buffer = file.Buffers(tensor.Buffer())
        if buffer.DataLength() or buffer.Size() > 1:
            model.add_constant(names[-1], shape)
        else:
            model.tensors.setdefault(names[-1], shape)
    model.inputs += [names[subgraph.Inputs(i)] for i in range(subgraph.InputsLength())]
    for operator in (subgraph.Operators(i) for i in range(subgraph.OperatorsLength())):
        inputs = [names[k] for k in (operator.Inputs(i) for i in range(operator.InputsLength())) if k >= 0]
        outputs = [names[operator.Outputs(i)] for i in range(operator.OutputsLength())]
        name = outputs[0] if outputs else ""
        model.layers.append(WrittenLayer(name, types[operator.OpcodeIndex()], inputs, outputs))


def _caffe(path: Path, model: WrittenModel) -> None:
    from tmconvert.targets.caffe.reader import dialects_of, read_net
    from tmconvert.targets.options import DIALECTS

    weights = path.with_suffix(".caffemodel")
    dialect = next(iter(dialects_of(path)), DIALECTS[0])
    net = read_net(path, weights if weights.is_file() else None, dialect)
    for name, shape in net.inputs():
        model.tensors[name] = tuple(shape)
        model.inputs.append(name)
    for layer in net.layers:
        blobs = [blob_name(layer.name, number) for number in range(len(layer.blobs))]
        for name, blob in zip(blobs, layer.blobs, strict=True):
            model.add_constant(name, blob.shape)
        for name in layer.tops:
            model.tensors.setdefault(name, None)
        model.layers.append(WrittenLayer(layer.name, layer.type, [*layer.bottoms, *blobs], list(layer.tops)))


def blob_name(layer: str, number: int) -> str:
    """What the blob of a Caffe layer, which has no name, is called here."""
    return f"{layer}_{('weight', 'bias')[number] if number < 2 else f'blob_{number}'}"
