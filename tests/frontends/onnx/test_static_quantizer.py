"""Files of ONNX Runtime's static quantizer become integer TFLite files within one step of ONNX Runtime.

``benchmarks/onnx_quantizer.py`` measures a dozen networks.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import tmconvert

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
litert = pytest.importorskip("ai_edge_litert.interpreter")

SHAPE = (1, 3, 9, 7)
SAMPLES = [np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32) for seed in range(4)]


@pytest.fixture(scope="module")
def float_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A residual block, then a dense layer, whose hyperbolic tangent goes through another."""
    random, nodes, weights = np.random.default_rng(0), [], []

    def constant(name: str, *shape: int) -> str:
        array = (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        weights.append(onnx.numpy_helper.from_array(array, name))
        return name

    def node(kind: str, inputs: list[str], name: str, **attributes: object) -> str:
        nodes.append(onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    first = node("Conv", ["x", constant("w0", 6, 3, 3, 3), constant("b0", 6)], "c0", pads=[1, 1, 1, 1])
    active = node("Relu", [first], "r0")
    second = node("Conv", [active, constant("w1", 6, 6, 1, 3), constant("b1", 6)], "c1", pads=[0, 1, 0, 1])
    total = node("Relu", [node("Add", [second, active], "sum")], "r1")
    flat = node("Flatten", [node("GlobalAveragePool", [total], "pool")], "flat")
    dense = node("Gemm", [flat, constant("w2", 8, 6), constant("b2", 8)], "g0", transB=1)
    node("Gemm", [node("Tanh", [dense], "t0"), constant("w3", 5, 8), constant("b3", 5)], "y", transB=1)
    graph = onnx.helper.make_graph(
        nodes,
        "net",
        [onnx.helper.make_tensor_value_info("x", 1, SHAPE)],
        [onnx.helper.make_tensor_value_info("y", 1, (1, 5))],
        weights,
    )
    path = tmp_path_factory.mktemp("quantizer") / "float.onnx"
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path
    )
    return path


class Reader:
    """What ``quantize_static`` reads samples from."""

    def __init__(self) -> None:
        self.samples = iter([{"x": sample} for sample in SAMPLES])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.samples, None)


def exact_session(path: Path) -> ort.InferenceSession:
    """A session that computes the same on every processor: products of integers do not saturate in it."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), options)


@pytest.mark.parametrize(
    ("form", "activations"), [("QDQ", "QInt8"), ("QDQ", "QUInt8"), ("QOperator", "QUInt8")]
)
def test_within_one_step(form: str, activations: str, float_file: Path, tmp_path: Path) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization")
    path, made = tmp_path / "quantized.onnx", tmp_path / "made.tflite"
    logging.disable(logging.WARNING)  # advice on speed
    try:
        quantization.quantize_static(
            str(float_file),
            str(path),
            Reader(),
            quant_format=quantization.QuantFormat[form],
            per_channel=form == "QDQ",
            activation_type=quantization.QuantType[activations],
            weight_type=quantization.QuantType.QInt8,
        )
    finally:
        logging.disable(logging.NOTSET)
    tmconvert.to_tflite(tmconvert.load(path), made, quantized=True, io_layout="source", verify=False)
    session, runner = exact_session(path), litert.Interpreter(str(made))
    runner.allocate_tensors()
    (given,), (result,) = runner.get_input_details(), runner.get_output_details()
    (scale, zero), (step, offset) = given["quantization"], result["quantization"]
    assert given["dtype"] == result["dtype"] == np.int8
    for sample in SAMPLES:
        integers = np.rint(sample / np.float32(scale) + zero).clip(-128, 127).astype(np.int8)
        runner.set_tensor(given["index"], integers)
        runner.invoke()
        found = (runner.get_tensor(result["index"]).astype(np.float64) - offset) * step
        (expected,) = session.run(None, {"x": sample})
        assert np.abs(found - expected).max() <= 1.01 * step
