"""The graph of a Caffe net as it is stored."""

from __future__ import annotations

from pathlib import Path

from tmconvert.formats.caffe.dialects import DIALECTS
from tmconvert.formats.caffe.layers import LAYERS
from tmconvert.formats.caffe.net import NetLayer, blob_name, input_shapes
from tmconvert.formats.caffe.reader import dialect_of, read_net
from tmconvert.frontends.shared.view_graph import ViewGraph, ViewNode, ViewTensor, type_text, value_text

Shape = tuple[int, ...]


def caffe_graph(path: Path) -> ViewGraph:
    """Returns the graph of a prototxt, with weights of a caffemodel next to it. Raises LoadError TM1016."""
    dialect = dialect_of(path) or next(iter(DIALECTS))
    weights = path.with_suffix(".caffemodel")
    net = read_net(path, weights if weights.is_file() else None, dialect)
    view = ViewGraph(path.name, "Caffe")
    view.summary = [("name", net.name), ("dialect", dialect)]
    reader = _Reader(view)
    for layer in net.layers:
        reader.add(layer)
    used = {index for node in view.nodes for index in node.inputs}
    view.outputs = [
        index for node in view.nodes for index in node.outputs if index not in used and node.type != "Input"
    ]
    return view


class _Reader:
    def __init__(self, view: ViewGraph) -> None:
        self.view = view
        self.blobs: dict[str, int] = {}
        self.shapes: dict[str, Shape | None] = {}

    def add(self, layer: NetLayer) -> None:
        shapes = self._shapes(layer)
        inputs = [self.blobs.get(name, -1) for name in layer.bottoms]
        inputs += [
            self.view.add_tensor(
                ViewTensor(blob_name(layer.name, number), type_text("float32", blob.shape), blob)
            )
            for number, blob in enumerate(layer.blobs)
        ]
        for name, shape in zip(layer.tops, shapes, strict=True):
            self.shapes[name] = shape
            self.blobs[name] = self.view.add_tensor(ViewTensor(name, type_text("float32", shape)))
        outputs = [self.blobs[name] for name in layer.tops]
        if layer.type == "Input":
            self.view.inputs += outputs
            return
        parts = [part for part in layer.name.split("/") if part]
        shown = {} if layer.parameters is None else _parameters(layer)
        self.view.add_node(ViewNode(layer.name, layer.type, tuple(parts[:-1]), inputs, outputs, shown))

    def _shapes(self, layer: NetLayer) -> list[Shape | None]:
        """Returns the shapes of the tops, by the definition of the layer, where it is known."""
        if layer.type == "Input":
            return list(input_shapes(layer))
        unknown: list[Shape | None] = [None] * len(layer.tops)
        known = LAYERS.get(layer.type)
        bottoms = [self.shapes.get(name) for name in layer.bottoms]
        if known is None or known.shapes is None or None in bottoms:
            return unknown
        try:
            made = known.shapes(layer, [shape for shape in bottoms if shape is not None])
        except (ValueError, IndexError, TypeError, ZeroDivisionError):
            return unknown  # `tmconvert lint` reports what is wrong with the layer
        return [*made, *unknown][: len(layer.tops)]


def _parameters(layer: NetLayer) -> dict[str, str]:
    return {
        field.name: value_text(" ".join(str(value).split())) for field, value in layer.parameters.ListFields()
    }
