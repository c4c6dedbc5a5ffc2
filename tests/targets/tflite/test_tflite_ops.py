"""Operators written to TFLite, run in LiteRT, against NumPy and loops. Images are NHWC."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.tflite.writer import write_tflite


def floats(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def ints(*numbers: Any) -> np.ndarray:
    return np.array(numbers, np.int32)


def named(name: str, data: np.ndarray, constant: bool = False) -> Value:
    return Value(name, data.dtype, data.shape, data if constant else None)


def run(operator: Operator, fed: dict[str, np.ndarray]) -> list[np.ndarray]:
    inputs = [v for v in operator.inputs if v is not None and v.name in fed]
    names = [value.name for value in operator.outputs]
    graph = TargetGraph("tflite", 20, "net", inputs, operator.outputs, [operator], list(fed), names)
    file = io.BytesIO()
    write_tflite(graph, file)
    runner = Interpreter(model_content=file.getvalue(), num_threads=1).get_signature_runner()
    results = runner(**fed)
    return [np.asarray(results[name]) for name in names]


def check(type: str, live: list[np.ndarray], constants: list[Any], expected: Any, **attributes: Any) -> None:
    """Run the operator on ``live`` inputs followed by constants (None: left out)."""
    outputs = expected if isinstance(expected, list) else [expected]
    fed = {f"x{index}": data for index, data in enumerate(live)}
    values: list[Value | None] = [named(name, data) for name, data in fed.items()]
    values += [None if c is None else named(f"c{i}", c, constant=True) for i, c in enumerate(constants)]
    results = [named(f"y{index}", np.asarray(data)) for index, data in enumerate(outputs)]
    got = run(Operator(type, values, results, attributes, type.lower()), fed)
    for one, wanted in zip(got, outputs, strict=True):
        assert one.shape == np.shape(wanted)
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-5)


def convolved(x: np.ndarray, w: np.ndarray, stride: tuple[int, int], dilation: tuple[int, int]) -> Any:
    """VALID convolution by loops, w being [O, kh, kw, C]."""
    (n, h, width, _), (o, kh, kw, _) = x.shape, w.shape
    rows = (h - (kh - 1) * dilation[0] - 1) // stride[0] + 1
    columns = (width - (kw - 1) * dilation[1] - 1) // stride[1] + 1
    y = np.zeros((n, rows, columns, o))
    for i, j in np.ndindex(rows, columns):
        top, left = i * stride[0], j * stride[1]
        window = x[:, top :: dilation[0], left :: dilation[1]][:, :kh, :kw]
        y[:, i, j] = np.einsum("nhwc,ohwc->no", window.astype(np.float64), w)
    return y.astype(np.float32)


def pooled(x: np.ndarray, size: tuple[int, int], stride: tuple[int, int], reduce: Any) -> np.ndarray:
    """VALID pooling by loops."""
    rows = (x.shape[1] - size[0]) // stride[0] + 1
    columns = (x.shape[2] - size[1]) // stride[1] + 1
    y = np.zeros((x.shape[0], rows, columns, x.shape[3]), np.float32)
    for i, j in np.ndindex(rows, columns):
        top, left = i * stride[0], j * stride[1]
        y[:, i, j] = reduce(x[:, top : top + size[0], left : left + size[1]], axis=(1, 2))
    return y


CONV = {"padding": "VALID", "stride_h": 2, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 3}


def test_conv_2d_with_a_transposed_weight() -> None:
    x, bias = floats(0, 2, 9, 11, 3), floats(1, 5)
    weight = floats(2, 5, 3, 4, 2).transpose(0, 2, 3, 1)  # OIHW as OHWI, not contiguous
    assert not weight.flags.c_contiguous
    expected = np.maximum(convolved(x, weight, (2, 1), (1, 3)) + bias, 0)
    check("CONV_2D", [x], [weight, bias], expected, fused_activation_function="RELU", **CONV)


def test_grouped_conv_2d() -> None:
    x, weight, bias = floats(3, 2, 9, 11, 6), floats(4, 10, 4, 2, 3), floats(5, 10)
    halves = [
        convolved(x[..., :3], weight[:5], (2, 1), (1, 3)),
        convolved(x[..., 3:], weight[5:], (2, 1), (1, 3)),
    ]
    check("CONV_2D", [x], [weight, bias], np.concatenate(halves, 3) + bias, **CONV)


def test_depthwise_conv_2d() -> None:
    x, weight, bias = floats(6, 2, 9, 11, 3), floats(7, 1, 4, 2, 6), floats(8, 6)
    channels = [
        convolved(x[..., c : c + 1], weight[..., c * 2 : c * 2 + 2].transpose(3, 1, 2, 0), (1, 1), (2, 3))
        for c in range(3)
    ]
    options = {**CONV, "stride_h": 1, "dilation_h_factor": 2, "depth_multiplier": 2}
    check("DEPTHWISE_CONV_2D", [x], [weight, bias], np.concatenate(channels, 3) + bias, **options)


def test_conv_3d() -> None:
    x, weight, bias = floats(9, 1, 4, 5, 6, 2), floats(10, 2, 3, 4, 2, 3), floats(11, 3)
    expected = np.zeros((1, 3, 3, 3, 3), np.float32)
    for d, i, j in np.ndindex(3, 3, 3):
        window = x[:, d : d + 2, i : i + 3, j : j + 4]
        expected[:, d, i, j] = np.einsum("ndhwc,dhwco->no", window, weight) + bias
    options = {"padding": "VALID", "stride_d": 1, "stride_h": 1, "stride_w": 1}
    check("CONV_3D", [x], [weight, bias], expected, **options)


def test_transpose_conv() -> None:
    x, weight, bias = floats(12, 2, 3, 4, 5), floats(13, 7, 2, 3, 5), floats(14, 7)
    expected = np.zeros((2, 6, 6, 7), np.float32) + bias
    for i, j in np.ndindex(3, 4):
        expected[:, i * 2 : i * 2 + 2, j : j + 3] += np.einsum("nc,ohwc->nhwo", x[:, i, j], weight)
    shape = named("shape", ints(*expected.shape), constant=True)
    values = [shape, named("w", weight, True), named("x", x), named("b", bias, True)]
    options = {"padding": "VALID", "stride_h": 2, "stride_w": 1}
    (got,) = run(Operator("TRANSPOSE_CONV", [*values], [named("y", expected)], {**options}, "up"), {"x": x})
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_fully_connected() -> None:
    x, weight, bias = floats(15, 2, 7), floats(16, 7, 5).T, floats(17, 5)
    check("FULLY_CONNECTED", [x], [weight, bias], x @ weight.T + bias)
    check("FULLY_CONNECTED", [x], [weight, None], x @ weight.T)
    clipped = np.clip(x @ weight.T, 0, 6)
    check("FULLY_CONNECTED", [x], [weight], clipped, fused_activation_function="RELU6")


def test_fully_connected_of_rank_3() -> None:
    x, weight, bias = floats(18, 2, 3, 7), floats(19, 5, 7), floats(20, 5)
    check("FULLY_CONNECTED", [x], [weight, bias], x @ weight.T + bias, keep_num_dims=True)
    check("FULLY_CONNECTED", [x], [weight, bias], (x @ weight.T + bias).reshape(6, 5), keep_num_dims=False)


@pytest.mark.parametrize(("type", "reduce"), [("MAX_POOL_2D", np.max), ("AVERAGE_POOL_2D", np.mean)])
def test_pools(type: str, reduce: Any) -> None:
    x = floats(21, 2, 9, 11, 3)
    options = {"stride_h": 2, "stride_w": 1, "filter_height": 3, "filter_width": 4}
    check(type, [x], [], pooled(x, (3, 4), (2, 1), reduce), padding="VALID", **options)


def test_arithmetic_broadcasts_and_fuses() -> None:
    x, y = floats(22, 2, 3, 5, 7), floats(23, 3, 1, 7)
    check("ADD", [x, y], [], np.maximum(x + y, 0), fused_activation_function="RELU")
    check("SUB", [x], [y], np.clip(x - y, -1, 1), fused_activation_function="RELU_N1_TO_1")
    check("MUL", [x, y], [], x * y, fused_activation_function="NONE")
    check("DIV", [x], [np.abs(y) + 1], x / (np.abs(y) + 1))
    check("MAXIMUM", [x, y], [], np.maximum(x, y))
    check("SQUARED_DIFFERENCE", [x, y], [], (x - y) ** 2)
    check("POW", [np.abs(x)], [np.array([2.5], np.float32)], np.abs(x) ** np.float32(2.5))


UNARY: dict[str, Any] = {
    "RELU": lambda x: np.maximum(x, 0),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
    "TANH": np.tanh,
    "EXP": np.exp,
    "ABS": np.abs,
    "NEG": np.negative,
    "FLOOR": np.floor,
    "SIN": np.sin,
    "SQUARE": np.square,
    "SIGN": np.sign,
    "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "ELU": lambda x: np.where(x > 0, x, np.expm1(x)),
}


@pytest.mark.parametrize("type", UNARY)
def test_unary(type: str) -> None:
    x = 3 * floats(24, 2, 3, 5, 7)
    check(type, [x], [], UNARY[type](x))


def test_activations_with_options() -> None:
    x, alpha = 3 * floats(25, 2, 3, 5, 7), np.abs(floats(26, 1, 1, 7))
    check("LEAKY_RELU", [x], [], np.where(x > 0, x, 0.25 * x), alpha=0.25)
    check("PRELU", [x], [alpha], np.where(x > 0, x, alpha * x))
    inner = np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x**3)
    check("GELU", [x], [], 0.5 * x * (1 + np.tanh(inner)), approximate=True)


def test_softmax_has_its_beta() -> None:
    x = floats(27, 2, 3, 5)
    for beta in (1.0, 0.5):
        powers = np.exp(beta * x.astype(np.float64))
        expected = (powers / powers.sum(-1, keepdims=True)).astype(np.float32)
        check("SOFTMAX", [x], [], expected, beta=beta)


def test_moving_of_data() -> None:
    x = floats(28, 2, 3, 5, 7)
    check("RESHAPE", [x], [ints(5, 6, 7)], x.reshape(5, 6, 7), new_shape=[5, 6, 7])
    check("TRANSPOSE", [x], [ints(3, 0, 2, 1)], x.transpose(3, 0, 2, 1))
    check("SQUEEZE", [x[:, :1]], [], x[:, 0], squeeze_dims=[1])
    check("EXPAND_DIMS", [x], [ints(2)[0].reshape(())], x[:, :, None])
    check("TILE", [x], [ints(1, 2, 1, 3)], np.tile(x, (1, 2, 1, 3)))
    check("REVERSE_V2", [x], [ints(2)], x[:, :, ::-1])
    check("GATHER", [x], [ints(4, 1, 1)], x[:, :, [4, 1, 1]], axis=2)
    check("SLICE", [x], [ints(0, 1, 2, 3), ints(2, 2, 3, 1)], x[:, 1:3, 2:5, 3:4])
    ends = [ints(1, 0, 0, 6), ints(2, 3, 5, 0), ints(1, 2, 1, -3)]
    check("STRIDED_SLICE", [x], ends, x[1, ::2, :, 6:0:-3], shrink_axis_mask=1, begin_mask=2)


def test_joining_and_parting() -> None:
    x, y = floats(29, 2, 3, 5, 7), floats(30, 2, 3, 4, 7)
    check("CONCATENATION", [x, y], [], np.concatenate([x, y], 2), axis=2)
    check("PACK", [x[:, :, 0], y[:, :, 0]], [], np.stack([x[:, :, 0], y[:, :, 0]], 1), axis=1, values_count=2)
    check("UNPACK", [x], [], [x[:, 0], x[:, 1], x[:, 2]], axis=1, num=3)
    check("SPLIT_V", [x], [ints(2, 5), ints(3)], [x[..., :2], x[..., 2:]], num_splits=2)


def test_padding() -> None:
    x, pads = floats(31, 2, 3, 5, 7), np.array([[0, 0], [1, 2], [2, 0], [0, 3]], np.int32)
    check("PAD", [x], [pads], np.pad(x, pads))
    check("PADV2", [x], [pads, np.array(-9, np.float32)], np.pad(x, pads, constant_values=-9))
    pads = np.array([[0, 0], [1, 2], [2, 0], [0, 0]], np.int32)
    check("MIRROR_PAD", [x], [pads], np.pad(x, pads, mode="reflect"), mode="REFLECT")
    check("MIRROR_PAD", [x], [pads], np.pad(x, pads, mode="symmetric"), mode="SYMMETRIC")


def test_reductions() -> None:
    x = floats(32, 2, 3, 5, 7)
    check("MEAN", [x], [ints(1, 2)], x.mean((1, 2)), keep_dims=False)
    check("SUM", [x], [ints(1, 3)], x.sum((1, 3), keepdims=True), keep_dims=True)
    check("REDUCE_MAX", [x], [ints(0, 1, 2, 3)], x.max(), keep_dims=False)
    check("ARG_MAX", [x], [ints(2)], x.argmax(2).astype(np.int32), output_type="INT32")
    check("ARG_MIN", [x], [ints(3)], x.argmin(3).astype(np.int64), output_type="INT64")
    check("CUMSUM", [x], [ints(2)[0].reshape(())], np.cumsum(x[:, :, ::-1], 2)[:, :, ::-1], reverse=True)


def test_resizing() -> None:
    x = floats(33, 2, 3, 5, 7)

    def resampled(size: int, axis: int, data: np.ndarray) -> np.ndarray:
        source = (np.arange(size) + 0.5) * data.shape[axis] / size - 0.5
        low = np.floor(source).astype(int)
        weight = np.expand_dims(source - low, list(range(1, data.ndim - axis)))
        edges = [np.take(data, np.clip(low + k, 0, data.shape[axis] - 1), axis) for k in (0, 1)]
        return edges[0] * (1 - weight) + edges[1] * weight

    expected = resampled(11, 2, resampled(4, 1, x))
    check("RESIZE_BILINEAR", [x], [ints(4, 11)], expected.astype(np.float32), half_pixel_centers=True)
    rows, columns = np.arange(6) * 3 // 6, np.arange(10) * 5 // 10
    check("RESIZE_NEAREST_NEIGHBOR", [x], [ints(6, 10)], x[:, rows][:, :, columns])


def test_blocks() -> None:
    x = floats(34, 2, 4, 6, 12)
    blocks = x.reshape(2, 4, 6, 2, 2, 3).transpose(0, 1, 3, 2, 4, 5)
    check("DEPTH_TO_SPACE", [x], [], blocks.reshape(2, 8, 12, 3), block_size=2)
    squares = x.reshape(2, 2, 2, 3, 2, 12).transpose(0, 1, 3, 2, 4, 5)
    check("SPACE_TO_DEPTH", [x], [], squares.reshape(2, 2, 3, 48), block_size=2)


def test_batch_matmul() -> None:
    x, y = floats(35, 2, 3, 5, 7), floats(36, 2, 3, 4, 7)
    check("BATCH_MATMUL", [x, y], [], x @ y.swapaxes(2, 3), adj_y=True)
    check("BATCH_MATMUL", [x.swapaxes(2, 3).copy(), y], [], x @ y.swapaxes(2, 3), adj_x=True, adj_y=True)


def test_choices() -> None:
    x, y = floats(37, 2, 3, 5), floats(38, 3, 5)
    check("SELECT_V2", [x > 0, x, y], [], np.where(x > 0, x, y))
    check("LESS", [x, y], [], x < y)
    check("ONE_HOT", [ints(2, 0)], one_hot_constants(), np.eye(3, dtype=np.float32)[[2, 0]], axis=-1)
    order = np.argsort(-x, axis=-1)[..., :2]
    best = np.take_along_axis(x, order, -1)
    check("TOPK_V2", [x], [np.int32(2).reshape(())], [best, order.astype(np.int32)])


def one_hot_constants() -> list[np.ndarray]:
    return [np.array(3, np.int32), np.array(1, np.float32), np.array(0, np.float32)]


def test_cast_between_types() -> None:
    x = floats(39, 2, 3, 5) * 10
    for dtype in (np.int32, np.int64, np.int8, np.float64, np.bool_, np.uint8):
        data = np.abs(x) if dtype is np.uint8 else x
        check("CAST", [data], [], data.astype(dtype))
    check("DEQUANTIZE", [x.astype(np.float16)], [], x.astype(np.float16).astype(np.float32))


def test_normalizations() -> None:
    x = floats(40, 2, 3, 5, 7)
    lengths = np.sqrt((x**2).sum(-1, keepdims=True))
    check("L2_NORMALIZATION", [x], [], x / lengths, fused_activation_function="NONE")
    squares = np.stack([(x[..., max(c - 1, 0) : c + 2] ** 2).sum(-1) for c in range(7)], -1)
    expected = x / (2 + 0.5 * squares) ** 0.75
    options = {"radius": 1, "bias": 2, "alpha": 0.5, "beta": 0.75}
    check("LOCAL_RESPONSE_NORMALIZATION", [x], [], expected, **options)


def test_lstm_keeps_its_state_in_variable_tensors() -> None:
    steps, batch, size, cells = 4, 2, 5, 3
    x = floats(41, steps, batch, size)
    weights = [floats(42 + gate, cells, size) for gate in range(4)]
    recurrent = [floats(46 + gate, cells, cells) for gate in range(4)]
    biases = [floats(50 + gate, cells) for gate in range(4)]
    state, memory = np.zeros((batch, cells)), np.zeros((batch, cells))
    expected = np.zeros((steps, batch, cells), np.float32)
    for step in range(steps):
        parts = zip(weights, recurrent, biases, strict=True)
        i, f, g, o = (x[step] @ w.T + state @ r.T + b for w, r, b in parts)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        memory = f * memory + i * np.tanh(g)
        state = o * np.tanh(memory)
        expected[step] = state
    constants = {f"k{n}": array for n, array in enumerate([*weights, *recurrent])}
    inputs: list[Value | None] = [named("x", x), *(named(n, a, True) for n, a in constants.items())]
    inputs += [None, None, None, *(named(f"b{n}", b, True) for n, b in enumerate(biases)), None, None]
    inputs += [Value(name, np.dtype("f4"), (batch, cells)) for name in ("output_state", "cell_state")]
    inputs += [None] * 4
    options = {"fused_activation_function": "TANH", "time_major": True}
    lstm = Operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [named("y", expected)], {**options}, "lstm")
    (got,) = run(lstm, {"x": x})
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
