"""Names, shapes and layers of a Caffe net."""

from __future__ import annotations

from pathlib import Path

from tmconvert.formats.caffe.dialects import MERGED
from tmconvert.formats.caffe.layers import LAYERS
from tmconvert.formats.caffe.net import NetLayer, blob_name
from tmconvert.formats.caffe.reader import dialect_of, read_net
from tmconvert.targets.written_model import TensorInfo, WrittenLayer, WrittenModel


def written_caffe(path: Path) -> WrittenModel:
    """Raises LoadError TM1016 where the net has a field that no dialect has."""
    weights = path.with_suffix(".caffemodel")
    dialect = dialect_of(path) or MERGED.name
    version = "of no single dialect" if dialect == MERGED.name else f"dialect {dialect}"
    model = WrittenModel("caffe", version=version)
    net = read_net(path, weights if weights.is_file() else None, dialect)
    for name, shape in net.inputs():
        model.tensors[name] = tuple(shape)
        model.types[name] = "float32"
        model.inputs.append(name)
    for layer in net.layers:
        blobs = [blob_name(layer.name, number) for number in range(len(layer.blobs))]
        for name, blob in zip(blobs, layer.blobs, strict=True):
            model.add_constant(name, blob.shape, "float32")
        _add_tops(layer, model)
        model.layers.append(WrittenLayer(layer.name, layer.type, [*layer.bottoms, *blobs], list(layer.tops)))
    read = {name for layer in net.layers for name in layer.bottoms if name not in layer.tops}
    computed = [top for layer in net.layers if layer.type != "Input" for top in layer.tops]
    model.outputs = [name for name in dict.fromkeys(computed) if name not in read]
    model.input_tensors, model.output_tensors = (
        [TensorInfo(name, "float32", model.tensors[name]) for name in names]
        for names in (model.inputs, model.outputs)
    )
    return model


def _add_tops(layer: NetLayer, model: WrittenModel) -> None:
    """Adds the blobs that a layer computes, with their shapes where its type has a rule for them."""
    known = LAYERS.get(layer.type)
    shapes = [model.tensors.get(name) for name in layer.bottoms]
    made: list[tuple[int, ...] | None] = [None] * len(layer.tops)
    if known is not None and known.shapes is not None and layer.type != "Input" and None not in shapes:
        try:
            found = known.shapes(layer, [shape for shape in shapes if shape is not None])
            made = [tuple(map(int, shape)) for shape in found]
        except (ValueError, IndexError):  # an invalid net, which `tmconvert lint` describes
            made = [None] * len(layer.tops)
    for name, shape in zip(layer.tops, made, strict=False):
        model.types[name] = "float32"
        if name in layer.bottoms or model.tensors.get(name) is None:
            model.tensors[name] = shape if shape is not None else model.tensors.get(name)
