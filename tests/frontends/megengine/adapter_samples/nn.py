"""megengine.functional.nn."""

from .common import (
    ACTIVATION,
    BYTES,
    CUBE,
    HALVES,
    VECTOR,
    WHOLE,
    X,
    call,
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
