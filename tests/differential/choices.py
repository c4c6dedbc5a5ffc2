"""What a random program may do next: one function a family of MegEngine's calls."""

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
from chosen import choice, step

# ---- elementwise

SMOOTH = [
    *(F.sigmoid, F.tanh, F.sin, F.cos, F.atan, F.expm1, F.exp, F.sinh, F.cosh, F.asinh, F.square),
    *(F.nn.gelu, F.nn.silu, F.nn.hswish, F.nn.hsigmoid, F.nn.softplus, F.nn.logsigmoid),
    lambda x: F.log(F.abs(x) + 0.5),
    lambda x: F.sqrt(F.abs(x) + 0.1),
    lambda x: F.log1p(F.abs(x)),
    lambda x: F.asin(F.tanh(x) * 0.9),
    lambda x: F.acos(F.tanh(x) * 0.9),
    lambda x: F.atanh(F.tanh(x) * 0.7),
    lambda x: F.acosh(F.abs(x) + 1.25),
    lambda x: F.tan(F.tanh(x)),
    lambda x: 1.5 / (F.abs(x) + 0.5),
    lambda x: x / 3,
    lambda x: x * 0.3,
    lambda x: x**2,
    lambda x: (F.abs(x) + 0.25) ** 1.5,
    lambda x: F.pow(F.abs(x) + 0.25, -0.5),
    lambda x: 2.0**x,
]
PRECISE = [
    *(F.abs, F.neg, F.relu, F.nn.relu6),
    lambda x: x + 1,
    lambda x: 0.5 - x,
    lambda x: x * 2,
    lambda x: x - 1.5,
    lambda x: F.clip(x, -0.5, 1.25),
    lambda x: F.maximum(x, 0.25),
    lambda x: F.minimum(0.5, x),
    lambda x: F.nn.leaky_relu(x, 0.25),
]
STEPS = [
    *(F.round, F.floor, F.ceil, F.sign),
    lambda x: x % 2,
    lambda x: x // 0.5,
    lambda x: F.mod(x, 1.5),
    lambda x: F.floor_div(x, 2),
]


@choice(weight=6)
def smooth(draw, x):
    function = draw.any(SMOOTH)
    if float(np.abs(x.numpy()).max(initial=0)) > 8:
        return step(lambda v: function(F.tanh(v) * 2), draw.index(x))
    return step(function, draw.index(x))


@choice(weight=4, exact=True)
def precise(draw, x):
    return step(draw.any(PRECISE), draw.index(x))


@choice(weight=2, exact=True, needs_exact=True)
def stepped(draw, x):
    return step(draw.any(STEPS), draw.index(x))


@choice(weight=2, exact=True, kinds="i")
def whole(draw, x):
    functions = [
        lambda v: v + 3,
        lambda v: v * 2,
        lambda v: -v,
        lambda v: v // 3,
        lambda v: v % 3,
        lambda v: 5 - v,
        lambda v: v << 1,
        lambda v: v >> 1,
        lambda v: F.abs(v),
        lambda v: F.maximum(v, 1),
        lambda v: v.astype("float32"),
        lambda v: v * 0.5,
        lambda v: v / 4,
        lambda v: F.clip(v, -2, 3),
    ]
    return step(draw.any(functions), draw.index(x))


@choice(weight=2, exact=True, kinds="b")
def logic(draw, x):
    functions = [
        F.logical_not,
        lambda v: v.astype("float32"),
        lambda v: v.astype("int32"),
        lambda v: v.astype("float32") * 2 - 1,
        lambda v: ~v,
        lambda v: v & ~v,
        lambda v: F.logical_or(v, ~v),
        lambda v: F.logical_xor(v, v),
    ]
    return step(draw.any(functions), draw.index(x))


@choice(weight=2, exact=True, needs_exact=True, kinds="fi")
def compared(draw, x):
    functions = [
        lambda v: v > 0,
        lambda v: v <= 1,
        lambda v: v == 0,
        lambda v: F.not_equal(v, 1),
        lambda v: F.less(v, 2),
        lambda v: v >= v.reshape(-1)[0],
    ]
    return step(draw.any(functions), draw.index(x))


@choice(weight=5)
def arithmetic(draw, x):
    other = draw.partner(x)
    functions = [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: a / (F.abs(b) + 1),
        F.maximum,
        F.minimum,
        lambda a, b: F.atan2(a, F.abs(b) + 1),
        F.logaddexp,
    ]
    return step(draw.any(functions), draw.index(x), draw.index(other))


@choice(weight=2)
def with_parameter(draw, x):
    shape = [extent if draw.chance(0.6) else 1 for extent in x.shape[draw.below(x.ndim + 1) :]]
    name = draw.parameter(shape or [1])
    functions = [
        lambda a, b: a + b,
        lambda a, b: b - a,
        lambda a, b: a * b,
        lambda a, b: F.maximum(a, b),
        lambda a, b: F.nn.prelu(a, b) if b.size == 1 else a / (F.abs(b) + 1),
    ]
    function, i = draw.any(functions), draw.index(x)
    return lambda module, values: function(values[i], getattr(module, name))


@choice(weight=2, exact=True, needs_exact=True)
def where(draw, x):
    other = draw.partner(x, same_dtype=True)
    if other.shape != x.shape:
        return None
    return step(lambda a, b: F.where(a > b, a, b * 2), draw.index(x), draw.index(other))


@choice(exact=True, kinds="fib")
def converted(draw, x):
    names = {"f": ["float16"], "i": ["float32", "uint8", "int8", "int16"], "b": ["float32", "uint8"]}
    name = draw.any(names[np.dtype(x.dtype).kind])
    if name == "uint8":
        return step(lambda v: F.clip(v.astype("int32"), 0, 9).astype("uint8").astype("int32"), draw.index(x))
    return step(lambda v: v.astype(name).astype("float32"), draw.index(x))


# ---- shapes

ALL = "fib"


@choice(weight=3, exact=True, kinds=ALL, ranks=range(1, 6))
def sliced(draw, x):
    items = []
    for extent in x.shape:
        kind = draw.below(7)
        if kind == 0:
            items.append(draw.below(2 * extent) - extent)
        elif kind in (1, 2) and extent > 1:
            start = draw.below(extent - 1)
            items.append(
                slice(
                    start,
                    draw.any([None, start + 1, -1 if start < extent - 2 else None]),
                    draw.any([None, 1, 2]),
                )
            )
        elif kind == 3:
            items.append(slice(None, None, -1))
        elif kind == 4 and draw.chance(0.3):
            items.extend([None, slice(None)])
        else:
            items.append(slice(None))
    index = tuple(items)
    if draw.chance(0.2):
        index = (Ellipsis, items[-1])
    return step(lambda v: v[index], draw.index(x))


@choice(weight=2, exact=True, kinds="fi", ranks=range(1, 5))
def gathered_by_index(draw, x):
    axis = draw.below(x.ndim)
    picks = [draw.below(2 * x.shape[axis]) - x.shape[axis] for _ in range(draw.between(1, 4))]
    form = draw.below(3)
    picks = [picks, np.array(picks, "int32"), None][form] if form < 2 else picks
    index = (slice(None),) * axis + (picks,)
    if form == 2:
        return step(
            lambda v: v[(slice(None),) * axis + (mge.Tensor(np.array(picks, "int32")),)], draw.index(x)
        )
    return step(lambda v: v[index], draw.index(x))


@choice(weight=2, exact=True, kinds="f", ranks=range(2, 5))
def two_indices(draw, x):
    count = draw.between(1, 3)
    first, second = ([draw.below(x.shape[axis]) for _ in range(count)] for axis in (0, 1))
    if x.ndim > 2 and draw.chance(0.5):
        last = [draw.below(x.shape[2]) for _ in range(count)]
        return step(lambda v: v[first, :, last], draw.index(x))
    return step(lambda v: v[first, second], draw.index(x))


@choice(weight=2, exact=True, kinds="f", ranks=range(1, 5))
def assigned(draw, x):
    index = tuple(
        draw.any([slice(None), slice(1, None), draw.below(extent), slice(None, None, 2)])
        for extent in x.shape
    )
    value = draw.any([0.5, 2, -1.25])

    def assign(v):
        copy = v + 0
        copy[index] = value
        return copy

    def add(v):
        copy = v * 1
        copy[index] = copy[index] * 2 + value
        return copy

    return step(draw.any([assign, add]), draw.index(x))


@choice(weight=2, exact=True, kinds=ALL, ranks=range(2, 6))
def permuted(draw, x):
    order = draw.shuffled(range(x.ndim))
    if draw.chance(0.3):
        axes = draw.below(x.ndim), draw.below(x.ndim)
        return step(lambda v: F.swapaxes(v, *axes), draw.index(x))
    return step(lambda v: F.transpose(v, order), draw.index(x))


@choice(weight=3, exact=True, kinds=ALL, ranks=range(1, 6))
def reshaped(draw, x):
    forms = [
        lambda v: v.flatten(),
        lambda v: v.reshape(v.shape[0], -1),
        lambda v: F.expand_dims(v, 0),
        lambda v: F.expand_dims(v, (1, -1)),
        lambda v: F.squeeze(F.expand_dims(v, -1), -1),
    ]
    if x.ndim > 1:
        forms += [
            lambda v: F.flatten(v, 1),
            lambda v: F.flatten(v, 0, 1),
            lambda v: v.reshape(v.shape[0] * v.shape[1], *v.shape[2:]) if v.ndim > 2 else v.reshape(-1),
            lambda v: v.reshape(-1, v.shape[1]),
        ]
    for factor in (2, 3):
        if x.shape[-1] % factor == 0:
            forms.append(
                lambda v, f=factor: v.reshape(*v.shape[:-1], f, -1) if v.ndim > 1 else v.reshape(f, -1)
            )
    return step(draw.any(forms), draw.index(x))


@choice(weight=3, exact=True, kinds=ALL, ranks=range(1, 6))
def joined(draw, x):
    axis = draw.axis(x)
    others = [v for v in draw.usable() if v.ndim == x.ndim and v.dtype == x.dtype and draw.fits(v, x, axis)]
    chosen = [x, *(draw.any(others) for _ in range(draw.between(1, 2)))]
    if draw.chance(0.3):
        chosen = [v for v in chosen if v.shape == x.shape]
        return step(lambda *parts: F.stack(list(parts), axis), *map(draw.index, chosen))
    return step(lambda *parts: F.concat(list(parts), axis), *map(draw.index, chosen))


@choice(weight=2, exact=True, kinds="fi", ranks=range(1, 6))
def split(draw, x):
    axis = draw.below(x.ndim)
    extent = x.shape[axis]
    if extent < 2:
        return None
    parts = draw.any([n for n in range(2, extent + 1) if extent % n == 0] + [[1], [1, extent - 1]])
    return step(lambda v: list(F.split(v, parts, axis)), draw.index(x))


@choice(weight=2, exact=True, kinds="fi", ranks=range(1, 5))
def repeated(draw, x):
    axis = draw.below(x.ndim)
    forms = [
        lambda v: F.repeat(v, 2, axis),
        lambda v: F.tile(v, (1,) * axis + (2,) + (1,) * (x.ndim - axis - 1)),
        lambda v: F.roll(v, 1, axis),
        lambda v: F.roll(v, -2, axis),
        lambda v: F.broadcast_to(F.expand_dims(v, 0), (2, *v.shape)),
    ]
    return step(draw.any(forms), draw.index(x))


@choice(exact=True, kinds="f", ranks=range(1, 5))
def created(draw, x):
    forms = [
        lambda v: F.zeros_like(v) + v,
        lambda v: F.ones_like(v) * v,
        lambda v: v + F.arange(v.shape[-1]),
        lambda v: v + F.full((1, v.shape[-1]), 0.5),
        lambda v: v * F.linspace(1, 2, v.shape[-1]),
        lambda v: v - F.ones((v.shape[-1],)),
    ]
    return step(draw.any(forms), draw.index(x))


@choice(weight=2, exact=True, kinds="fi", ranks=range(1, 6))
def padded(draw, x):
    widths = tuple((draw.below(2), draw.below(3)) if draw.chance(0.5) else (0, 0) for _ in x.shape)
    mode = (
        draw.any(["constant", "constant", "edge", "reflect"]) if np.dtype(x.dtype).kind == "f" else "constant"
    )
    if mode == "reflect" and (np.max(widths, axis=1) >= x.shape).any():
        return None
    value = draw.any([0, 2])
    return step(lambda v: F.nn.pad(v, widths, mode=mode, constant_value=value), draw.index(x))


# ---- reductions, sorting, products


@choice(weight=3, ranks=range(1, 6))
def reduced(draw, x):
    function = draw.any([F.mean, F.sum, F.max, F.min, F.std, F.var, F.prod])
    axis, keep = draw.any([None, draw.axis(x), draw.axes(x)]), draw.chance(0.5)
    if function in (F.std, F.var, F.prod):
        axis = draw.axis(x)
    if function is F.prod:  # of small factors
        return step(lambda v: F.prod(F.tanh(v), axis, keepdims=keep), draw.index(x))
    return step(lambda v: function(v, axis, keepdims=keep), draw.index(x))


@choice(exact=True, kinds="i", ranks=range(1, 6))
def reduced_whole(draw, x):
    function, axis = draw.any([F.sum, F.max, F.min]), draw.any([None, draw.axis(x)])
    return step(lambda v: function(v, axis), draw.index(x))


@choice(weight=2, exact=True, needs_exact=True, ranks=range(1, 5))
def ranked(draw, x):
    axis = draw.axis(x)
    forms = [lambda v: F.argmax(v, axis), lambda v: F.argmin(v, axis, keepdims=True)]
    if len(np.unique(x.numpy())) < x.size:  # which of equals comes first is not settled
        return None
    if x.ndim in (1, 2):
        descending, count = draw.chance(0.5), draw.between(1, x.shape[-1])
        forms += [
            lambda v: list(F.sort(v, descending)),
            lambda v: F.argsort(v, descending),
            lambda v: list(F.topk(v, count, descending=descending)),
        ]
    return step(draw.any(forms), draw.index(x))


@choice(weight=2, ranks=range(1, 6))
def normalized(draw, x):
    axis = draw.axis(x)
    forms = [
        lambda v: F.softmax(v, axis),
        lambda v: F.logsoftmax(v, axis),
        lambda v: F.logsumexp(v, axis),
        lambda v: F.normalize(v + 0.5, axis=axis),
        lambda v: F.norm(v, axis=axis),
        lambda v: F.cumsum(v, axis),
    ]
    return step(draw.any(forms), draw.index(x))


@choice(weight=2, ranks=range(1, 5))
def multiplied(draw, x):
    shape = (x.shape[-1], draw.between(1, 4)) if draw.chance(0.7) else (x.shape[-1],)
    name, i = draw.parameter(shape), draw.index(x)
    if x.ndim >= 2 and draw.chance(0.3):
        return step(lambda v: F.matmul(v, v, transpose_b=True) * 0.1, i)
    return lambda module, values: F.matmul(values[i], getattr(module, name))


@choice(exact=True, kinds="i", ranks=range(3))
def looked_up(draw, x):
    name = draw.module(M.Embedding(7, draw.between(1, 4)))
    i = draw.index(x)
    forms = [
        lambda module, values: getattr(module, name)(F.clip(values[i], 0, 6)),
        lambda module, values: F.one_hot(F.clip(values[i], 0, 4), 5),
    ]
    return draw.any(forms)


@choice(exact=True, ranks=range(2, 4))
def gathered(draw, x):
    axis = draw.below(x.ndim)
    shape = [extent if i != axis else draw.between(1, 3) for i, extent in enumerate(x.shape)]
    index = np.array(draw.integers(x.shape[axis], shape), "int32")
    return step(lambda v: F.gather(v, axis, mge.Tensor(index)), draw.index(x))


# ---- layers


def called(draw, x, module):
    name, i = draw.module(module), draw.index(x)
    return lambda owner, values: getattr(owner, name)(values[i])


@choice(weight=2, ranks=range(1, 5))
def linear(draw, x):
    return called(draw, x, M.Linear(x.shape[-1], draw.between(1, 5), bias=draw.chance(0.7)))


@choice(weight=8, ranks=[4])
def convolved(draw, x):
    channels = x.shape[1]
    groups = draw.any([1, 1, *[n for n in range(1, channels + 1) if channels % n == 0]])
    kernel, stride, padding, dilation = (
        (draw.between(1, 3), draw.between(1, 3)),
        draw.between(1, 2),
        (draw.below(3), draw.below(2)),
        draw.any([1, 1, 2]),
    )
    out = groups * draw.between(1, 3)
    if draw.chance(0.25):
        extra = draw.below(stride)
        layer = M.ConvTranspose2d(
            channels, out, kernel, stride, padding, extra, dilation, groups, bias=draw.chance(0.5)
        )
        return called(draw, x, layer)
    mode = draw.any(["zeros", "zeros", "reflect", "replicate"])
    kind = draw.any([M.Conv2d, M.Conv2d, M.ConvBn2d, M.ConvBnRelu2d, M.ConvRelu2d])
    extra = {"padding_mode": mode} if kind is M.Conv2d else {}
    return called(
        draw, x, kind(channels, out, kernel, stride, padding, dilation, groups, draw.chance(0.6), **extra)
    )


@choice(weight=2, ranks=[3])
def convolved_1d(draw, x):
    return called(
        draw,
        x,
        M.Conv1d(x.shape[1], draw.between(1, 4), draw.between(1, 3), draw.between(1, 2), draw.below(2)),
    )


@choice(ranks=[5])
def convolved_3d(draw, x):
    return called(
        draw,
        x,
        M.Conv3d(x.shape[1], draw.between(1, 3), draw.between(1, 2), draw.between(1, 2), draw.below(2)),
    )


@choice(weight=3, ranks=[4])
def pooled(draw, x):
    kernel = (draw.between(1, 3), draw.between(1, 3))
    stride, padding = (draw.between(1, 3), draw.between(1, 2)), tuple(draw.below(k // 2 + 1) for k in kernel)
    size = tuple(draw.between(1, extent) for extent in x.shape[2:])
    forms = [
        lambda v: F.max_pool2d(v, kernel, stride, padding),
        lambda v: F.avg_pool2d(v, kernel, stride, padding),
        lambda v: F.avg_pool2d(v, kernel, stride, padding, mode="average"),
        lambda v: F.adaptive_avg_pool2d(v, size),
        lambda v: F.adaptive_max_pool2d(v, size),
    ]
    return step(draw.any(forms), draw.index(x))


@choice(weight=3, ranks=[4])
def normalized_layer(draw, x):
    channels = x.shape[1]
    groups = draw.any([n for n in range(1, channels + 1) if channels % n == 0])
    layers = [
        lambda: M.BatchNorm2d(channels, affine=draw.chance(0.7)),
        lambda: M.GroupNorm(groups, channels, affine=draw.chance(0.7)),
        lambda: M.InstanceNorm(channels, affine=draw.chance(0.7)),
        lambda: M.LayerNorm(x.shape[-draw.between(1, 3) :], affine=draw.chance(0.7)),
        lambda: M.LocalResponseNorm(3, 1.5, 0.01, 0.6),
        lambda: M.PReLU(channels),
    ]
    return called(draw, x, draw.any(layers)())


@choice(weight=2, ranks=[4])
def resized(draw, x):
    size = (draw.between(1, 9), draw.between(1, 9))
    forms = [
        lambda v: F.vision.interpolate(v, size, mode="nearest"),
        lambda v: F.vision.interpolate(v, size, mode="bilinear", align_corners=False),
        lambda v: F.vision.interpolate(v, size, mode="bilinear", align_corners=True),
        lambda v: F.vision.interpolate(v, scale_factor=2, mode="bilinear"),
        lambda v: F.vision.interpolate(v, scale_factor=2, mode="nearest"),
    ]
    if x.shape[1] % 4 == 0:
        forms.append(lambda v: F.pixel_shuffle(v, 2))
    return step(draw.any(forms), draw.index(x))


@choice(ranks=[3])
def recurrent(draw, x):
    bias, first = draw.chance(0.7), draw.chance(0.5)
    layer = draw.any([M.LSTM, M.RNN])(x.shape[-1], draw.between(1, 4), draw.between(1, 2), bias, first)
    name, i = draw.module(layer), draw.index(x)
    return lambda owner, values: getattr(owner, name)(values[i])[0]
