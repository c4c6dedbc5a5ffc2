"""Names, types, shapes and layers of a TFLite file."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tflite

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.formats.tflite.schema import TENSOR_TYPES
from tmconvert.targets.tflite.reader import quantization_of, tflite_layouts, tflite_model
from tmconvert.targets.written_model import TensorInfo, WrittenLayer, WrittenModel

_DTYPES = {
    **{number: name for name, number in TENSOR_TYPES.items()},
    5: "str",
    17: "int4",
    19: "int2",
}


def written_tflite(path: Path) -> WrittenModel:
    """Raises LoadError TM1009 for a damaged file."""
    model = WrittenModel("tflite")
    names = {code: name for name, code in vars(tflite.BuiltinOperator).items() if isinstance(code, int)}
    try:
        file = tflite_model(path)
        codes = [file.OperatorCodes(i) for i in range(file.OperatorCodesLength())]
        types = [names.get(max(code.DeprecatedBuiltinCode(), code.BuiltinCode()), "CUSTOM") for code in codes]
        for i in range(file.SubgraphsLength()):
            _tflite_subgraph(file, file.Subgraphs(i), types, model)
        model.version = f"schema {file.Version()}"
        model.producer = (file.Description() or b"").decode("utf-8", "replace")
        _add_edges(file, path, model)
    except (struct.error, IndexError, ValueError, TypeError, AttributeError) as error:
        raise LoadError("TM1009", "this is a damaged TFLite file", source=Source(str(path))) from error
    return model


def _tflite_subgraph(file: Any, subgraph: Any, types: list[str], model: WrittenModel) -> None:
    """Layers have no names in TFLite: each gets the name of its first result."""
    names = []
    for tensor in (subgraph.Tensors(i) for i in range(subgraph.TensorsLength())):
        shape = tuple(int(tensor.Shape(i)) for i in range(tensor.ShapeLength()))
        names.append(tensor.Name().decode())
        dtype = _DTYPES.get(tensor.Type(), "")
        buffer = file.Buffers(tensor.Buffer())
        if buffer.DataLength() or buffer.Size() > 1:
            model.add_constant(names[-1], shape, dtype)
        else:
            model.tensors.setdefault(names[-1], shape)
            model.types.setdefault(names[-1], dtype)
            if tensor.Quantization() is not None and tensor.Quantization().ScaleLength():
                model.quantized.setdefault(names[-1], _info(tensor, None))
    model.inputs += [names[subgraph.Inputs(i)] for i in range(subgraph.InputsLength())]
    model.outputs += [names[subgraph.Outputs(i)] for i in range(subgraph.OutputsLength())]
    for operator in (subgraph.Operators(i) for i in range(subgraph.OperatorsLength())):
        inputs = [names[k] for k in (operator.Inputs(i) for i in range(operator.InputsLength())) if k >= 0]
        outputs = [names[operator.Outputs(i)] for i in range(operator.OutputsLength())]
        name = outputs[0] if outputs else ""
        model.layers.append(WrittenLayer(name, types[operator.OpcodeIndex()], inputs, outputs))


def _add_edges(file: Any, path: Path, model: WrittenModel) -> None:
    """Describes inputs and outputs of the main subgraph by the names of its signature."""
    if not file.SubgraphsLength():
        return
    main = file.Subgraphs(0)
    labels = _labels(file)
    inputs = [main.Inputs(i) for i in range(main.InputsLength())]
    outputs = [main.Outputs(i) for i in range(main.OutputsLength())]
    layouts = tflite_layouts(path)
    flags = ([False] * len(inputs), [False] * len(outputs)) if layouts is None else layouts
    for indices, are_last, into, is_input in (
        (inputs, flags[0], model.input_tensors, True),
        (outputs, flags[1], model.output_tensors, False),
    ):
        for place, index in enumerate(indices):
            is_last = place < len(are_last) and are_last[place]
            info = _info(main.Tensors(index), labels.get((is_input, index)))
            into.append(info._replace(layout="NHWC") if is_last else info)


def _labels(file: Any) -> Mapping[tuple[bool, int], str]:
    """Returns the names in the signature of the main subgraph, for inputs and for outputs."""
    labels: dict[tuple[bool, int], str] = {}
    for signature in (file.SignatureDefs(i) for i in range(file.SignatureDefsLength())):
        if signature.SubgraphIndex():
            continue
        for entry in (signature.Inputs(i) for i in range(signature.InputsLength())):
            labels.setdefault((True, entry.TensorIndex()), entry.Name().decode())
        for entry in (signature.Outputs(i) for i in range(signature.OutputsLength())):
            labels.setdefault((False, entry.TensorIndex()), entry.Name().decode())
    return labels


def _info(tensor: Any, label: str | None) -> TensorInfo:
    opened = tensor.ShapeSignatureLength() == tensor.ShapeLength()
    extents = [
        int(tensor.ShapeSignature(i) if opened else tensor.Shape(i)) for i in range(tensor.ShapeLength())
    ]
    shape = tuple(extent if extent >= 0 else "" for extent in extents)
    info = TensorInfo(label or tensor.Name().decode(), _DTYPES.get(tensor.Type(), ""), shape)
    known = quantization_of(tensor)
    if known is None:
        return info
    scale = tuple(float(each) for each in known.scale)
    points = (0,) * len(scale) if known.zero_point is None else tuple(map(int, known.zero_point))
    return info._replace(scale=scale, zero_point=points, axis=known.axis if len(scale) > 1 else None)
