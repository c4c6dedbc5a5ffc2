"""Candidates from an ONNX file: some of its nodes, whose operands become inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

from tmconvert.formats.onnx.model import infer_shapes, read_whole_model
from tmconvert.formats.onnx.objects import save_proto
from tmconvert.formats.onnx.split import names_read

SMALL = 16  # elements of a constant that is kept, such as axes and shapes


class OnnxCandidates:
    """The nodes of an ONNX file; ``write`` makes a file of some of them.

    ``sizes`` are those to write in place of others, ``dropped`` the attributes to leave out, by node.

    >>> OnnxCandidates(Path("net.onnx")).write([3, 4], Path("part.onnx"))  # doctest: +SKIP
    """

    def __init__(self, path: Path, *, keeps_names: bool = False) -> None:
        self.model = read_whole_model(str(path))
        inferred = infer_shapes(self.model)
        graph = inferred.graph
        self.nodes = list(self.model.graph.node)
        self.constants = {each.name: each for each in self.model.graph.initializer}
        self.types = {each.name: each for each in (*graph.value_info, *graph.input, *graph.output)}
        self.has_weights, self.keeps_names = True, keeps_names
        self.sizes: dict[int, int] = {}
        self.dropped: set[tuple[int, str | int]] = set()

    def write(self, kept: Sequence[int], path: Path) -> bool:
        """Writes the file of some nodes; returns whether the types of all its inputs are known."""
        nodes = [self._node(each) for each in kept]
        made = dict.fromkeys(name for each in nodes for name in each.output if name)
        used = dict.fromkeys(name for each in nodes for name in names_read([each]))
        inputs = [name for name in used if name not in made and name not in self.constants]
        outputs = [name for name in made if name not in used]
        if not all(name in self.types for name in inputs):
            return False
        constants = [self.constants[name] for name in used if name in self.constants and name not in made]
        graph = helper.make_graph(
            nodes,
            "reduced",
            [self._type(self.types[name]) for name in inputs],
            [self._result(name) for name in sorted(outputs)],
            [*map(self._constant, constants)],
        )
        if not self.keeps_names:
            _rename(graph)
        model = helper.make_model(
            graph, opset_imports=self.model.opset_import, functions=self.model.functions
        )
        model.ir_version = self.model.ir_version
        save_proto(model, path, is_external=False)
        return True

    def drop_weights(self, drops: bool = True) -> None:
        """Replaces constants by made-up ones of the same type and shape, or takes them back."""
        self.has_weights = not drops

    def sizes_of(self, kept: Sequence[int]) -> list[int]:
        """Returns the sizes of the operands of nodes, largest first."""
        names = [name for each in kept for name in names_read([self.nodes[each]])]
        found = {size for name in names if name in self.constants for size in self.constants[name].dims}
        for name in names:
            if name in self.types:
                found |= {each.dim_value for each in self.types[name].type.tensor_type.shape.dim}
        return sorted(found)[::-1]

    def attributes(self, kept: Sequence[int]) -> list[tuple[int, str | int]]:
        """Returns the attributes of nodes, but for subgraphs."""
        graphs = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
        found = ((each, held) for each in kept for held in self.nodes[each].attribute)
        return [(each, held.name) for each, held in found if held.type not in graphs]

    def _node(self, number: int) -> onnx.NodeProto:
        node = onnx.NodeProto()
        node.CopyFrom(self.nodes[number])
        del node.attribute[:]
        for held in self.nodes[number].attribute:
            if (number, held.name) not in self.dropped:
                node.attribute.append(self._attribute(held))
        return node

    def _attribute(self, held: AttributeProto) -> AttributeProto:
        made = AttributeProto()
        made.CopyFrom(held)
        if held.HasField("t"):
            made.t.CopyFrom(self._constant(held.t))
        if held.type == AttributeProto.INT:
            made.i = self._size(held.i)
        made.ints[:] = map(self._size, held.ints)
        for graph in [made.g, *made.graphs] if held.HasField("g") else made.graphs:
            for each in graph.initializer:
                each.CopyFrom(self._constant(each))
            for node in graph.node:
                for inner in node.attribute:
                    inner.CopyFrom(self._attribute(inner))
        return made

    def _size(self, value: int) -> int:
        return self.sizes.get(value, value)

    def _type(self, held: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
        made = onnx.ValueInfoProto()
        made.CopyFrom(held)
        for each in made.type.tensor_type.shape.dim:
            if each.HasField("dim_value"):
                each.dim_value = self._size(each.dim_value)
        return made

    def _result(self, name: str) -> onnx.ValueInfoProto:
        held = self.types.get(name)
        if held is None or ((self.sizes or self.dropped) and not held.type.HasField("tensor_type")):
            return onnx.ValueInfoProto(name=name)
        if self.sizes or self.dropped:
            return helper.make_tensor_value_info(name, held.type.tensor_type.elem_type, None)
        return held

    def _constant(self, held: onnx.TensorProto) -> onnx.TensorProto:
        if self.has_weights and not self.sizes:
            return held
        values = numpy_helper.to_array(held)
        shape = tuple(map(self._size, values.shape))
        random, kind = np.random.default_rng(0), values.dtype.kind
        if kind == "f" and values.size > 1 and not self.has_weights:
            made = made_up(random, shape, values.dtype)
        elif kind in "iu" and values.size > SMALL and not self.has_weights:
            made = random.integers(0, max(int(values.max()), 1) + 1, shape).astype(values.dtype)
        elif kind == "i" and values.size <= SMALL and values.dtype.itemsize == 8:
            made = np.asarray([self._size(int(each)) for each in values.flat], values.dtype)
            made = made.reshape(values.shape)
        else:
            return held
        return numpy_helper.from_array(made, held.name)


def made_up(random: np.random.Generator, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Returns made-up weights with which values neither grow nor vanish from layer to layer; those of one
    axis, which may be variances, are positive.
    """
    if len(shape) < 2:
        return random.random(shape).astype(dtype)
    return (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(dtype)


def _rename(graph: onnx.GraphProto) -> None:
    """Gives inputs, constants and results made-up names, and removes those of nodes and texts."""
    names: dict[str, str] = {"": ""}
    kinds = (("x", graph.input), ("w", graph.initializer))
    for kind, held in kinds:
        names.update({each.name: f"{kind}{number}" for number, each in enumerate(held)})
    _rename_nodes(graph, names)


def _rename_nodes(graph: Any, names: dict[str, str]) -> None:
    for each in (*graph.input, *graph.initializer):
        names.setdefault(each.name, f"t{len(names)}")
    for node in graph.node:
        node.name = node.doc_string = ""
        for held in node.attribute:
            held.doc_string = ""
            for inner in [held.g, *held.graphs] if held.HasField("g") else held.graphs:
                _rename_nodes(inner, names)
        node.input[:] = [names.setdefault(each, f"t{len(names)}") for each in node.input]
        node.output[:] = [names.setdefault(each, f"t{len(names)}") for each in node.output]
    for each in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        each.name = names.setdefault(each.name, f"t{len(names)}")
        each.doc_string = ""
        for axis in each.type.tensor_type.shape.dim if isinstance(each, onnx.ValueInfoProto) else ():
            if axis.HasField("dim_param"):
                axis.dim_param = names.setdefault(f"size {axis.dim_param}", f"n{len(names)}")
