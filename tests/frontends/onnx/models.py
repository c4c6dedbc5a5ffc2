"""Small ONNX models, made as text or of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def saved(path: Path, text: str) -> Path:
    """Writes a model that is given in ONNX's text form."""
    onnx.save(onnx.parser.parse_model(text), str(path))
    return path


def of_nodes(
    nodes: Sequence[Any],
    inputs: dict[str, Sequence[int | str | None]],
    outputs: Sequence[str],
    weights: dict[str, np.ndarray] | None = None,
    opset: int = 17,
    **more: Any,
) -> Any:
    """Returns a model of float inputs with these shapes."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10, **more)


def network(opset: int = 17) -> Any:
    """Returns a convolution, a pooling, a flattening and a linear layer, over an open batch."""
    rng = np.random.default_rng(0)
    weights = {
        "conv.weight": rng.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "conv.bias": rng.standard_normal(4).astype(np.float32),
        "fc.weight": rng.standard_normal((5, 16)).astype(np.float32),
        "fc.bias": rng.standard_normal(5).astype(np.float32),
    }
    nodes = [
        helper.make_node(
            "Conv", ["x", "conv.weight", "conv.bias"], ["c"], "/conv", pads=[1] * 4, strides=[2, 2]
        ),
        helper.make_node("Relu", ["c"], ["r"], "/relu"),
        helper.make_node("MaxPool", ["r"], ["p"], "/pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"], "/flatten"),
        helper.make_node("Gemm", ["f", "fc.weight", "fc.bias"], ["y"], "/fc", transB=1),
    ]
    return of_nodes(nodes, {"x": ["batch", 3, 8, 8]}, ["y"], weights, opset)


def in_onnx_runtime(path: Path, *inputs: np.ndarray) -> list[np.ndarray]:
    """Returns what ONNX Runtime computes."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    return list(session.run(None, dict(zip(names, inputs, strict=True))))
