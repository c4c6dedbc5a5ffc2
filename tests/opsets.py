"""Which opsets the installed ONNX Runtime runs: it is often older than the ``onnx`` package."""

from __future__ import annotations

import functools

import onnx
import onnxruntime


@functools.cache
def newest_runnable() -> int:
    """The newest opset that the installed onnx knows and the installed ONNX Runtime takes."""
    return next(opset for opset in range(onnx.defs.onnx_opset_version(), 6, -1) if _runs(opset))


def _runs(opset: int) -> bool:
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "g", [value], [result])
    imports = [onnx.helper.make_opsetid("", opset)]
    ir_version = onnx.helper.find_min_ir_version_for(imports)
    model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=ir_version)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:  # its exceptions have no common base but this
        return False
    return True
