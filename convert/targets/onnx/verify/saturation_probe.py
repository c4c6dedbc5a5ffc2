"""A model whose result shows whether a processor's integer kernels saturate."""

from __future__ import annotations

import numpy as np
import onnx

_COUNT = 64  # of the products in a sum: kernels take several at a time


def byte_products() -> tuple[bytes, dict[str, np.ndarray], np.ndarray]:
    """Returns a model of one MatMulInteger, its inputs, and its exact result ``y``.

    All factors are the maxima of uint8 and int8, so that the sum of two products exceeds 16 bits.
    """
    helper, types = onnx.helper, onnx.TensorProto
    weight = np.full((_COUNT, _COUNT), 127, np.int8)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "byte_products",
        [helper.make_tensor_value_info("x", types.UINT8, [1, _COUNT])],
        [helper.make_tensor_value_info("y", types.INT32, [1, _COUNT])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)], ir_version=5)
    x = np.full((1, _COUNT), 255, np.uint8)
    exact = x.astype(np.int32) @ weight.astype(np.int32)
    return model.SerializeToString(), {"x": x}, exact
