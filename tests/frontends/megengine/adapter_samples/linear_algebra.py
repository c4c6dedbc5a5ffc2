"""Matrix products, reductions, softmax, sorting, embedding, recurrent layers and attention."""

import numpy as np

from .common import (
    BYTES,
    CUBE,
    FLAGS,
    HALVES,
    IMAGE,
    MATRIX,
    RANKS,
    SCALAR,
    SHORTS,
    VECTOR,
    WHOLE,
    Known,
    call,
    made,
    numbers,
)

SIGNED_BYTES = (WHOLE * 3).astype(np.int8)
TIES = np.array([[3, 1, 3, 2, 1, 3, 2], [5, 5, 0, 1, 0, 5, 1]], np.float32)
THIN = numbers(2, 1, 5)
BATCH = numbers(2, 4, 3)
LONG = numbers(2, 3, 3, 4)
ROW = numbers(4)
PAIRS = [
    call(MATRIX, numbers(4, 5)),
    call(MATRIX, ROW),
    call(numbers(3), MATRIX),
    call(ROW, numbers(4, seed=1)),
    call(CUBE, BATCH),
    call(CUBE, numbers(4, 5)),
    call(CUBE, ROW),
    call(MATRIX, BATCH),
    call(LONG, numbers(2, 3, 4, 5)),
    call(LONG, BATCH[:1, :, :]),
    call(HALVES, numbers(4, 5).astype(np.float16)),
    call(HALVES, numbers(4, 5)),
    call(WHOLE, MATRIX),
    call(MATRIX, numbers(4, 2).astype(np.int32)),
    call(FLAGS, MATRIX),
    call(SIGNED_BYTES, SIGNED_BYTES.T.copy()),
]
TRANSPOSED = [
    call(MATRIX, MATRIX, transpose_b=True),
    call(MATRIX, MATRIX, True),
    call(MATRIX, numbers(5, 3), True, True),
    call(CUBE, CUBE, transpose_b=True),
    call(CUBE, CUBE, True, False, "default"),
    call(CUBE, numbers(3, 2), transpose_a=True),
    call(CUBE, numbers(5, 4), transpose_b=True),
    call(CUBE, numbers(3), transpose_a=True),
    call(numbers(1), numbers(1, 4), transpose_a=True),
    call(numbers(3, 1), numbers(1), transpose_b=True),
]
PRODUCT = [
    call(CUBE / 4),
    call(CUBE / 4, 1),
    call(CUBE / 4, axis=(0, -1), keepdims=True),
    call(WHOLE, 0),
    call(BYTES, 1),
    call(HALVES[:2, :2], 1),
]
SPREAD = [
    call(CUBE),
    call(CUBE, 1),
    call(CUBE, (0, -1), True),
    call(WHOLE, 0),
    call(HALVES, -1),
    call(VECTOR, 0, keepdims=True),
    call(FLAGS),
    call(MATRIX, ()),
]
NORM = [
    call(VECTOR),
    call(VECTOR, 1),
    call(VECTOR, 3.0),
    call(VECTOR, 0),
    call(CUBE, axis=1),
    call(CUBE, 1, 2),
    call(CUBE, 2, -1, True),
    call(CUBE, ord=float("inf"), axis=1),
    call(CUBE, -float("inf"), 1, True),
    call(CUBE, 0, 1, True),
    call(CUBE, ord=0.5, axis=0, keepdims=True),
    call(WHOLE, axis=1),
    call(HALVES, axis=0),
]
SORTED = [
    *(
        call(each, descending)
        for each in (TIES, TIES[0], WHOLE, BYTES, SHORTS)
        for descending in (False, True)
    ),
    call(HALVES),
    call(VECTOR),
]
TOP = [
    call(TIES, 3),
    call(TIES, 3, False),
    call(TIES, 7, True),
    call(TIES, 9, descending=False),
    call(TIES[0], 2),
    call(TIES, -2),
    call(TIES, Known(2)),
    call(TIES, 3, kth_only=True),
    call(TIES, 3, False, True),
    call(TIES[1], 4, kth_only=True),
    call(WHOLE, 2),
    call(BYTES, 2, True),
    call(MATRIX, 1, False, False, True),
]
IDS = np.array([[0, 3], [2, 2], [5, 1]], np.int32)
LAYER = numbers(5, 2, 4)
QUERY, KEY = numbers(2, 3, 8, seed=1) / 4, numbers(2, 5, 8, seed=2) / 4
NARROW, WIDE = numbers(2, 5, 6, seed=3) / 4, numbers(2, 5, 10, seed=4) / 4
PACKED = numbers(4 * 64 + 32, seed=5) / 8
LATER = np.triu(np.ones((3, 5)), 1) > 0
PADDED = np.array([[False, False, True, False, True], [False, True, False, False, False]])


def attention(weights, sizes=(8, 8, 8, 8), biases=(True,) * 4, key=KEY, value=KEY, **options):
    options.setdefault("training", False)
    return call(QUERY, key, value, 8, 2, 0.0, 0.0, weights, *sizes, *biases, **options)


ATTENTION = [
    attention(PACKED),
    attention(PACKED.reshape(1, -1), need_weights=True),
    attention(PACKED, need_weights=True, average_attn_weights=True),
    attention(PACKED[:272], biases=(True, False, True, False)),
    attention(PACKED[:256], biases=(False,) * 4, training=True),
    attention(numbers(48 * 2 + 80 + 120) / 8, (6, 6, 10, 12), (False,) * 4),
    attention(PACKED[: 64 * 3 + 24], (8, 8, 8, 0), (True, True, True, False)),
    attention(PACKED[:128], (0, 0, 8, 8), (False,) * 4, need_weights=True),
    attention(PACKED[:128], (0, 0, 8, 8), (False,) * 4, need_weights=True, average_attn_weights=True),
    attention(numbers(64 + 48 + 80 + 64 + 32) / 8, key=NARROW, value=WIDE),
    attention(PACKED, attn_mask=numbers(3, 5)),
    attention(PACKED, attn_mask=numbers(4, 3, 5), need_weights=True),
    attention(PACKED, key_padding_mask=numbers(2, 5)),
    attention(PACKED, attn_mask=numbers(3, 5), key_padding_mask=numbers(2, 5, seed=1)),
    attention(PACKED, attn_mask=numbers(4, 3, 5), key_padding_mask=numbers(2, 5, seed=1)),
    attention(PACKED, attn_mask=LATER),
    attention(PACKED, key_padding_mask=PADDED),
    attention(PACKED, attn_mask=numbers(3, 5), is_causal=True),
]

FUNCTIONAL = {
    "math.matmul": PAIRS + TRANSPOSED,
    "math.dot": [call(VECTOR, VECTOR), call(WHOLE[0], WHOLE[1]), call(HALVES[0], HALVES[1])],
    "math.matinv": [call(numbers(2, 3, 3) + 4 * np.eye(3, dtype=np.float32)), call(MATRIX[:, :3])],
    "math.prod": [*PRODUCT, call(FLAGS, 0), call(SCALAR)],
    "math.var": SPREAD,
    "math.std": SPREAD,
    "math.norm": NORM,
    "math.normalize": [
        call(VECTOR),
        call(CUBE, axis=1),
        call(CUBE, 1, -1),
        call(CUBE, 2, 0, 0.5),
        call(CUBE, axis=1, eps=20),
        call(WHOLE, axis=0),
    ],
    "math.sort": SORTED,
    "math.argsort": SORTED,
    "math.topk": TOP,
    "nn.logsoftmax": [call(CUBE, 1), call(CUBE, axis=-1), call(CUBE, [0, 2]), call(WHOLE, 0)],
    "nn.logsumexp": [
        call(CUBE, 1),
        call(CUBE, axis=-1, keepdims=True),
        call(CUBE, (0, 2)),
        call(THIN, 2),
        call(THIN, 2, True),
        call(THIN, 0),
        call(WHOLE, 1),
    ],
    "nn.one_hot": [call(IDS, 6), call(IDS[0], num_classes=4)],
    "nn.embedding": [call(IDS, numbers(6, 3)), call(IDS[0], weight=numbers(4, 5))],
    "nn.indexing_one_hot": [
        call(MATRIX, np.array([1, 3, 0], np.int32)),
        call(MATRIX, np.array([1, 2, 0, 2], np.int32), 0),
        call(CUBE, IDS[:2, :1].repeat(4, 1) % 3, 1, True),
        call(CUBE, IDS.T.copy() % 4, -1),
    ],
    "nn.multi_head_attention": ATTENTION,
    "nn.linear": [
        call(numbers(2, 5), numbers(7, 5)),
        call(numbers(2, 5), numbers(7, 5), numbers(7)),
        call(numbers(2, 3, 5), numbers(7, 5), bias=numbers(7)),
        call(numbers(2, 5), numbers(1, 5), numbers(1)),
        call(VECTOR, numbers(3, 5), numbers(3)),
        call(HALVES, HALVES),
        call(HALVES, numbers(2, 4), numbers(2)),
        call(HALVES, HALVES, numbers(3).astype(np.float16)),
        call(MATRIX, numbers(2, 4), numbers(1)),
        call(MATRIX, numbers(2, 4), numbers(3, 2)),
        call(SIGNED_BYTES, SIGNED_BYTES, numbers(2)),
    ],
    "nn.softmax": [
        *RANKS,
        *(call(CUBE, 1), call(CUBE, axis=-1), call(IMAGE, -3), call(MATRIX, 0), call(HALVES, 1)),
        *(call(CUBE, [1, 2]), call(CUBE, [0])),
    ],
}
MODULES = {
    "linear_bn.LinearBn1d": [made(4, 3)(MATRIX), made(4, 3, False, eps=0.5)(MATRIX)],
    "linear_bn.LinearBnRelu1d": [made(4, 3)(MATRIX)],
    "batch_matmul_activation.BatchMatMulActivation": [
        made(2, 4, 3)(numbers(2, 4, 3)),
        made(2, 4, 3, bias=False)(numbers(2, 4, 5)),
        made(2, 4, 3, nonlinear_mode="RELU")(numbers(2, 4, 3)),
    ],
    "embedding.Embedding": [made(6, 3)(IDS), made(6, 3, freeze=True)(IDS[0])],
    "rnn.RNNCell": [
        made(4, 3)(MATRIX),
        made(4, 3)(MATRIX, numbers(3, 3)),
        made(4, 3, nonlinearity="relu")(MATRIX, numbers(3, 3)),
        made(4, 3, bias=False)(MATRIX, None),
    ],
    "rnn.LSTMCell": [
        made(4, 3)(MATRIX),
        made(4, 3)(MATRIX, (numbers(3, 3), numbers(3, 3, seed=1))),
        made(4, 3, False)(MATRIX),
    ],
    "rnn.RNN": [
        made(4, 3)(LAYER),
        made(4, 3, 2, nonlinearity="relu")(LAYER, numbers(2, 2, 3)),
        made(4, 3, 2, batch_first=True, bidirectional=True, dropout=0.5)(LAYER),
        made(4, 3, bias=False, bidirectional=True)(LAYER, numbers(2, 2, 3)),
    ],
    "rnn.LSTM": [
        made(4, 3)(LAYER),
        made(4, 3, 2)(LAYER, (numbers(2, 2, 3), numbers(2, 2, 3, seed=1))),
        made(4, 3, 2, batch_first=True, bidirectional=True, dropout=0.5)(LAYER),
        made(4, 3, bias=False, bidirectional=True)(LAYER),
    ],
    "multiheadattn.MultiHeadAttention": [
        made(8, 2)(QUERY, KEY, KEY),
        made(8, 4, bias=False)(QUERY, KEY, KEY, None, None, True),
        made(8, 2, kdim=6, vdim=10)(QUERY, NARROW, WIDE, PADDED, LATER, True, True),
    ],
}

SAMPLES = {
    **{f"megengine.functional.{name}": calls for name, calls in FUNCTIONAL.items()},
    **{f"megengine.module.{name}": calls for name, calls in MODULES.items()},
    **{f"Tensor.{name}": PAIRS for name in ("__matmul__", "__imatmul__")},
    "Tensor.__rmatmul__": [call(numbers(4, 5), MATRIX), call(BATCH, CUBE), call(MATRIX, numbers(3))],
    "Tensor.prod": PRODUCT,
}
