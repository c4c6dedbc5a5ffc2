"""What a random program may apply: MegEngine's operators themselves."""

import megengine as mge
import numpy as np
from chosen import choice, step
from megengine.core._imperative_rt.core2 import apply
from megengine.core.ops import builtin as B

UNARY = ["ABS", "NEGATE", "RELU", "CEIL", "FLOOR", "ROUND", "RELU6", "SIGN", "SQUARE"]
SMOOTH = ["SIGMOID", "TANH", "SIN", "COS", "EXP", "H_SWISH", "SILU", "GELU", "SOFTPLUS", "ERF", "EXPM1"]
BINARY = ["ADD", "SUB", "MUL", "MAX", "MIN", "FUSE_ADD_RELU"]
ALL = "fib"


def first(op, *inputs):
    return apply(op, *inputs)[0]


def applied(op, index):
    """A step that applies ``op`` to one value."""
    return step(lambda v: first(op, v), index)


def constants(*numbers):
    return [mge.Tensor(np.array(each, "int32")) for each in numbers]


@choice(weight=2, exact=True, needs_exact=True)
def elementwise(draw, x):
    return applied(B.Elemwise(mode=draw.any(UNARY)), draw.index(x))


@choice(weight=2)
def smooth_operator(draw, x):
    op, squashed = B.Elemwise(mode=draw.any(SMOOTH)), B.Elemwise(mode="TANH")
    return step(lambda v: first(op, first(squashed, v)), draw.index(x))


@choice(weight=2)
def two_operands(draw, x):
    other = draw.partner(x, same_dtype=True)
    op = B.Elemwise(mode=draw.any(BINARY))
    return step(lambda a, b: first(op, a, b), draw.index(x), draw.index(other))


@choice(exact=True, kinds=ALL)
def retyped(draw, x):
    names = {"f": ["float32", "float16"], "i": ["float32", "int32"], "b": ["float32", "int32"]}
    op = B.TypeCvt(dtype=draw.any(names[np.dtype(x.dtype).kind]))
    return step(lambda v: first(op, v).astype("float32"), draw.index(x))


@choice(weight=2, exact=True, kinds=ALL, ranks=range(1, 6))
def shaped(draw, x):
    axis = draw.below(x.ndim)
    order = draw.shuffled(range(x.ndim))
    order.insert(draw.below(x.ndim + 1), -1)
    whole = mge.Tensor(np.array([-1, x.shape[-1]], "int32"))
    broad = mge.Tensor(np.array([2, *x.shape], "int32"))
    ops = [
        lambda v: first(B.Dimshuffle(order), v),
        lambda v: first(B.AddAxis([axis, axis]), v),
        lambda v: first(B.RemoveAxis([axis]), first(B.AddAxis([axis]), v)),
        lambda v: first(B.Reshape(axis=0), v, whole),
        lambda v: first(B.Broadcast(), v, broad),
        lambda v: first(B.Concat(axis=axis), v, v),
        lambda v: first(B.Stack(axis=axis), v, v),
    ]
    return step(draw.any(ops), draw.index(x))


@choice(weight=2, ranks=range(1, 5))
def reduced_by_operator(draw, x):
    mode, axis = draw.any(["SUM", "MEAN", "MAX", "MIN", "SUM_SQR"]), draw.below(x.ndim)
    return applied(B.Reduce(mode=mode, axis=axis, keepdim=draw.chance(0.5)), draw.index(x))


@choice(ranks=range(2, 5))
def summed_up(draw, x):
    op = B.Cumsum(axis=draw.below(x.ndim), exclusive=draw.chance(0.5), reverse=draw.chance(0.5))
    return applied(op, draw.index(x))


@choice(weight=2, exact=True, kinds="fi", ranks=range(1, 5))
def read(draw, x):
    axis = draw.below(x.ndim)
    extent = x.shape[axis]
    start = draw.below(extent)
    end = draw.between(start + 1, extent)
    picks = mge.Tensor(np.array(draw.integers(extent, [draw.between(1, 3)]), "int32"))
    items = [
        lambda v: first(B.Subtensor([[axis, True, True, False, False]]), v, *constants(start, end)),
        lambda v: first(B.Subtensor([[axis, False, False, False, True]]), v, *constants(start)),
        lambda v: first(B.IndexingMultiAxisVec([[axis, False, False, False, True]]), v, picks),
    ]
    return step(draw.any(items), draw.index(x))


@choice(weight=2, ranks=[4])
def windowed(draw, x):
    kernel = [min(draw.between(1, 3), extent) for extent in x.shape[2:]]
    pads = [draw.below(size // 2 + 1) for size in kernel]
    state = {
        **{f"window_{axis}": size for axis, size in zip("hw", kernel)},  # noqa: B905
        **{f"pad_{axis}": size for axis, size in zip("hw", pads)},  # noqa: B905
        **{f"stride_{axis}": draw.between(1, 3) for axis in "hw"},
    }
    mode = draw.any(["MAX", "AVERAGE", "AVERAGE_COUNT_EXCLUDE_PADDING"])
    ops = [B.Pooling(mode=mode, **state), B.LRN(n=3, k=2.0, alpha=0.01, beta=0.5)]
    if x.shape[1] % 4 == 0:
        ops.append(B.PixelShuffle(factor=2))
    return applied(draw.any(ops), draw.index(x))


@choice(weight=2, ranks=[4])
def convolved_by_operator(draw, x):
    sizes = [min(draw.between(1, 3), extent) for extent in x.shape[2:]]
    name = draw.parameter((draw.between(1, 4), x.shape[1], *sizes))
    state = {f"{name}_{axis}": draw.between(1, 2) for name in ("stride",) for axis in "hw"}
    state.update({f"pad_{axis}": draw.below(2) for axis in "hw"})
    op, i = B.Convolution(**state), draw.index(x)
    return lambda module, values: first(op, values[i], getattr(module, name))
