"""Operators as they were before opset 7 and soon after, with attributes in place of inputs.

ONNX Runtime runs them at their own opset, or the same model after ``onnx.version_converter``; what neither
does is written in NumPy, from the operator's page.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tmconvert
from tests.frontends.onnx.one_node import check, floats, integers, value


def computed(
    tmp_path: Any, op: str, inputs: list[np.ndarray], opset: int, ir: int = 3, **options: Any
) -> Any:
    """Returns what our reference computes for a node; the inputs but the first are initializers, which older
    files list among the inputs, too.
    """
    names = [f"i{number}" for number in range(len(inputs))]
    outputs = options.pop("outputs", 1)
    node = helper.make_node(op, names, [f"y{number}" for number in range(outputs)], **options)
    graph = helper.make_graph(
        [node],
        "old",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, inputs, strict=True)
        ],
        [onnx.ValueInfoProto(name="y0")],
        [numpy_helper.from_array(array, name) for name, array in zip(names[1:], inputs[1:], strict=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
    onnx.save(model, str(tmp_path / "old.onnx"))
    return np.asarray(tmconvert.load(tmp_path / "old.onnx")(inputs[0]))


X = floats(2, 3, 4, 4)
ARITHMETIC = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power}


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize(
    ("shape", "axis", "aligned"),
    [
        ((3,), 1, (3, 1, 1)),
        ((3, 4), 1, (3, 4, 1)),
        ((4,), -1, (4,)),
        ((4, 4), None, (4, 4)),
        ((2,), 0, (2, 1, 1, 1)),
        ((), None, ()),
    ],
)
def test_broadcasting_along_an_axis(tmp_path, op, opset, shape, axis, aligned):
    x, other = np.abs(X) + 0.5, np.abs(floats(*shape)) + 0.5
    given = {} if axis is None else {"axis": axis}
    made = computed(tmp_path, op, [x, other], opset, broadcast=1, **given)
    np.testing.assert_allclose(made, ARITHMETIC[op](x, other.reshape(aligned)), rtol=1e-5)


@pytest.mark.parametrize(("op", "of"), [("Greater", np.greater), ("Less", np.less), ("Equal", np.equal)])
def test_comparisons_along_an_axis(tmp_path, op, of):
    x = integers(0, 3, 2, 3, 4, dtype=np.int32)
    other = integers(0, 3, 3, dtype=np.int32)
    made = computed(tmp_path, op, [x, other], 1, broadcast=1, axis=1)
    np.testing.assert_array_equal(made, of(x, other[:, None]))


def test_gemm_with_a_vector(tmp_path):
    a, b, c = floats(3, 4), floats(5, 4), floats(5)
    made = computed(tmp_path, "Gemm", [a, b, c], 1, broadcast=1, transB=1, alpha=0.5, beta=2.0)
    np.testing.assert_allclose(made, 0.5 * a @ b.T + 2 * c, rtol=1e-4, atol=1e-5)


ATTRIBUTES: dict[str, tuple[str, list[np.ndarray], int, dict[str, Any], Any]] = {
    "reshape": ("Reshape", [X], 1, {"shape": [0, -1]}, X.reshape(2, -1)),
    "pad": (
        "Pad",
        [X],
        1,
        {"paddings": [0, 0, 1, 0, 0, 0, 0, 2], "value": 3.0},
        np.pad(X, [(0, 0), (0, 0), (1, 0), (0, 2)], constant_values=3),
    ),
    "pad2": (
        "Pad",
        [X],
        2,
        {"pads": [0, 0, 1, 0, 0, 0, 0, 2], "mode": "edge"},
        np.pad(X, [(0, 0), (0, 0), (1, 0), (0, 2)], "edge"),
    ),
    "clip": ("Clip", [X], 1, {"min": -0.5, "max": 0.25}, X.clip(-0.5, 0.25)),
    "clip below": ("Clip", [X], 6, {"min": 0.1}, X.clip(0.1, None)),
    "upsample": (
        "Upsample",
        [X],
        1,
        {"height_scale": 2.0, "width_scale": 3.0, "mode": "nearest"},
        X.repeat(2, 2).repeat(3, 3),
    ),
    "upsample7": ("Upsample", [X], 7, {"scales": [1.0, 1.0, 2.0, 2.0]}, X.repeat(2, 2).repeat(2, 3)),
    "dropout": ("Dropout", [X], 1, {"is_test": 1, "ratio": 0.5}, X),
    "dropout6": ("Dropout", [X], 6, {"is_test": 1}, X),
    "dropout7": ("Dropout", [X], 7, {"ratio": 0.5}, X),
    "cast": ("Cast", [X], 1, {"to": "INT32"}, X.astype(np.int32)),
    "concat": ("Concat", [X, X], 1, {}, np.concatenate([X, X], 1)),
    "slice": ("Slice", [X], 1, {"starts": [1, -2], "ends": [1000, -1], "axes": [1, 3]}, X[:, 1:, :, -2:-1]),
    "softmax": ("Softmax", [X], 1, {"axis": 2}, np.exp(X) / np.exp(X).sum((2, 3), keepdims=True)),
    "squeeze": ("Squeeze", [X[:1]], 1, {"axes": [0]}, X[0]),
    "unsqueeze": ("Unsqueeze", [X], 1, {"axes": [0, 3]}, X[None, :, :, None]),
    "sum": ("ReduceSum", [X], 1, {"axes": [1], "keepdims": 0}, X.sum(1)),
    "topk": ("TopK", [X], 1, {"k": 2, "axis": 1}, -np.sort(-X, 1)[:, :2]),
    "tile": ("Tile", [X, value(2.0), value(1.0)], 1, {}, np.tile(X, (1, 2, 1, 1))),
    "split": ("Split", [X], 2, {"axis": 1, "split": [1, 2], "outputs": 2}, X[:, :1]),
    "argmax": ("ArgMax", [X], 1, {"axis": 1, "keepdims": 0}, X.argmax(1)),
    "mean": ("Mean", [X, X * 2, X * 3], 1, {}, X * 2),
    "selu": ("Selu", [X], 1, {}, 1.0507 * np.where(X > 0, X, 1.6732 * (np.exp(X) - 1))),
    "prelu": (
        *("PRelu", [X, np.arange(3, dtype=np.float32)], 6, {}),
        np.where(X < 0, X * np.arange(3, dtype=np.float32)[:, None, None], X),
    ),
    "lp pool": ("GlobalLpPool", [X], 1, {"p": 2.0}, np.sqrt((X**2).sum((2, 3), keepdims=True))),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_in_place_of_inputs(tmp_path, name):
    op, inputs, opset, options, wanted = ATTRIBUTES[name]
    made = computed(tmp_path, op, inputs, opset, **options)
    assert made.dtype == wanted.dtype
    np.testing.assert_allclose(made, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("opset", "options"),
    [
        (1, {"is_test": 1, "spatial": 1, "consumed_inputs": [0, 0, 0, 1, 1]}),
        (6, {"is_test": 1}),
        (7, {}),
    ],
)
def test_batch_normalization(tmp_path, opset, options):
    scale, bias, mean, variance = floats(3), floats(3), floats(3), np.abs(floats(3)) + 0.5
    made = computed(tmp_path, "BatchNormalization", [X, scale, bias, mean, variance], opset, **options)
    scale, bias, mean, variance = (each[:, None, None] for each in (scale, bias, mean, variance))
    wanted = scale * (X - mean) / np.sqrt(variance + 1e-5) + bias
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5)


def test_batch_normalization_that_is_not_spatial(tmp_path):
    inputs = [X, *(np.abs(floats(3, 4, 4)) + 0.5 for _ in range(4))]
    made = computed(tmp_path, "BatchNormalization", inputs, 7, spatial=0)
    scale, bias, mean, variance = inputs[1:]
    wanted = scale * (X - mean) / np.sqrt(variance + 1e-5) + bias
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5)


# ---- operators of opset 1 that the standard dropped, and that ONNX Runtime still runs

EXPERIMENTAL = {
    "Affine": {"alpha": 2.0, "beta": -0.5},
    "ImageScaler": {"scale": 0.5, "bias": [0.1, -0.2, 0.3]},
    "Crop": {"border": [1, 0, 1, 2]},
    "ParametricSoftplus": {"alpha": 2.0, "beta": 0.5},
    "ScaledTanh": {"alpha": 2.0, "beta": 0.5},
    "ThresholdedRelu": {"alpha": 0.3},
    "MeanVarianceNormalization": {"across_channels": 0, "normalize_variance": 1},
}


@pytest.mark.parametrize("op", EXPERIMENTAL)
def test_experimental_operators(tmp_path, op):
    check(tmp_path, op, [X], opset=8, **EXPERIMENTAL[op])


def test_a_file_of_the_first_version(tmp_path):
    """Version 3 of the format, without an opset: it is opset 1."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "b"], ["y"], broadcast=1, axis=1)],
        "old",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4, 4])],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.arange(3, dtype=np.float32), "b")],
    )
    model = helper.make_model(graph, ir_version=3)
    del model.opset_import[:]
    onnx.save(model, str(tmp_path / "old.onnx"))
    made = tmconvert.load(tmp_path / "old.onnx")(X)
    np.testing.assert_array_equal(made, X + np.arange(3, dtype=np.float32)[:, None, None])
