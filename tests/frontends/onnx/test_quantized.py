"""Quantization: pairs of QuantizeLinear and DequantizeLinear, operators of integers, and integer files."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tmconvert
from tests.frontends.onnx.one_node import check, computed, floats, integers, model_of, value

UINT8, INT8 = np.uint8, np.int8


def some(dtype, *shape):
    info = np.iinfo(dtype)
    return integers(info.min, info.max + 1, *shape, dtype=dtype)


@pytest.mark.parametrize("dtype", [UINT8, INT8])
def test_scales_of_tensors_channels_and_blocks(tmp_path, dtype):
    x, zero = 3 * floats(2, 3, 4), value(3, dtype)
    check(tmp_path, "QuantizeLinear", [x, value(0.1), zero], constant=(1, 2))
    channels = [floats(3) ** 2 + np.float32(0.01), some(dtype, 3)]
    check(tmp_path, "QuantizeLinear", [x, *channels], constant=(1, 2), axis=1)
    check(tmp_path, "DequantizeLinear", [some(dtype, 2, 3, 4), *channels], constant=(1, 2), axis=1)
    blocks = [floats(2, 3, 2) ** 2 + np.float32(0.01), some(dtype, 2, 3, 2)]
    options = {"constant": (1, 2), "axis": 2, "block_size": 2, "opset": 21}
    check(tmp_path, "QuantizeLinear", [x, *blocks], **options)
    check(tmp_path, "DequantizeLinear", [some(dtype, 2, 3, 4), *blocks], **options)


def test_computed_scales(tmp_path):
    check(tmp_path, "QuantizeLinear", [3 * floats(3, 4), value(0.1), value(3, UINT8)])
    check(tmp_path, "DequantizeLinear", [some(UINT8, 3, 4), value(0.1), value(3, UINT8)])
    check(tmp_path, "DynamicQuantizeLinear", [floats(3, 4)], outputs=3)


@pytest.mark.parametrize("dtype", [UINT8, INT8])
def test_products_of_integers(tmp_path, dtype):
    zero = value(9, UINT8)
    for depth in (6, 600):  # of small weights: without VNNI the kernels saturate in 16 bits
        a, b = some(UINT8, 3, depth), integers(0, 60, depth, 5, dtype=dtype)
        check(tmp_path, "MatMulInteger", [a, b, zero, value(3, dtype)])
    x, weight = some(UINT8, 1, 4, 6, 6), some(dtype, 8, 2, 3, 3)
    zeros = [zero, value(3, UINT8)] if dtype == UINT8 else [zero]
    check(tmp_path, "ConvInteger", [x, weight, *zeros], pads=[1] * 4, group=2)
    x, weight = some(UINT8, 1, 300, 4, 4), integers(0, 60, 2, 300, 3, 3, dtype=dtype)
    check(tmp_path, "ConvInteger", [x, weight, *zeros])


@pytest.mark.parametrize("dtype", [UINT8, INT8])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul", "QLinearConcat"])
def test_operators_of_two_tensors(tmp_path, op, dtype):
    left = [some(dtype, 2, 3, 4), value(0.11), value(3, dtype)]
    right = [some(dtype, 2, 3, 4), value(0.053), value(7, dtype)]
    result = [value(0.23), value(5, dtype)]
    inputs = [*result, *left, *right] if op == "QLinearConcat" else [*left, *right, *result]
    constant = [place for place, array in enumerate(inputs) if not array.ndim]
    options = {"axis": 1} if op == "QLinearConcat" else {}
    check(tmp_path, op, inputs, domain="com.microsoft", constant=constant, steps=1, **options)


@pytest.mark.parametrize("dtype", [UINT8, INT8])
@pytest.mark.parametrize(
    ("op", "shape", "attributes"),
    [
        ("QLinearSigmoid", (3, 40), {}),
        ("QLinearLeakyRelu", (3, 40), {"alpha": 0.1}),
        ("QLinearSoftmax", (3, 10), {"opset_": 13, "axis": -1}),
        ("QLinearAveragePool", (1, 3, 6, 6), {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2]}),
        ("QLinearGlobalAveragePool", (1, 3, 6, 6), {}),
        ("QLinearGlobalAveragePool", (1, 6, 6, 3), {"channels_last": 1}),
    ],
)
def test_operators_of_one_tensor(tmp_path, op, shape, attributes, dtype):
    inputs = [some(dtype, *shape), value(0.05), value(3, dtype), value(1 / 200), value(0, dtype)]
    options = {"domain": "com.microsoft", "constant": (1, 2, 3, 4), "steps": 1}
    if "opset_" in attributes:
        model_options = {name: each for name, each in attributes.items() if name != "opset_"}
        softmax(tmp_path, inputs, model_options)
    else:
        check(tmp_path, op, inputs, **options, **attributes)


def softmax(tmp_path, inputs, attributes):
    """``opset`` is an attribute of the operator, too."""
    model = model_of("QLinearSoftmax", inputs, domain="com.microsoft", constant=(1, 2, 3, 4), **attributes)
    model.graph.node[0].attribute.append(helper.make_attribute("opset", 13))
    ours, theirs = computed(model, tmp_path / "one.onnx", inputs[:1])
    assert np.abs(ours[0].astype(int) - theirs[0].astype(int)).max() <= 1


def test_qgemm(tmp_path):
    inputs = [
        *(some(UINT8, 3, 6), value(0.05), value(3, UINT8), some(UINT8, 6, 5), value(0.02), value(8, UINT8)),
        *(integers(-99, 99, 5, dtype=np.int32), value(0.2), value(9, UINT8)),
    ]
    check(tmp_path, "QGemm", inputs, domain="com.microsoft", constant=range(1, 9), steps=1, alpha=1.5)


# ---- whole files


def pair(name, scale, zero):
    """Nodes of a quantization of a tensor, and their constants."""
    nodes = [
        helper.make_node("QuantizeLinear", [name, f"{name}_s", f"{name}_z"], [f"{name}_q"]),
        helper.make_node("DequantizeLinear", [f"{name}_q", f"{name}_s", f"{name}_z"], [f"{name}_d"]),
    ]
    return nodes, {f"{name}_s": value(scale), f"{name}_z": value(zero, INT8)}


def network(path):
    """A convolution, a pooling and a linear layer, as static quantizers write them."""
    stored = {
        "w": integers(-127, 128, 8, 3, 3, 3, dtype=INT8),
        "w_s": (np.abs(floats(8)) / 200 + np.float32(0.001)).astype(np.float32),
        "w_z": np.zeros(8, INT8),
        "b": integers(-500, 500, 8, dtype=np.int32),
        "b_s": np.zeros(0),
        "b_z": np.zeros(8, np.int32),
        "m": integers(-127, 128, 8, 5, dtype=INT8),
        "m_s": value(0.004),
        "m_z": value(0, INT8),
    }
    stored["b_s"] = stored["w_s"] * np.float32(0.03)
    nodes = []
    for name, scale, zero in (
        ("x", 0.03, 2),
        ("c", 0.04, -128),
        ("p", 0.04, -128),
        ("a", 0.03, -128),
        ("y", 0.05, 4),
    ):
        made, constants = pair(name, scale, zero)
        nodes.append(made)
        stored |= constants
    x, c, p, a, y = nodes
    graph = [
        *x,
        helper.make_node("DequantizeLinear", ["w", "w_s", "w_z"], ["w_d"], axis=0),
        helper.make_node("DequantizeLinear", ["b", "b_s", "b_z"], ["b_d"], axis=0),
        helper.make_node("Conv", ["x_d", "w_d", "b_d"], ["c"], pads=[1] * 4),
        *c,
        helper.make_node("MaxPool", ["c_d"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        *p,
        helper.make_node("GlobalAveragePool", ["p_d"], ["a4"]),
        helper.make_node("Flatten", ["a4"], ["a"]),
        *a,
        helper.make_node("DequantizeLinear", ["m", "m_s", "m_z"], ["m_d"]),
        helper.make_node("MatMul", ["a_d", "m_d"], ["y"]),
        *y,
    ]
    made = helper.make_graph(
        graph,
        "quantized",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 8, 8])],
        [onnx.ValueInfoProto(name="y_d")],
        [numpy_helper.from_array(array, name) for name, array in stored.items()],
    )
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))


def test_pairs_are_integer_files(tmp_path):
    import onnxruntime
    from ai_edge_litert.interpreter import Interpreter

    source, target = tmp_path / "net.onnx", tmp_path / "net.tflite"
    network(source)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(str(source), options)
    tmconvert.to_tflite(source, target, quantized=True)
    file = Interpreter(str(target))
    file.allocate_tensors()
    (given,), (result,) = file.get_input_details(), file.get_output_details()
    operators = [each["op_name"] for each in file._get_ops_details()]
    kinds = {np.dtype(each["dtype"]).name for each in file.get_tensor_details()}
    assert kinds <= {"int8", "int32"} and "MUL" not in operators and "QUANTIZE" not in operators
    for _ in range(4):
        x = floats(1, 3, 8, 8)
        steps = np.clip(np.rint(x / np.float32(0.03)) + 2, -128, 127).astype(INT8)
        file.set_tensor(given["index"], steps.transpose(0, 2, 3, 1) if given["shape"][-1] == 3 else steps)
        file.invoke()
        ours = (file.get_tensor(result["index"]).astype(np.float32) - 4) * np.float32(0.05)
        theirs = session.run(None, {"x": x})[0]
        assert np.abs(ours - theirs).max() <= 0.051
        assert np.abs(tmconvert.load(source)(x) - theirs).max() <= 0.051  # a tie is rounded either way


def test_a_float_file_of_a_quantized_model_says_so(tmp_path):
    network(tmp_path / "net.onnx")
    report = tmconvert.to_onnx(tmp_path / "net.onnx", tmp_path / "float.onnx")
    assert any("quantizes 5 tensors" in note for note in report.notes)
    report = tmconvert.to_onnx(tmp_path / "net.onnx", tmp_path / "q.onnx", quantized=True)
    assert not any("quantizes 5 tensors" in note for note in report.notes)


def operators_of(path):
    from ai_edge_litert.interpreter import Interpreter

    file = Interpreter(str(path))
    file.allocate_tensors()
    return sorted(each["op_name"] for each in file._get_ops_details() if each["op_name"] != "DELEGATE")


def test_our_own_pairs_come_back(tmp_path):
    """A quantized model converted to ONNX, and that to TFLite, has the operators of a direct conversion."""
    source = files("tests") / "data" / "qat_concat_elemwise.tm"
    direct, between, after = (tmp_path / name for name in ("direct.tflite", "net.onnx", "after.tflite"))
    tmconvert.to_tflite(source, direct, quantized=True)
    tmconvert.to_onnx(source, between, quantized=True)
    tmconvert.to_tflite(between, after, quantized=True)
    assert operators_of(after) == operators_of(direct)


def test_four_bits_saturate(tmp_path):
    """The type of the zero point says the range, though a graph holds it in eight bits."""
    import ml_dtypes

    x, path = np.linspace(-3, 3, 13, dtype=np.float32), tmp_path / "one.onnx"
    zero = np.array(1, ml_dtypes.int4)
    onnx.save(model_of("QuantizeLinear", [x, value(0.25), zero], constant=(1, 2), opset=21), str(path))
    np.testing.assert_array_equal(tmconvert.load(path)(x), np.clip(np.rint(x / 0.25) + 1, -8, 7))
