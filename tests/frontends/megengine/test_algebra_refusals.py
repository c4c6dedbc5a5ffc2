"""What the adapters of linear algebra, sorting, recurrent layers and attention refuse, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontends.megengine.adapter_samples import Call, call, numbers
from tests.frontends.megengine.adapter_samples.linear_algebra import KEY, PACKED, QUERY, attention
from tests.frontends.megengine.test_adapter_samples import CALLS, built, module_of
from tmconvert.errors import Refusal

MATRIX, CUBE, WHOLE = numbers(3, 4), numbers(2, 3, 4), np.array([[1, 2], [3, 4]], np.int32)

REFUSED: list[tuple[str, Call, str]] = [
    ("math.matmul", call(MATRIX, MATRIX), "the rows of"),
    ("math.matmul", call(MATRIX, np.float32(2)), "the matrix product of"),
    ("math.matmul", call(numbers(3), MATRIX, transpose_a=True), "differ in length"),
    ("math.dot", call(MATRIX, MATRIX), "which are not both vectors"),
    ("math.matinv", call(MATRIX), "does not have square matrices in its last two axes"),
    ("math.norm", call(MATRIX), "the norm of a tensor of rank other than 1 needs an axis"),
    ("math.norm", call(MATRIX, "fro", 1), "the order of a norm must be a number, not 'fro'"),
    ("math.normalize", call(MATRIX), "needs an axis"),
    ("math.sort", call(CUBE), "sort supports only tensors of rank 1 and 2, not f32[2,3,4]"),
    ("math.argsort", call(np.array(2, np.float32)), "sort"),
    ("math.topk", call(CUBE, 1), "sort supports only tensors of rank 1 and 2"),
    ("math.topk", call(MATRIX, 0), "topk with k=0"),
    ("math.topk", call(MATRIX, 1.5), "k must be an integer, not 1.5"),
    ("nn.embedding", call(WHOLE, MATRIX, 0), "with padding_idx, max_norm or norm_type is not supported"),
    ("nn.embedding", call(WHOLE, CUBE), "is not a matrix"),
    ("nn.one_hot", call(WHOLE, "5"), "a number of classes must be an integer"),
    ("nn.one_hot", call(WHOLE, 0), "one_hot"),
    ("nn.indexing_one_hot", call(MATRIX, WHOLE, 1), "cannot be reshaped"),
    ("nn.logsumexp", call(MATRIX, 2), "axis 2 is out of range"),
    (
        "nn.multi_head_attention",
        attention(PACKED[:-1]),
        "the projections have 288 weights, but the parameter has 287 elements",
    ),
    ("nn.multi_head_attention", attention(PACKED, reslink=True), "bias_k, bias_v, add_zero_attn, reslink"),
    ("nn.multi_head_attention", attention(PACKED, (8, 8, 0, 8)), "projections of the sizes [8, 8, 0, 8]"),
    ("nn.multi_head_attention", attention(PACKED, (True, 8, 8, 8)), "of MegEngine 1.12.3"),
    ("nn.multi_head_attention", attention(PACKED, attn_mask=True), "of MegEngine 1.12.3"),
    (
        "nn.multi_head_attention",
        call(QUERY[0], KEY[0], KEY[0], 8, 2, 0.0, 0.0, PACKED),
        "expects inputs of rank 3 [N, L, E], got f32[3,8]",
    ),
]


@pytest.mark.parametrize(
    ("row", "each", "reason"), REFUSED, ids=[f"{row[0]}.{i}" for i, row in enumerate(REFUSED)]
)
def test_refused(row: str, each: Call, reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        built(f"megengine.functional.{row}", each)
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("name", "attribute", "value", "reason"),
    [
        ("rnn.RNNCell", "nonlinearity", "sin", "the nonlinearity 'sin' is not supported"),
        ("rnn.RNN", "nonlinearity", "sin", "the nonlinearity 'sin' is not supported"),
        ("rnn.LSTM", "proj_size", 2, "an LSTM with projections is not supported"),
        ("rnn.LSTM", "num_layers", 2, "the flat weight of an RNN has 108 elements, expected 204"),
        ("multiheadattn.MultiHeadAttention", "enable_qproj", True, "of MegEngine 1.12.3"),
        ("multiheadattn.MultiHeadAttention", "add_zero_attn", True, "is not supported"),
        ("embedding.Embedding", "padding_idx", 0, "with padding_idx"),
    ],
)
def test_refused_modules(name: str, attribute: str, value: Any, reason: str) -> None:
    row = f"megengine.module.{name}"
    key, each = next((key, each) for owner, key, each in CALLS if owner == row)
    module = module_of(key)
    assert module is not None
    module.attributes[attribute] = value
    with pytest.raises(Refusal) as caught:
        built(row, each, module)
    assert reason in caught.value.reason
