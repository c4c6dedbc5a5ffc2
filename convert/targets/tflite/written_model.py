"""Names, shapes and layers of a TFLite file."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import tflite

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.targets.tflite.reader import tflite_model
from tmconvert.targets.written_model import WrittenLayer, WrittenModel


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
    except (struct.error, IndexError, ValueError, TypeError, AttributeError) as error:
        raise LoadError("TM1009", "this is a damaged TFLite file", source=Source(str(path))) from error
    return model


def _tflite_subgraph(file: Any, subgraph: Any, types: list[str], model: WrittenModel) -> None:
    """Layers have no names in TFLite: each gets the name of its first result."""
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
