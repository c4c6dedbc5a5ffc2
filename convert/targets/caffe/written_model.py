"""Names, shapes and layers of a Caffe net."""

from __future__ import annotations

from pathlib import Path

from tmconvert.formats.caffe.reader import dialects_of, read_net
from tmconvert.symbolics.dialects import DIALECTS
from tmconvert.targets.written_model import WrittenLayer, WrittenModel, blob_name


def written_caffe(path: Path) -> WrittenModel:
    """Raises LoadError TM1016 where no dialect knows the net."""
    model = WrittenModel("caffe")
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
    return model
