"""Sample calls of everything that the MegEngine adapters know: one table, read by two programs.

``tests/data/made/make_adapters.py`` makes each call in MegEngine (Python 3.8: only NumPy is imported
here), ``test_adapter_samples.py`` makes it by the adapters. Arrays stand for tensors, ``Known`` for
tensors that are constants of the model; all else is a constant of the call.
"""

import numpy as np


class Known:
    """A tensor that does not depend on the inputs."""

    def __init__(self, *values):
        self.array = np.array(values if len(values) > 1 else values[0], np.int32)


class Call:
    """One call. ``made`` is (arguments, keywords) of a module's constructor."""

    def __init__(self, args, kwargs, made=None):
        self.args = args
        self.kwargs = kwargs
        self.made = made


def call(*args, **kwargs):
    return Call(args, kwargs)


def made(*args, **kwargs):
    """``made(1, axis=2)(x)`` is ``Class(1, axis=2)(x)``."""
    return lambda *inputs: Call(inputs, {}, (args, kwargs))


def numbers(*shape, seed=0):
    """Multiples of 1/8 between -6.25 and 6.25, no two of 101 equal; exact in float16."""
    count = int(np.prod(shape))
    return ((((np.arange(count) * 37 + seed * 11 + 17) % 101) - 50) / 8).astype(np.float32).reshape(shape)


def parameter(name, shape):
    """What stands for the parameter or buffer ``name`` of a module."""
    array = numbers(*shape, seed=len(name)) / 4
    return np.abs(array) + np.float32(0.5) if name.endswith("var") else array


def all_calls():
    """(row, key of the sample, Call) of every sample; a key is ``row.number``."""
    return [(row, f"{row}.{i}", each) for row, calls in SAMPLES.items() for i, each in enumerate(calls)]


X = numbers(2, 3, 5, 7)
Y = numbers(2, 3, 5, 7, seed=3)
POSITIVE = np.abs(X) + np.float32(0.125)
VECTOR = numbers(5)
MATRIX = numbers(3, 4)
CUBE = numbers(2, 3, 4)
WHOLE = np.array([[-7, 3, 0], [2, 5, -1]], np.int32)
OTHER_WHOLE = np.array([[2, -2, 4], [-3, 3, 3]], np.int32)
BYTES = np.array([[7, 3, 0], [2, 200, 1]], np.uint8)
SHORTS = np.array([[-7, 300, 0], [2, 5, -1]], np.int16)
FLAGS = np.array([[True, False, True], [False, True, True]])
HALVES = MATRIX.astype(np.float16)
SCALAR = np.array(2.5, np.float32)
CHANNEL = numbers(1, 3, 1, 1)
IMAGE = numbers(1, 2, 5, 7)

UNARY = [call(X), call(VECTOR), call(SCALAR), call(WHOLE), call(HALVES), call(BYTES)]
POSITIVE_UNARY = [call(POSITIVE), call(POSITIVE[0, 0]), call(np.abs(WHOLE) + np.int32(1))]
ACTIVATION = [call(X), call(VECTOR), call(HALVES)]
BINARY = [
    call(X, Y),
    call(X, CHANNEL),
    call(VECTOR, numbers(3, 1)),
    call(MATRIX, 2),
    call(MATRIX, 1.5),
    call(HALVES, 1.5),
    call(HALVES, MATRIX),
    call(WHOLE, OTHER_WHOLE),
    call(WHOLE, 2),
    call(WHOLE, 1.5),
    call(WHOLE, numbers(2, 3)),
    call(SCALAR, VECTOR),
    call(HALVES[:2, :3], OTHER_WHOLE),
    call(OTHER_WHOLE, HALVES[:2, :3]),
    call(BYTES + 1, BYTES + 2),
    call(BYTES + 1, 3),
    call(BYTES, 1.5),
    call(BYTES, numbers(2, 3)),
    call(SHORTS, OTHER_WHOLE),
    call(FLAGS, OTHER_WHOLE),
    call(FLAGS, HALVES[:2, :3]),
    call(FLAGS, 2),
    call(WHOLE, np.float32(1.5)),
    call(HALVES, np.float32(1.5)),
    call(WHOLE, np.int32(2)),
]
SCALAR_FIRST = [call(2, MATRIX), call(1.5, OTHER_WHOLE)]
REFLECTED = [call(POSITIVE[0, 0], 2), call(HALVES[:1], 1.5), call(OTHER_WHOLE, 2), call(OTHER_WHOLE, 1.5)]
REDUCTION = [
    call(CUBE),
    call(CUBE, 1),
    call(CUBE, -1, keepdims=True),
    call(CUBE, axis=(0, 2)),
    call(CUBE, axis=[0, -1], keepdims=True),
    call(WHOLE),
    call(WHOLE, axis=1),
    call(VECTOR, 0),
    call(HALVES, 1),
    call(BYTES),
    call(SHORTS, 0),
]
ARG_REDUCTION = [
    call(CUBE),
    call(CUBE, 1),
    call(CUBE, axis=-1, keepdims=True),
    call(WHOLE, 0),
    call(VECTOR),
    call(HALVES, 1),
    call(BYTES, 1),
]
JOINED = [call([CUBE, numbers(2, 3, 4, seed=1)]), call([CUBE])]
POOLING = [
    call(X, 2),
    call(X, (2, 3), stride=1),
    call(X, 3, 2, 1),
    call(X, kernel_size=(3, 2), stride=(2, 1), padding=(1, 0)),
    call(X, [2, 2], None, [0, 1]),
]
ADAPTIVE = [
    call(X, 2),
    call(X, (5, 7)),
    call(X, (2, 3)),
    call(X, oshp=(3, 4)),
    call(X, 1),
    call(X, Known(2, 5)),
]
FLATTENED = [
    call(X),
    call(X, 1),
    call(X, 1, 2),
    call(X, start_axis=-3, end_axis=-2),
    call(SCALAR),
    call(VECTOR),
]
RANKS = [call(VECTOR), call(MATRIX), call(CUBE), call(IMAGE)]

ELEMWISE = {
    **dict.fromkeys(("abs", "neg", "square", "ceil", "floor", "tanh", "exp"), UNARY),
    **dict.fromkeys(("log", "sqrt"), POSITIVE_UNARY),
    **dict.fromkeys(("add", "sub", "mul", "maximum", "minimum"), BINARY + SCALAR_FIRST),
    **dict.fromkeys(
        ("div", "floor_div"), [each for each in BINARY if each.args[1] is not CHANNEL] + SCALAR_FIRST
    ),
    "pow": [
        call(POSITIVE[0, 0], 0.5),
        call(POSITIVE[0, 0], -0.5),
        call(MATRIX, 2),
        call(MATRIX, 2.0),
        call(VECTOR, -1),
        call(MATRIX, 1),
        call(WHOLE, 2),
        call(HALVES, 2),
    ],
    "clip": [
        call(X, -1.5, 3),
        call(X, lower=0),
        call(X, upper=0.5),
        call(WHOLE, -1, 3),
        call(WHOLE, -1.5, 3.5),
        call(HALVES, -1, 1),
        call(HALVES, -1.5, 1.25),
        call(BYTES, 2, 100),
        call(WHOLE, np.float32(-1.5), 3),
    ],
}
MATH = {
    **dict.fromkeys(("mean", "sum", "max", "min"), REDUCTION),
    **dict.fromkeys(("argmax", "argmin"), ARG_REDUCTION),
}
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
    "linear": [
        call(numbers(2, 5), numbers(7, 5)),
        call(numbers(2, 5), numbers(7, 5), numbers(7)),
        call(numbers(2, 3, 5), numbers(7, 5), bias=numbers(7)),
        call(numbers(2, 5), numbers(1, 5), numbers(1)),
        call(VECTOR, numbers(3, 5), numbers(3)),
        call(HALVES, HALVES),
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
    "softmax": [*RANKS, call(CUBE, 1), call(CUBE, axis=-1), call(IMAGE, -3), call(MATRIX, 0)],
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
TENSOR = {
    "reshape": [
        call(X, (6, 35)),
        call(X, [2, -1, 7]),
        call(X, -1),
        call(X, Known(3, 70)),
        call(X, (Known([2]), -1)),
        call(X, (Known(2), 3, 35)),
        call(X, target_shape=(2, 3, 5, 7)),
        call(numbers(1), ()),
    ],
    "flatten": FLATTENED,
    "transpose": [
        call(X, (0, 2, 3, 1)),
        call(X, [3, 2, 1, 0]),
        call(CUBE, (2, 0, 1)),
        call(MATRIX, ("x", 1, 0)),
        call(MATRIX, (1, "x", 0, "x")),
        call(CUBE, (0, 1, 2)),
    ],
    "swapaxes": [call(CUBE, 0, 2), call(CUBE, -1, 1), call(CUBE, 1, 1), call(CUBE, axis1=0, axis2=1)],
    "squeeze": [
        call(numbers(1, 3, 1, 2)),
        call(numbers(1, 3, 1, 2), 0),
        call(numbers(1, 3, 1, 2), axis=-2),
        call(numbers(1, 3, 1, 2), (0, 2)),
        call(numbers(1, 3, 1, 2), [0, -2]),
        call(numbers(1, 1)),
    ],
    "expand_dims": [
        call(MATRIX, 0),
        call(MATRIX, -1),
        call(MATRIX, axis=(0, 2)),
        call(MATRIX, [1, -1]),
        call(MATRIX, (-1, -2)),
        call(SCALAR, 0),
    ],
    "concat": [
        *JOINED,
        call([CUBE, numbers(2, 5, 4)], axis=1),
        call((CUBE, CUBE, CUBE), -1),
        call([WHOLE, numbers(2, 3)], 0),
        call([HALVES, MATRIX]),
        call([HALVES[:, :3], WHOLE]),
        call([FLAGS, WHOLE]),
        call([FLAGS, FLAGS]),
        call([SHORTS, WHOLE], 1),
        call([SCALAR, VECTOR]),
    ],
    "stack": [*JOINED, call([CUBE, CUBE], 1), call((CUBE, CUBE), axis=-1), call([SCALAR, SCALAR])],
    "split": [
        call(X, 7, 3),
        call(X, 3, axis=1),
        call(X, [1, 3], axis=2),
        call(X, (2, 5), -1),
        call(X, 1, 1),
        call(MATRIX, 3),
    ],
}
VISION = {
    "interpolate": [
        call(IMAGE, (3, 4)),
        call(IMAGE, scale_factor=2),
        call(IMAGE, scale_factor=2.0, mode="nearest"),
        call(IMAGE, (10, 3), mode="nearest"),
        call(IMAGE, [3, 4], align_corners=True),
    ],
}
OPDEF = {"GetVarShape": [call(X), call(X, axis=1), call(X, axis=-1), call(VECTOR)]}
METHODS = {
    **{f"__{prefix}{name}__": BINARY for prefix in ("", "i") for name in ("add", "sub", "mul")},
    **{
        f"__{prefix}{name}__": [each for each in BINARY if each.args[1] is not CHANNEL]
        for prefix in ("", "i")
        for name in ("truediv", "floordiv")
    },
    **{f"__r{name}__": REFLECTED for name in ("add", "sub", "mul", "truediv", "floordiv")},
    **dict.fromkeys(("__neg__", "__abs__"), UNARY),
    "__pow__": ELEMWISE["pow"],
    **dict.fromkeys(("mean", "sum", "max", "min"), REDUCTION),
    "__getitem__": [
        call(X, 1),
        call(X, -1),
        call(X, (0, -2)),
        call(X, slice(1, None)),
        call(X, (slice(None), slice(0, 2), slice(1, -1), slice(None, None, 3))),
        call(X, (Ellipsis, 2)),
        call(X, (1, Ellipsis, slice(2, 5, 2))),
        call(X, Ellipsis),
        call(X, (slice(-1, None),)),
        call(MATRIX, (None, 1)),
        call(MATRIX, (slice(None), None, slice(1, 3))),
        call(MATRIX, (Ellipsis, None)),
        call(MATRIX, (Known(1), Known(-1))),
        call(MATRIX, Known(2)),
        call(MATRIX, slice(Known(1), Known(3))),
        call(VECTOR, slice(None, None, 2)),
        call(VECTOR, 0),
        call(VECTOR, slice(1, 100)),
        call(MATRIX, (0, 1)),
    ],
    "reshape": [
        call(X, 6, 35),
        call(X, (2, -1)),
        call(X, -1),
        call(X, [3, 70]),
        call(X, Known(2, 105)),
        call(X, Known([2]), 3, -1),
        call(X, (2, Known([3]), 35)),
    ],
    "flatten": [call(X), call(SCALAR), call(MATRIX)],
    "transpose": [call(X, 0, 2, 3, 1), call(X, (3, 1, 2, 0)), call(CUBE, [2, 0, 1]), call(MATRIX, 1, "x", 0)],
    "astype": [
        call(MATRIX, "int32"),
        call(MATRIX, "float16"),
        call(WHOLE, "float32"),
        call(BYTES, dtype="int32"),
        call(MATRIX, np.dtype("float32")),
        call(WHOLE, "bool"),
        call(FLAGS, "float32"),
        call(POSITIVE[0, 0], "uint8"),
        call(MATRIX, "int8"),
    ],
}
SMALL = numbers(1, 4, 5, 6)
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

SAMPLES = {
    **{f"megengine.functional.elemwise.{name}": calls for name, calls in ELEMWISE.items()},
    **{f"megengine.functional.math.{name}": calls for name, calls in MATH.items()},
    **{f"megengine.functional.nn.{name}": calls for name, calls in NN.items()},
    **{f"megengine.functional.tensor.{name}": calls for name, calls in TENSOR.items()},
    **{f"megengine.functional.vision.{name}": calls for name, calls in VISION.items()},
    **{f"opdef.{name}": calls for name, calls in OPDEF.items()},
    **{f"Tensor.{name}": calls for name, calls in METHODS.items()},
    **{f"megengine.module.{name}": calls for name, calls in MODULES.items()},
}
