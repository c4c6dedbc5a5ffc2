"""The ops of a convolutional network."""

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import POSITIVE, Sample, X, rows

BINARY = [Sample([X, POSITIVE[::-1].copy()]), Sample([X, Const(POSITIVE[:1, :, :1, :1])])]
SIGNED = [Sample([np.array([-5, 0, 7], dtype)]) for dtype in ("int8", "int32", "int64")]
UNARY = [Sample([X]), Sample([normal(1, 2, 5)])]
UNARY_POSITIVE = [Sample([POSITIVE]), Sample([POSITIVE[0, 0]])]
REDUCTION = [
    Sample([X], {"dim": [2, 3], "keepdim": True}),
    Sample([X[0]], {"dim": [1]}, targets=("onnx", "tflite")),
]
ARG_REDUCTION = [Sample([X], {"dim": 1}), Sample([X], {"dim": 3, "keepdim": True})]

SAMPLES: dict[str, list[Sample]] = {
    **rows(__file__, "SAMPLES", globals()),
    **{f"aten::{name}": BINARY for name in ("add", "sub", "mul", "div", "maximum", "minimum")},
    **{f"aten::{name}": UNARY for name in ("exp", "square", "floor", "ceil")},
    **{f"aten::{name}": [*UNARY, *SIGNED] for name in ("abs", "neg")},
    **{f"aten::{name}": UNARY for name in ("sigmoid", "tanh", "relu", "relu6")},
    **{f"aten::{name}": UNARY_POSITIVE for name in ("log", "sqrt", "reciprocal", "rsqrt")},
    **{f"aten::{name}": REDUCTION for name in ("mean", "sum", "amax", "amin")},
    **{f"aten::{name}": ARG_REDUCTION for name in ("argmax", "argmin")},
}
