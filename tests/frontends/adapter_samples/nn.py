"""megengine.functional.nn."""

import numpy as np

from .common import (
    ACTIVATION,
    ADAPTIVE,
    BYTES,
    CHANNEL,
    CUBE,
    HALVES,
    POOLING,
    VECTOR,
    WHOLE,
    X,
    call,
    numbers,
)

NN = {
    **{name: [*ACTIVATION, call(WHOLE), call(BYTES)] for name in ("relu", "relu6", "hsigmoid")},
    **dict.fromkeys(("sigmoid", "hswish", "silu"), ACTIVATION),
    "leaky_relu": [
        call(X),
        call(X, 0.25),
        call(VECTOR, negative_slope=2.0),
        call(WHOLE, 0.5),
        call(HALVES),
        call(BYTES, 0.5),
        call(WHOLE, 2),
    ],
    "dropout": [call(X, 0.5, False), call(X, drop_prob=0.3, training=False)],
    "conv2d": [
        call(X, numbers(4, 3, 3, 2)),
        call(X, numbers(4, 3, 3, 2), numbers(1, 4, 1, 1), (2, 1), (1, 0)),
        call(X, numbers(4, 3, 2, 2), None, stride=2, padding=1, dilation=(1, 2)),
        call(X, numbers(3, 2, 1, 3, 3), numbers(1, 6, 1, 1), padding=1, groups=3),
        call(numbers(1, 4, 5, 6), numbers(2, 3, 2, 2, 3), bias=None, groups=2),
        call(X, numbers(4, 3, 1, 1), conv_mode="cross_correlation", compute_mode="default"),
    ],
    "batch_norm": [
        call(X, CHANNEL, np.abs(CHANNEL) + 1, numbers(1, 3, 1, 1, seed=1), numbers(1, 3, 1, 1, seed=2)),
        call(X, CHANNEL, np.abs(CHANNEL) + 1, training=False),
        call(X, CHANNEL, np.abs(CHANNEL) + 1, numbers(1, 3, 1, 1), numbers(1, 3, 1, 1, seed=2), eps=0.5),
    ],
    "max_pool2d": POOLING,
    "avg_pool2d": [
        *POOLING,
        call(X, 3, 2, 1, "average"),
        call(X, 3, 2, 1, mode="average_count_exclude_padding"),
        call(X, (3, 2), (1, 2), (0, 1), mode="average"),
    ],
    "adaptive_avg_pool2d": ADAPTIVE,
    "adaptive_max_pool2d": ADAPTIVE,
    "pad": [
        call(X, ((0, 0), (0, 0), (1, 2), (0, 3))),
        call(X, ((0, 0), (1, 0), (2, 1), (3, 0)), "constant", 1.5),
        call(X, [(0, 0), (0, 0), (1, 2), (2, 3)], mode="reflect"),
        call(X, ((0, 0), (0, 0), (1, 2), (2, 3)), mode="replicate"),
        call(X, ((0, 0), (0, 0), (1, 2), (2, 3)), mode="edge"),
        call(CUBE, ((1, 0), (0, 2)), constant_value=-1),
        call(VECTOR, ((2, 1),)),
        call(WHOLE, ((0, 1), (2, 0)), constant_value=3),
        call(BYTES, ((0, 1), (2, 0)), constant_value=3),
        call(HALVES, ((0, 1), (2, 1)), "reflect"),
        call(WHOLE, ((1, 0), (0, 1)), "replicate"),
    ],
}

SAMPLES = {f"megengine.functional.nn.{name}": calls for name, calls in NN.items()}
