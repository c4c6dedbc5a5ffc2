"""Matrix products, reductions, softmax, sorting, embedding, recurrent layers and attention."""

import numpy as np

from .common import (
    BYTES,
    CUBE,
    FLAGS,
    HALVES,
    MATRIX,
    SHORTS,
    VECTOR,
    WHOLE,
    Known,
    call,
    numbers,
    rows,
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

FUNCTIONAL = rows(__file__, "FUNCTIONAL", globals())
MODULES = rows(__file__, "MODULES", globals())

SAMPLES = {
    **{f"megengine.functional.{name}": calls for name, calls in FUNCTIONAL.items()},
    **{f"megengine.module.{name}": calls for name, calls in MODULES.items()},
    **{f"Tensor.{name}": PAIRS for name in ("__matmul__", "__imatmul__")},
    "Tensor.__rmatmul__": [call(numbers(4, 5), MATRIX), call(BATCH, CUBE), call(MATRIX, numbers(3))],
    "Tensor.prod": PRODUCT,
}
