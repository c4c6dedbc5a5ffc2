"""megengine.module."""

from .common import CUBE, MATRIX, POSITIVE, RANKS, SMALL, VECTOR, X, made, numbers

MODULES = {
    **{f"activation.{name}": [made()(X)] for name in ("ReLU", "Sigmoid", "SiLU")},
    "activation.Softmax": [*(made()(each.args[0]) for each in RANKS), made(axis=-1)(CUBE), made(0)(MATRIX)],
    "activation.LeakyReLU": [made()(X), made(0.25)(VECTOR)],
    "conv.Conv2d": [
        made(4, 3, 3)(SMALL),
        made(4, 3, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), bias=False)(SMALL),
        made(4, 6, 3, padding=1, groups=2)(SMALL),
        made(4, 4, (2, 3), groups=4)(SMALL),
        made(4, 8, 3, padding=(1, 2), groups=4, bias=False)(SMALL),
        made(4, 3, 3, padding=(1, 2), padding_mode="reflect")(SMALL),
        made(4, 3, 3, padding=(2, 1), padding_mode="replicate")(SMALL),
        made(4, 3, 3, padding=0, padding_mode="reflect")(SMALL),
    ],
    "conv.ConvRelu2d": [made(4, 3, 3)(SMALL), made(4, 4, 3, 2, 1, groups=2, bias=False)(SMALL)],
    "conv_bn.ConvBn2d": [
        made(4, 3, 3)(SMALL),
        made(4, 4, 3, padding=1, groups=4, bias=False, eps=0.5)(SMALL),
    ],
    "conv_bn.ConvBnRelu2d": [made(4, 3, 3)(SMALL)],
    "batchnorm.BatchNorm1d": [
        made(4)(numbers(2, 4)),
        made(4)(numbers(2, 4, 5)),
        made(4, affine=False)(numbers(2, 4)),
    ],
    "batchnorm.BatchNorm2d": [made(4)(SMALL), made(4, eps=0.5)(SMALL), made(4, affine=False)(SMALL)],
    "batchnorm.SyncBatchNorm": [made(4)(SMALL), made(4, affine=False)(SMALL)],
    "linear.Linear": [made(4, 3)(numbers(2, 4)), made(4, 3, bias=False)(CUBE)],
    "linear.LinearRelu": [made(4, 3)(numbers(2, 4)), made(4, 3, bias=False)(CUBE)],
    "pooling.MaxPool2d": [made(2)(X), made((3, 2), (2, 1), (1, 0))(X), made(3, stride=1, padding=1)(X)],
    "pooling.AvgPool2d": [made(2)(X), made((3, 2), (2, 1), (1, 0))(X), made(3, 2, 1, mode="average")(X)],
    "adaptive_pooling.AdaptiveAvgPool2d": [made(2)(X), made((2, 3))(X)],
    "adaptive_pooling.AdaptiveMaxPool2d": [made(2)(X), made((3, 5))(X)],
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
