"""Reads Caffe nets: the .prototxt with the structure, and the .caffemodel with the weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import text_format

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.formats.caffe.caffemodel import blobs_of
from tmconvert.formats.caffe.dialects import DIALECTS, MERGED
from tmconvert.formats.caffe.net import Net, NetLayer
from tmconvert.formats.caffe.old_layers import upgrade
from tmconvert.formats.caffe.schema import schema
from tmconvert.formats.mapped_file import read_regular

TEST = 1  # the number of the phase in which nets are run


def parse_net(text: str, dialect: str = "bvlc", *, allows_unknown_fields: bool = False) -> Any:
    """Returns a new NetParameter of a text.

    Protobuf's parser of texts is written in Python, and the linter and each runtime parse a net that was
    written: the last messages are kept.

    Raises: text_format.ParseError.
    """
    net = schema(dialect).NetParameter()
    try:
        net.CopyFrom(_strictly_parsed(text, dialect))
    except text_format.ParseError:
        if not allows_unknown_fields:
            raise
        net.Clear()
        text_format.Parse(text, net, allow_unknown_field=True)
    return net


@lru_cache(maxsize=4)
def _strictly_parsed(text: str, dialect: str) -> Any:
    return text_format.Parse(text, schema(dialect).NetParameter())


def caffe_input_sizes(prototxt: Path) -> dict[str, tuple[int, ...]]:
    """The sizes of the inputs of a net, by name."""
    net = parse_net(read_regular(prototxt).decode(), allows_unknown_fields=True)
    inputs = [each for each in net.layer if each.type == "Input"]
    sizes = {each.top[0]: tuple(each.input_param.shape[0].dim) for each in inputs if each.input_param.shape}
    return sizes | {name: tuple(each.dim) for name, each in zip(net.input, net.input_shape, strict=False)}


def dialect_of(prototxt: Path) -> str | None:
    """The first dialect that knows every layer and every field of the text, or None."""
    text = read_regular(prototxt).decode("utf-8", "replace")
    for name, dialect in DIALECTS.items():
        try:
            net = parse_net(text, name)
        except text_format.ParseError:
            continue
        if all(dialect.knows(layer.type) for layer in net.layer):
            return name
    return None


def read_net(prototxt: Path, caffemodel: Path | None = None, dialect: str = "bvlc") -> Net:
    """The net as it is run (layers for training alone are left out), with its weights where these are given.

    Raises: LoadError TM1016 when a file is not a net of this dialect, or the caffemodel lacks a layer with
    weights.
    """
    try:
        text = parse_net(read_regular(prototxt).decode(), dialect)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise _unreadable(prototxt, str(error)) from error
    if dialect == MERGED.name:
        upgrade(text)
    return net_of(text, {} if caffemodel is None else _weights(caffemodel), dialect)


def net_of(
    text: Any, weights: dict[str, list[np.ndarray]], dialect: str = "bvlc", lines: Sequence[int] = ()
) -> Net:
    """The net of the message ``text``. ``weights`` are by layer names, ``lines`` by order in the text."""
    fields = schema(dialect).parameter_fields
    layers = _old_inputs(text, dialect)
    for index, layer in enumerate(text.layer):
        if not _is_run(layer, text.state):
            continue
        parameter_field = fields.get(layer.type)
        layers.append(
            NetLayer(
                layer.name,
                layer.type,
                list(layer.bottom),
                list(layer.top),
                getattr(layer, parameter_field) if parameter_field else None,
                weights.get(layer.name) or [_blob_of_text(blob) for blob in layer.blobs],
                lines[index] if lines else 0,
                [each.name for each in layer.param],
            )
        )
    return Net(text.name, layers)


def _old_inputs(text: Any, dialect: str) -> list[NetLayer]:
    """Inputs in the form of old nets: names and extents at the top, four extents each if without shapes."""
    layers = []
    for index, name in enumerate(text.input):
        parameters = schema(dialect).LayerParameter().input_param
        if text.input_shape:  # one for each, or one for all
            parameters.shape.add(dim=text.input_shape[index if len(text.input_shape) > 1 else 0].dim)
        elif len(text.input_dim) >= 4 * index + 4:
            parameters.shape.add(dim=text.input_dim[4 * index : 4 * index + 4])
        layers.append(NetLayer(name, "Input", [], [name], parameters))
    return layers


def _is_run(layer: Any, state: Any) -> bool:
    """Whether the layer's rules leave it in a net at the phase TEST, with level and stages of ``state``."""

    def holds(rule: Any) -> bool:
        stages = set(state.stage)
        return (
            (not rule.HasField("phase") or rule.phase == TEST)
            and (not rule.HasField("min_level") or state.level >= rule.min_level)
            and (not rule.HasField("max_level") or state.level <= rule.max_level)
            and stages.issuperset(rule.stage)
            and stages.isdisjoint(rule.not_stage)
        )

    if layer.include:
        return any(holds(rule) for rule in layer.include)
    return not any(holds(rule) for rule in layer.exclude)


def _blob_of_text(blob: Any) -> np.ndarray:
    """Returns the array of a BlobProto; one without a shape has the four extents of old files."""
    data = np.array(blob.data if len(blob.data) else blob.double_data, np.float32)
    if blob.HasField("shape"):
        return data.reshape(tuple(blob.shape.dim))
    return data.reshape(blob.num, blob.channels, blob.height, blob.width)


def _weights(caffemodel: Path) -> dict[str, list[np.ndarray]]:
    data = memoryview(read_regular(caffemodel))
    return blobs_of(data, lambda cause: _unreadable(caffemodel, cause))


def _unreadable(path: Path, reason: str) -> LoadError:
    return LoadError("TM1016", f"this is not a Caffe net: {reason}", source=Source(str(path)))
