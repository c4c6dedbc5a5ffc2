"""Names, types, shapes and layers of a TFLite file."""

from __future__ import annotations

from pathlib import Path

from tmconvert.errors import LoadError
from tmconvert.formats.mapped_file import map_file
from tmconvert.formats.tflite.faults import damaged_result
from tmconvert.formats.tflite.metadata import tflite_layouts, tflite_metadata
from tmconvert.formats.tflite.records import VERSION, ModelRecord, SubgraphRecord, TensorRecord, read_model
from tmconvert.formats.tflite.schema import TYPE_NAMES
from tmconvert.targets.written_model import TensorInfo, WrittenLayer, WrittenModel


def signature_names(path: Path) -> list[str]:
    """Returns the names of the signatures of a file that has several, else none. Raises as the next one."""
    signatures = _read(path, None).signatures
    return list(signatures) if len(set(signatures.values())) > 1 else []


def written_tflite(path: Path, signature: str = "") -> WrittenModel:
    """Describes a file, or what ``signature`` runs of it.

    Raises LoadError TM1001, TM1042, and TM1009 for a damaged file; UsageError TM6014 for an unknown name.
    """
    model = WrittenModel("tflite")
    file = _read(path, signature)
    main = file.subgraphs[file.main if signature else 0]
    layouts = (tflite_layouts(path) if main is file.subgraphs[0] else None) or ([], [])
    for subgraph in file.reached() if signature else file.subgraphs:
        _add_subgraph(subgraph, model)
        model.inner |= {each.name for each in subgraph.tensors} if subgraph is not main else set()
    model.inner -= {each.name for each in main.tensors}
    model.version = f"schema {VERSION}"
    model.producer = file.description
    model.metadata = tflite_metadata(path)
    model.input_tensors = _edges(main, main.inputs, main.input_names, layouts[0])
    model.output_tensors = _edges(main, main.outputs, main.output_names, layouts[1])
    return model


def _read(path: Path, signature: str | None) -> ModelRecord:
    try:
        return read_model(str(path), map_file(str(path)), signature)
    except LoadError as error:
        if error.code != "TM1041":
            raise
        raise damaged_result(str(path)) from error


def _add_subgraph(subgraph: SubgraphRecord, model: WrittenModel) -> None:
    """Layers have no names in TFLite: each gets the name of its first result."""
    names = [record.name for record in subgraph.tensors]
    for record in subgraph.tensors:
        dtype = TYPE_NAMES.get(record.type, "")
        if record.content is not None:
            model.add_constant(record.name, record.example, dtype)
            continue
        model.tensors.setdefault(record.name, record.example)
        model.types.setdefault(record.name, dtype)
        if record.quantization is not None:
            model.quantized.setdefault(record.name, _info(record, None))
    model.inputs += [names[index] for index in subgraph.inputs]
    model.outputs += [names[index] for index in subgraph.outputs]
    for operator in subgraph.operators:
        inputs = [names[index] for index in operator.inputs if index >= 0]
        outputs = [names[index] for index in operator.outputs]
        kind = operator.name if operator.is_builtin else "CUSTOM"
        model.layers.append(WrittenLayer(outputs[0] if outputs else "", kind, inputs, outputs))


def _edges(
    graph: SubgraphRecord, indices: tuple[int, ...], labels: dict[int, str], layouts: list[bool]
) -> list[TensorInfo]:
    """Describes inputs or outputs of the main subgraph by the names of its signature."""
    found = [_info(graph.tensors[index], labels.get(index)) for index in indices]
    channels_last = [*layouts, *[False] * len(found)]
    return [
        info._replace(layout="NHWC") if is_last else info
        for info, is_last in zip(found, channels_last, strict=False)
    ]


def _info(record: TensorRecord, label: str | None) -> TensorInfo:
    shape = tuple(extent if extent >= 0 else "" for extent in record.shape)
    info = TensorInfo(
        label or record.name, TYPE_NAMES.get(record.type, ""), shape, example=tuple(record.example)
    )
    known = record.quantization
    if known is None:
        return info
    axis = known.axis if len(known.scale) > 1 else None
    return info._replace(scale=known.scale, zero_point=known.zero_point, axis=axis)
