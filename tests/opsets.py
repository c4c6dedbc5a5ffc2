"""What the installed ONNX Runtime runs: it is often older than the ``onnx`` package."""

from __future__ import annotations

import functools

import onnx
import onnxruntime
import pytest

# Releases before it have no kernel of Cos for float64 (Python 3.10 has none of the later ones), none of
# DeformConv, NaN for a query of Attention that sees nothing, and load the int8 models that later ones do not.
FULL_RUNTIME = (1, 24)
NEED_FULL_RUNTIME = (
    "torchvision::deform_conv2d",
    "aten::scaled_dot_product_attention",
    *(f"aten::special_{name}" for name in ("airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1")),
)


def is_full_runtime() -> bool:
    return tuple(map(int, onnxruntime.__version__.split(".")[:2])) >= FULL_RUNTIME


def skip_for_old_runtime(op_name: str) -> None:
    """Skips the test of an op that the installed release cannot run, whatever the file is."""
    if op_name in NEED_FULL_RUNTIME and not is_full_runtime():
        pytest.skip(f"ONNX Runtime {onnxruntime.__version__} does not run {op_name}")


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
