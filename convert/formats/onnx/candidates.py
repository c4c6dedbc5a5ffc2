"""Candidates from an ONNX file: some of its nodes, whose operands become inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tmconvert.formats.onnx.model import infer_shapes, read_whole_model
from tmconvert.formats.onnx.objects import save_proto
from tmconvert.formats.onnx.split import names_read

SMALL = 16  # elements of a constant that is kept, such as axes and shapes


class OnnxCandidates:
    """The nodes of an ONNX file; ``write`` makes a file of some of them.

    >>> OnnxCandidates(Path("net.onnx")).write([3, 4], Path("part.onnx"))  # doctest: +SKIP
    """

    suffix = ".onnx"

    def __init__(self, path: Path) -> None:
        self.model = read_whole_model(str(path))
        inferred = infer_shapes(self.model)
        graph = inferred.graph
        self.nodes = list(self.model.graph.node)
        self.constants = {each.name: each for each in self.model.graph.initializer}
        self.types = {each.name: each for each in (*graph.value_info, *graph.input, *graph.output)}
        self.has_weights = True

    @property
    def count(self) -> int:
        return len(self.nodes)

    def write(self, kept: Sequence[int], path: Path) -> bool:
        """Writes the file of some nodes; returns whether the types of all its inputs are known."""
        nodes = [self.nodes[each] for each in kept]
        made = {name for each in nodes for name in each.output if name}
        used = dict.fromkeys(name for each in nodes for name in names_read([each]))
        inputs = [name for name in used if name not in made and name not in self.constants]
        outputs = [name for name in made if name not in used]
        if not all(name in self.types for name in inputs):
            return False
        constants = [self.constants[name] for name in used if name in self.constants and name not in made]
        values = [self.types.get(name) or onnx.ValueInfoProto(name=name) for name in sorted(outputs)]
        graph = helper.make_graph(
            nodes, "reduced", [self.types[name] for name in inputs], values, [*map(self._constant, constants)]
        )
        model = helper.make_model(
            graph, opset_imports=self.model.opset_import, functions=self.model.functions
        )
        model.ir_version = self.model.ir_version
        save_proto(model, path, is_external=False)
        return True

    def drop_weights(self, drops: bool = True) -> None:
        """Replaces large constants by made-up ones of the same type and shape, or takes them back."""
        self.has_weights = not drops

    def _constant(self, held: onnx.TensorProto) -> onnx.TensorProto:
        values = numpy_helper.to_array(held) if not self.has_weights else None
        if values is None or values.size <= SMALL or values.dtype.kind not in "fiu":
            return held
        random = np.random.default_rng(0)
        if values.dtype.kind == "f":
            made = random.standard_normal(values.shape).astype(values.dtype)
        else:
            made = random.integers(0, max(int(values.max()), 1) + 1, values.shape).astype(values.dtype)
        return numpy_helper.from_array(made, held.name)
