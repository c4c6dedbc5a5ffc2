"""Runs ONNX files in bfloat16 in ONNX Runtime, which has few kernels for that type.

Each operator of the file computes in float32, and what the file has in bfloat16 is rounded to it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tmconvert.formats.onnx.model import read_whole_model
from tmconvert.ir.types import NamedArrays, Paths, Shapes
from tmconvert.targets.onnx.runtime import OnnxRuntime

NOTE = (
    "ONNX Runtime has few kernels for bfloat16, so the file itself was not run: its operators were, in "
    "float32, with results rounded to bfloat16"
)


class Bfloat16OnnxRuntime(OnnxRuntime):
    """ONNX Runtime on a copy of a file, in float32 with results rounded to bfloat16."""

    name = "ONNX Runtime (in float32, with results rounded to bfloat16)"

    def run(
        self, paths: Paths, inputs: NamedArrays, outputs: Sequence[str], *, shapes: Shapes | None = None
    ) -> list[np.ndarray]:
        """Returns the outputs; those that the file has in bfloat16 have that type."""
        model = read_whole_model(str(paths[0]))
        narrow = {each.name for each in (*model.graph.input, *model.graph.output) if _is_narrow(each)}
        given = {name: _rounded(array) if name in narrow else array for name, array in inputs.items()}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "float32.onnx"
            onnx.save(in_float32(model), path)
            made = super().run([path], given, outputs, shapes=shapes)
        return [
            array.astype(ml_dtypes.bfloat16) if name in narrow else array
            for name, array in zip(outputs, made, strict=True)
        ]


def in_float32(model: ModelProto) -> ModelProto:
    """Returns a copy of a model with float32 for bfloat16, and with results rounded."""
    copy = onnx.shape_inference.infer_shapes(model)
    _change(copy.graph, _narrow_names(copy.graph))
    return copy


def _narrow_names(graph: GraphProto) -> set[str]:
    described = (*graph.input, *graph.output, *graph.value_info)
    return {each.name for each in described if _is_narrow(each)}


def _change(graph: GraphProto, narrow: set[str]) -> None:
    for described in (*graph.input, *graph.output, *graph.value_info):
        if _is_narrow(described):
            described.type.tensor_type.elem_type = TensorProto.FLOAT
    for number, tensor in enumerate(graph.initializer):
        if tensor.data_type == TensorProto.BFLOAT16:
            data = numpy_helper.to_array(tensor).astype(np.float32)
            graph.initializer[number].CopyFrom(numpy_helper.from_array(data, tensor.name))
    nodes = [each for node in graph.node for each in _with_rounding(node, narrow)]
    del graph.node[:]
    graph.node.extend(nodes)


def _with_rounding(node: NodeProto, narrow: set[str]) -> Iterator[NodeProto]:
    """Yields the node, and casts to bfloat16 and back of its narrow results."""
    is_cast = node.op_type == "Cast" and node.attribute[0].i == TensorProto.BFLOAT16
    rounded = [name for name in node.output if name in narrow]
    made = NodeProto()
    made.CopyFrom(node)
    for attribute in made.attribute:
        if attribute.t.data_type == TensorProto.BFLOAT16:
            attribute.t.CopyFrom(
                numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(np.float32))
            )
    wide = {name: f"{name}/wide" for name in rounded}
    for number, name in enumerate(node.output):
        made.output[number] = wide.get(name, name)
    if is_cast:
        made.attribute[0].i = TensorProto.FLOAT
    yield made
    for name in rounded:
        yield helper.make_node("Cast", [wide[name]], [f"{name}/narrow"], to=TensorProto.BFLOAT16)
        yield helper.make_node("Cast", [f"{name}/narrow"], [name], to=TensorProto.FLOAT)


def _is_narrow(described: onnx.ValueInfoProto) -> bool:
    return bool(described.type.tensor_type.elem_type == TensorProto.BFLOAT16)


def _rounded(array: np.ndarray) -> np.ndarray:
    return array.astype(ml_dtypes.bfloat16).astype(np.float32)
