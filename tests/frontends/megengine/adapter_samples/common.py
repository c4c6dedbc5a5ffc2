"""What samples are made of. Python 3.8, too, reads this and its neighbours: only NumPy is imported."""

from pathlib import Path

import numpy as np


class Known:
    """A tensor that does not depend on the inputs."""

    def __init__(self, *values, dtype=np.int32):
        self.array = np.array(values if len(values) > 1 else values[0], dtype)


class Grid:
    """A tensor that is quantized: for quantized modules and functions int8, else float32 with qparams."""

    def __init__(self, array, scale, dtype="qint8"):
        self.array = array
        self.scale = scale
        self.dtype = dtype


class Int8:
    """The quantized dtype qint8 as an argument."""

    def __init__(self, scale):
        self.scale = scale


class Part:
    """An observer or a fake quant: its class below megengine, its constructor's keywords, what is set on it.

    ``mode`` is "symmetric" or "asymmetric"; ``qparams`` (scale, zero point or None) goes to ``set_qparams``.
    """

    def __init__(self, class_name, mode=None, qparams=None, values=None, **kwargs):
        self.class_name = class_name
        self.mode = mode
        self.qparams = qparams
        self.values = values or {}
        self.kwargs = kwargs


class Call:
    """One call. ``made`` is (arguments, keywords) of a module's constructor, ``parts`` what is set on it."""

    def __init__(self, args, kwargs, made=None, parts=None):
        self.args = args
        self.kwargs = kwargs
        self.made = made
        self.parts = parts


def call(*args, **kwargs):
    return Call(args, kwargs)


def made(*args, **kwargs):
    """``made(1, axis=2)(x)`` is ``Class(1, axis=2)(x)``."""
    return lambda *inputs: Call(inputs, {}, (args, kwargs))


def rows(file, section, names):
    """A table of the file ``*.rows`` beside a module: samples by name, in a line each.

    A line is a name, " | " and a sample, or samples after ``*``, in the names of the module and of this one.
    """
    text = Path(file).with_suffix(".rows").read_text(encoding="utf-8").replace("\n  ", " ")
    found = {}
    for line in text.split(f"== {section}\n")[1].partition("\n== ")[0].splitlines():
        name, separator, sample = line.partition(" | ")
        if separator and not line.startswith("#"):
            found.setdefault(name, []).extend(eval(f"[{sample}]", {**globals(), **names}))
    return found


def numbers(*shape, seed=0):
    """Multiples of 1/8 between -6.25 and 6.25, no two of 101 equal; exact in float16."""
    count = int(np.prod(shape))
    return ((((np.arange(count) * 37 + seed * 11 + 17) % 101) - 50) / 8).astype(np.float32).reshape(shape)


def parameter(name, shape):
    """What stands for the parameter or buffer ``name`` of a module."""
    array = numbers(*shape, seed=len(name)) / 4
    return np.abs(array) + np.float32(0.5) if name.endswith("var") else array


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
SMALL = numbers(1, 4, 5, 6)
