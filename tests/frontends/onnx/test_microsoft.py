"""Fused operators of com.microsoft."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.onnx.one_node import check, floats, integers, value

BATCH, LENGTH = 2, 5


def fused(tmp_path, op, *inputs, **options):
    check(tmp_path, op, inputs, domain="com.microsoft", **options)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("Relu", None),
        ("Tanh", None),
        ("Sigmoid", None),
        ("LeakyRelu", [0.2]),
        ("Clip", [-0.3, 0.6]),
        ("HardSigmoid", [0.3, 0.4]),
    ],
)
def test_fused_convolutions(tmp_path, name, params):
    options = {"activation": name} | ({"activation_params": params} if params else {})
    x, weight, bias = floats(1, 4, 6, 6), floats(8, 4, 3, 3), floats(8)
    fused(tmp_path, "FusedConv", x, weight, bias, pads=[1] * 4, **options)


def test_fused_convolution_with_an_addend(tmp_path):
    inputs = floats(1, 4, 6, 6), floats(8, 4, 3, 3), floats(8), floats(1, 8, 6, 6)
    fused(tmp_path, "FusedConv", *inputs, pads=[1] * 4, activation="Relu")


@pytest.mark.parametrize("turned", [0, 1])
def test_fused_products(tmp_path, turned):
    left = floats(2, 4, 3) if turned else floats(2, 3, 4)
    fused(tmp_path, "FusedMatMul", left, floats(2, 5, 4), alpha=0.5, transA=turned, transB=1)
    options = {"transBatchA": 1, "transBatchB": 1, "transA": turned, "transB": 1 - turned}
    fused(tmp_path, "FusedMatMul", floats(3, 2, 4), floats(3, 2, 4), **options)
    fused(tmp_path, "FusedGemm", floats(3, 4), floats(4, 5), floats(5), activation="Relu")


@pytest.mark.parametrize("op", ["Gelu", "BiasGelu", "FastGelu", "QuickGelu"])
def test_activations(tmp_path, op):
    others = [floats(4)] if op in ("BiasGelu", "FastGelu") else []
    fused(tmp_path, op, floats(3, 4), *others)


def test_normalizations_of_sums(tmp_path):
    x, skip, gamma, beta, bias = floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), floats(8)
    some = {"outputs": 4, "skipped": (1, 2)}
    fused(tmp_path, "SkipLayerNormalization", x, skip, gamma, beta, bias, **some)
    fused(tmp_path, "SkipLayerNormalization", x, skip[:1], gamma, beta, bias, **some)
    fused(tmp_path, "SkipSimplifiedLayerNormalization", x, skip, gamma, bias, **some)


def test_embeddings(tmp_path):
    words, segments = integers(0, 9, 2, 5, dtype=np.int32), integers(0, 2, 2, 5, dtype=np.int32)
    tables = floats(9, 8), floats(7, 8), floats(2, 8), floats(8), floats(8)
    mask = value([[1, 1, 1, 0, 0], [1] * 5], np.int32)
    fused(tmp_path, "EmbedLayerNormalization", words, segments, *tables, mask, outputs=3)


def seen(*shape: int) -> np.ndarray:
    return integers(0, 2, *shape, dtype=np.int32)


@pytest.mark.parametrize(
    ("others", "options"),
    [
        ((), {}),
        ((), {"unidirectional": 1}),
        ((), {"scale": 0.3}),
        ((value([3, 5], np.int32),), {}),
        ((seen(BATCH, LENGTH),), {}),
        ((seen(BATCH, LENGTH, LENGTH),), {}),
        ((seen(BATCH, LENGTH), None, floats(1, 2, LENGTH, LENGTH)), {"mask_filter_value": -50.0}),
        ((None, floats(2, BATCH, 2, 3, 4)), {"outputs": 2, "unidirectional": 1}),
    ],
)
def test_attention(tmp_path, others, options):
    inputs = floats(BATCH, LENGTH, 6), floats(6, 24), floats(24)
    fused(tmp_path, "Attention", *inputs, *others, num_heads=2, **options)


def test_attention_with_wider_values(tmp_path):
    inputs = floats(BATCH, LENGTH, 6), floats(6, 28), floats(28)
    fused(tmp_path, "Attention", *inputs, num_heads=2, qkv_hidden_sizes=[8, 8, 12])


@pytest.mark.parametrize(
    ("others", "options"),
    [
        ((), {}),
        ((), {"unidirectional": 1}),
        ((floats(24),), {}),
        ((floats(24), seen(BATCH, LENGTH)), {}),
        ((None, value([4, 5], np.int32)), {}),
        ((None, None, floats(1, 2, LENGTH, LENGTH)), {"scale": 0.2}),
        ((floats(24), None, None, floats(BATCH, 2, 3, 4), floats(BATCH, 2, 3, 4)), {"outputs": 3}),
    ],
)
def test_multi_head_attention(tmp_path, others, options):
    inputs = [floats(BATCH, LENGTH, 8) for _ in range(3)]
    fused(tmp_path, "MultiHeadAttention", *inputs, *others, num_heads=2, **options)


@pytest.mark.parametrize(
    ("past", "new", "options"),
    [
        (0, 5, {}),
        (0, 5, {"do_rotary": 1}),
        (0, 5, {"do_rotary": 1, "rotary_interleaved": 1}),
        (4, 1, {"do_rotary": 1}),
        (4, 3, {}),
        (0, 6, {"local_window_size": 3}),
        (6, 1, {"local_window_size": 3}),
        (0, 5, {"softcap": 2.0}),
    ],
)
def test_group_query_attention(tmp_path, past, new, options):
    heads, shared, width = 4, 2, 16
    inputs = [
        floats(1, new, heads * width),
        floats(1, new, shared * width),
        floats(1, new, shared * width),
        floats(1, shared, past, width),
        floats(1, shared, past, width),
        value([past + new - 1], np.int32),
        value(past + new, np.int32),
    ]
    if "do_rotary" in options:
        inputs += [np.cos(floats(32, width // 2)), np.sin(floats(32, width // 2))]
    some = {
        "num_heads": heads,
        "kv_num_heads": shared,
        "outputs": 3,
        "constant": (3, 4, 6) if not past else (6,),
    }
    fused(tmp_path, "GroupQueryAttention", *inputs, **some, **options)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(tmp_path, interleaved):
    tables = np.cos(floats(20, 4)), np.sin(floats(20, 4))
    places = integers(0, 20, 2, 3)
    fused(tmp_path, "RotaryEmbedding", floats(2, 3, 16), places, *tables, interleaved=interleaved)
    fused(
        tmp_path,
        "RotaryEmbedding",
        floats(2, 2, 3, 8),
        value([4], np.int64),
        *tables,
        interleaved=interleaved,
    )


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("has_zero_points", [False, True])
def test_weights_of_few_bits(tmp_path, bits, has_zero_points):
    depth, rows, block = 40, 6, 16
    blocks = -(-depth // block)
    weight = integers(0, 256, rows, blocks, block * bits // 8, dtype=np.uint8)
    scales = floats(rows * blocks) ** 2 + np.float32(0.01)
    zeros = integers(0, 256, rows * ((blocks * bits + 7) // 8), dtype=np.uint8) if has_zero_points else None
    inputs = [floats(3, depth), weight, scales] + ([zeros] if has_zero_points else [])
    sizes = {"K": depth, "N": rows, "bits": bits, "block_size": block}
    fused(tmp_path, "MatMulNBits", *inputs, constant=(1, 2, 3), tolerance=1e-3, **sizes)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("has_zero_points", [False, True])
def test_rows_of_quantized_tables(tmp_path, bits, has_zero_points):
    table = integers(0, 256, 10, 64 * bits // 8, dtype=np.uint8)
    inputs = [table, integers(0, 10, 2, 3), floats(10, 4)]
    inputs += [integers(0, 256, 10, 4 * bits // 8, dtype=np.uint8)] if has_zero_points else []
    options = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}
    fused(tmp_path, "GatherBlockQuantized", *inputs, constant=(0, 2, 3), **options)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quantized_attention(tmp_path, dtype):
    x, weight = integers(0, 256, 2, 5, 8, dtype=np.uint8), integers(0, 60, 8, 24, dtype=dtype)
    scales, zeros = [value(0.02), value(0.01)], [value(9, np.uint8), value(3, dtype)]
    inputs = [x, weight, floats(24), *scales, value([3, 5], np.int32), *zeros]
    options = {"num_heads": 2, "constant": (1, 2, 3, 4, 6, 7), "tolerance": 1e-3}
    fused(tmp_path, "QAttention", *inputs, unidirectional=1, **options)


@pytest.mark.slow
def test_others(tmp_path):
    pool = {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2]}
    fused(tmp_path, "NhwcMaxPool", integers(0, 256, 1, 6, 6, 3, dtype=np.uint8), **pool)
    fused(tmp_path, "ExpandDims", floats(3, 4), value(1, np.int32), constant=(1,))
    fused(tmp_path, "GatherND", floats(3, 4), value([[0, 1], [2, 3]], np.int64))
    fused(tmp_path, "Pad", floats(2, 3), value([0, 1, 2, 0], np.int64), value(1.5), constant=(1, 2))
    fused(tmp_path, "Inverse", floats(2, 3, 3), tolerance=1e-3)
    fused(tmp_path, "CDist", floats(4, 3), floats(5, 3), metric="euclidean", tolerance=1e-3)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_dynamically_quantized_lstm(tmp_path, direction, per_channel):
    count, width, hidden = 1 + (direction == "bidirectional"), 3, 5
    shape = (count, 4 * hidden) if per_channel else (count,)
    weights = [integers(-128, 128, count, size, 4 * hidden, dtype=np.int8) for size in (width, hidden)]
    scales = [np.abs(floats(*shape)) / 100 for _ in weights]
    zeros = [
        np.zeros(shape, np.int8) if per_channel else integers(-9, 9, *shape, dtype=np.int8) for _ in weights
    ]
    states = floats(count, 1, hidden), floats(count, 1, hidden)  # of one row: others are quantized by thread
    others = [floats(count, 8 * hidden), None, *states, None]
    fused(
        tmp_path,
        "DynamicQuantizeLSTM",
        *(floats(1, 1, width), *weights, *others, scales[0], zeros[0], scales[1], zeros[1]),
        outputs=3,
        constant=(1, 2, 8, 9, 10, 11),
        hidden_size=hidden,
        direction=direction,
    )
