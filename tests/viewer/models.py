"""ONNX files to draw: of many nodes, with and without modules in their names, and with hostile names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

HOSTILE = "</script><script>document.title='taken'</script><!--"
BLOCK = 8


def chain(path: Path, count: int, *, has_modules: bool = True) -> Path:
    """Writes blocks of eight operators, the last of which adds the input of the block."""
    nodes, constants, x, skip = [], [], "x", "x"
    for number in range(count):
        block, place = divmod(number, BLOCK)
        name = (
            f"/stage{block // 20}/block{block}/{'mix' if place < 4 else 'mlp'}/op{place}"
            if has_modules
            else ""
        )
        out = HOSTILE if number == 5 else f"t{number}"
        operator = ("MatMul", "Relu", "Sigmoid", "Transpose", "Tanh", "Relu", "Sigmoid", "Add")[place]
        inputs = [x]
        if operator == "MatMul":
            weight = np.random.default_rng(number).normal(size=(16, 16)).astype(np.float32)
            constants.append(onnx.numpy_helper.from_array(weight, f"w{number}"))
            inputs.append(f"w{number}")
        if operator == "Add":
            inputs.append(skip)
            skip = out
        more = {"perm": [0, 1]} if operator == "Transpose" else {}
        nodes.append(helper.make_node(operator, inputs, [out], name, **more))
        x = out
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 16]) for name in ("x", x)]
    graph = helper.make_graph(nodes, HOSTILE, ends[:1], ends[1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path
