"""megengine.module."""

from .common import CUBE, MATRIX, POSITIVE, RANKS, VECTOR, X, made, numbers

MODULES = {
    **{f"activation.{name}": [made()(X)] for name in ("ReLU", "Sigmoid", "SiLU")},
    "activation.Softmax": [*(made()(each.args[0]) for each in RANKS), made(axis=-1)(CUBE), made(0)(MATRIX)],
    "activation.LeakyReLU": [made()(X), made(0.25)(VECTOR)],
    "linear.Linear": [made(4, 3)(numbers(2, 4)), made(4, 3, bias=False)(CUBE)],
    "linear.LinearRelu": [made(4, 3)(numbers(2, 4)), made(4, 3, bias=False)(CUBE)],
    "padding.Pad": [
        made(((0, 0), (0, 0), (1, 2), (0, 3)))(X),
        made(((0, 0), (0, 0), (1, 2), (2, 3)), "reflect")(X),
        made(((0, 0), (0, 0), (1, 2), (2, 3)), "replicate")(X),
        made(((1, 0), (0, 2)), "constant", 1.5)(CUBE),
    ],
    "identity.Identity": [made()(X)],
    "dropout.Dropout": [made()(X), made(0.3)(X)],
    "concat.Concat": [made()([CUBE, CUBE]), made()([CUBE, CUBE], -1)],
    "elemwise.Elemwise": [
        *(
            made(name)(MATRIX)
            for name in ("relu", "sigmoid", "tanh", "exp", "abs", "floor", "ceil", "negate")
        ),
        *(made(name)(CUBE, CUBE + 1) for name in ("add", "sub", "mul", "true_div", "max", "min")),
        *(made(f"fuse_add_{name}")(MATRIX, MATRIX - 2) for name in ("relu", "sigmoid", "tanh")),
        made("fuse_mul_add3")(MATRIX, MATRIX + 1, MATRIX - 2),
        made("log")(POSITIVE),
        made("h_swish")(MATRIX),
        made("ADD")(CUBE, CUBE),
    ],
}

SAMPLES = {f"megengine.module.{name}": calls for name, calls in MODULES.items()}
