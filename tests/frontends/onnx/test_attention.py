"""Attention and rotary embeddings, losses, and Fourier transforms of ai.onnx."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.onnx.one_node import check, floats, integers, value

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 4, 3, 5, 8


def mask(*shape):
    """A mask that hides a third of the keys, but never the first one."""
    made = integers(0, 3, *shape) > 0
    made[..., 0] = True
    return made


@pytest.mark.parametrize("shared", [HEADS, 2, 1])
@pytest.mark.parametrize(
    ("others", "options"),
    [
        ((), {}),
        ((), {"scale": 0.3, "softcap": 2.0}),
        ((), {"is_causal": 1}),
        ((mask(QUERIES, KEYS),), {}),
        ((mask(BATCH, 1, QUERIES, KEYS),), {"softcap": 2.0}),
        ((floats(BATCH, HEADS, QUERIES, KEYS),), {}),
        ((floats(QUERIES, KEYS),), {"is_causal": 1}),
    ],
)
def test_attention(tmp_path, others, options, shared):
    inputs = [floats(BATCH, HEADS, QUERIES, WIDTH), *(floats(BATCH, shared, KEYS, WIDTH) for _ in range(2))]
    check(tmp_path, "Attention", [*inputs, *others], opset=23, **options)


@pytest.mark.parametrize("mode", [0, 1, 3])  # in 2 ONNX Runtime has the lowest number for -inf
def test_scores_and_caches(tmp_path, mode):
    inputs = [
        floats(BATCH, QUERIES, HEADS * WIDTH),
        *(floats(BATCH, QUERIES, 2 * WIDTH) for _ in range(2)),
        None,
        *(floats(BATCH, 2, KEYS, WIDTH) for _ in range(2)),
    ]
    options = {"q_num_heads": HEADS, "kv_num_heads": 2, "qk_matmul_output_mode": mode, "is_causal": 1}
    check(tmp_path, "Attention", inputs, outputs=4, opset=23, **options)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(tmp_path, interleaved):
    tables, places = [np.cos(floats(20, 4)), np.sin(floats(20, 4))], integers(0, 20, 2, 3)
    options = {"opset": 23, "interleaved": interleaved}
    check(tmp_path, "RotaryEmbedding", [floats(2, 4, 3, 8), *tables, places], **options)
    check(tmp_path, "RotaryEmbedding", [floats(2, 3, 32), *tables, places], num_heads=4, **options)
    check(
        tmp_path, "RotaryEmbedding", [floats(2, 4, 3, 12), *tables, places], rotary_embedding_dim=8, **options
    )


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("options", [{}, {"ignore_index": 1}], ids=str)
@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
def test_losses(tmp_path, op, options, reduction):
    for shape in ((6, 4), (2, 4, 3, 5)):
        inputs = [floats(*shape), integers(0, 4, shape[0], *shape[2:])]
        check(tmp_path, op, inputs, reduction=reduction, **options)
        check(tmp_path, op, [*inputs, np.abs(floats(4))], reduction=reduction, **options)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("opset", [17, 20])
def test_fourier_transforms(tmp_path, opset, onesided):
    check(tmp_path, "DFT", [floats(2, 10, 1)], opset=opset, onesided=onesided)
    check(
        tmp_path,
        "DFT",
        [floats(2, 10, 1), value(16, np.int64)],
        constant=(1,),
        opset=opset,
        onesided=onesided,
    )
    inputs = [floats(2, 64, 1), value(8, np.int64), np.hanning(16).astype(np.float32), value(16, np.int64)]
    check(tmp_path, "STFT", inputs, constant=(1, 3), onesided=onesided)
    if not onesided:
        check(tmp_path, "DFT", [floats(2, 10, 2)], opset=opset, inverse=1)


def test_mel_weight_matrix(tmp_path):
    numbers = [value(8, np.int64), value(64, np.int64), value(16000, np.int64), value(20.0), value(7000.0)]
    check(tmp_path, "MelWeightMatrix", numbers, constant=range(5))
