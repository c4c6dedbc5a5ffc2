"""The graph of a written file."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tmconvert.formats.mapped_file import blaming, unusable_file
from tmconvert.frontends.registry import known_frontends
from tmconvert.frontends.shared.view_graph import ViewGraph, ViewNode, ViewTensor, type_text
from tmconvert.targets.recognize import target_of_file
from tmconvert.targets.target import Target
from tmconvert.viewer.marks import marked


def written_graph(path: Path) -> ViewGraph:
    """Returns the graph of an ONNX or TFLite file or a prototxt, or of a file of another package's target, as
    it is stored. Raises LoadError.
    """
    target = target_of_file(path)
    frontends = (each for each in known_frontends() if each.name == target.name)  # it reads the same format
    with blaming(partial(unusable_file, path)):
        graph = next((each.stored_graph(path) for each in frontends), None)
        return marked(_other_graph(target, path) if graph is None else graph)


def _other_graph(target: Target, path: Path) -> ViewGraph:
    """Returns what ``Target.written_model`` has of a file: operators, names and types of tensors."""
    model = target.written_model(path)
    view = ViewGraph(path.name, target.title)
    tensors = {"": -1}

    def index(name: str) -> int:
        if name not in tensors:
            kind = type_text(model.types.get(name, ""), model.tensors.get(name))
            tensors[name] = view.add_tensor(ViewTensor(name, kind))
        return tensors[name]

    view.inputs = [index(name) for name in model.inputs]
    for layer in model.layers:
        scope = tuple(part for part in layer.name.split("/") if part)[:-1]
        operands, results = map(index, layer.inputs), map(index, layer.outputs)
        view.add_node(ViewNode(layer.name, layer.type, scope, list(operands), list(results)))
    view.outputs = [index(name) for name in model.outputs]
    return view
