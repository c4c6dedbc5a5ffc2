"""Products of tensors and matrices, distances and covariance."""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.elementwise.arithmetic import add, clamp_min, div, mul, sub
from tmconvert.frontends.torch.adapters.reductions.sums import ATEN as REDUCTIONS
from tmconvert.frontends.torch.adapters.values import (
    axis_of,
    floating,
    is_tensor,
    kind_of,
    promoted,
    rank,
    reshaped,
    static_ints,
)
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.matrices import transposed as matrices_transposed

ATEN = Table()
_LETTERS = string.ascii_letters


@ATEN.add("matmul", "__matmul__", "linalg_matmul")
def matmul(g, input, other):
    return g.call("aten::matmul", input, other)


ATEN.add("__rmatmul__")(lambda g, input, other: matmul(g, other, input))


def _declare_added(name: str, *names: str, product: str) -> None:
    """Declares beta * input + alpha * product; the factors are integers for integer tensors."""

    def adapter(g, input, *given, beta=1, alpha=1, **named):
        first, second = (*given, *(named[each] for each in names[len(given) :]))
        if product == "outer":
            input, first, second = promoted(g, input, first, second)
        if kind_of(g.type(input).dtype) < 2:
            beta, alpha = int(beta), int(alpha)
        if g.type(first).shape[-1] != 0 or product == "outer":
            return g.call(f"aten::{name}", input, first, second, beta, alpha)
        zeros = g.call(f"aten::{product}", first, second)  # runtimes forget beta where nothing is summed
        return add(g, mul(g, input, beta), zeros if name != "addbmm" else REDUCTIONS["sum"](g, zeros, 0))

    ATEN.add(name)(adapter)


_declare_added("addmm", "mat1", "mat2", product="mm")
_declare_added("addmv", "mat", "vec", product="mv")
_declare_added("addr", "vec1", "vec2", product="outer")
_declare_added("addbmm", "batch1", "batch2", product="bmm")
_declare_added("baddbmm", "batch1", "batch2", product="bmm")


ATEN.add("outer", "ger")(lambda g, input, vec2: g.call("aten::outer", *promoted(g, input, vec2)))
ATEN.add("vdot")(lambda g, input, other: g.call("aten::dot", input, other))
ATEN.add("linalg_vecdot")(lambda g, x, y, *, dim=-1: REDUCTIONS["sum"](g, mul(g, x, y), dim))


@ATEN.add("inner")
def inner(g, input, other):
    if not rank(g, input) or not rank(g, other):
        return mul(g, input, other)
    return tensordot(g, input, other, [-1], [-1])


@ATEN.add("tensordot")
def tensordot(g, input, other, dims=2, dims_other=None):
    """Contracts ``dims`` axes: the last ones of one tensor with the first of the other, or two lists."""
    if dims_other is None and isinstance(dims, (list, tuple)) and len(dims) == 2:
        dims, dims_other = dims
    ranks = rank(g, input), rank(g, other)
    if dims_other is None:
        (count,) = static_ints(g, dims)
        dims, dims_other = range(ranks[0] - count, ranks[0]), range(count)
    firsts = [axis_of(g, input, axis) for axis in static_ints(g, list(dims))]
    seconds = [axis_of(g, other, axis) for axis in static_ints(g, list(dims_other))]
    for first, second in zip(firsts, seconds, strict=True):  # one element is as many as the other has
        if g.type(input).shape[first] == 1:
            other = REDUCTIONS["sum"](g, other, second, True)
        if g.type(other).shape[second] == 1:
            input = REDUCTIONS["sum"](g, input, first, True)
    left = list(_LETTERS[: ranks[0]])
    right = list(_LETTERS[ranks[0] : sum(ranks)])
    for first, second in zip(firsts, seconds, strict=True):
        right[second] = left[first]
    summed = {left[axis] for axis in firsts}
    result = "".join(letter for letter in left + right if letter not in summed)
    return g.call("aten::einsum", [input, other], f"{''.join(left)},{''.join(right)}->{result}")


@ATEN.add("kron")
def kron(g, input, other):
    """Kronecker product: the axes of both operands interleave."""
    x, y = promoted(g, input, other)
    count = max(rank(g, x), rank(g, y))
    shapes = [[1] * (count - rank(g, each)) + list(g.type(each).shape) for each in (x, y)]
    x = reshaped(g, x, [extent for pair in zip(shapes[0], [1] * count, strict=True) for extent in pair])
    y = reshaped(g, y, [extent for pair in zip([1] * count, shapes[1], strict=True) for extent in pair])
    return reshaped(g, mul(g, x, y), [a * b for a, b in zip(*shapes, strict=True)])


@ATEN.add("cross")
def cross(g, input, other, dim=None):
    if dim is None:
        dim = list(g.type(input).shape).index(3)
    return g.call("aten::linalg_cross", *promoted(g, input, other), dim)


@ATEN.add("linalg_cross")
def linalg_cross(g, input, other, *, dim=-1):
    return g.call("aten::linalg_cross", *promoted(g, input, other), dim)


def transposed(g, x):
    """Transposes the last two axes."""
    return matrices_transposed(Term(g, x)).value


@ATEN.add("linalg_multi_dot", "chain_matmul")
def multi_dot(g, tensors, *more):
    tensors = [tensors, *more] if is_tensor(tensors) else list(tensors)
    result = tensors[0]
    for tensor in tensors[1:]:
        result = matmul(g, result, tensor)
    return result


@ATEN.add("matrix_power", "linalg_matrix_power")
def matrix_power(g, input, n):
    """Power of a matrix, by repeated squaring."""
    if n < 0:
        return matrix_power(g, g.call("aten::linalg_inv", input), -n)
    if n == 0:
        shape = g.type(input).shape
        unit = g.constant(np.eye(int(shape[-1])), g.type(input).dtype)
        return g.call("aten::expand", unit, list(shape))
    half = matrix_power(g, input, n // 2) if n > 1 else None
    square = input if half is None else matmul(g, half, half)
    return matmul(g, square, input) if n > 1 and n % 2 else square


ATEN.add("linalg_matrix_exp", "matrix_exp")(lambda g, input: g.call("aten::linalg_matrix_exp", input))
ATEN.add("cdist")(lambda g, x1, x2, p=2.0, compute_mode=None: g.call("aten::cdist", x1, x2, p))
ATEN.add("dist")(lambda g, input, other, p=2: g.call("aten::linalg_vector_norm", sub(g, input, other), p))


@ATEN.add("cov")
def cov(g, input, *, correction=1, fweights=None, aweights=None):
    """Covariance of the rows: sum w (x - mean)(y - mean) / norm with weights w = fweights * aweights.

    norm is sum w - correction * (sum w aweights / sum w), which is n - correction without weights.
    Source: torch.cov.
    """
    x = floating(g, input)
    shape = g.type(x).shape
    x = reshaped(g, x, [1, *shape] if len(shape) == 1 else [1, 1] if not shape else list(shape))
    total = REDUCTIONS["sum"]
    weights = [each for each in (fweights, aweights) if each is not None]
    if not weights:
        centred, norm = sub(g, x, REDUCTIONS["mean"](g, x, 1, True)), g.type(x).shape[1] - correction
        weighted: Any = centred
    else:
        w = weights[0] if len(weights) == 1 else mul(g, *weights)
        sum_w = total(g, w)
        centred = sub(g, x, div(g, total(g, mul(g, x, w), 1, True), sum_w))
        bias = correction if aweights is None else div(g, total(g, mul(g, w, aweights)), sum_w)
        norm = sub(g, sum_w, bias if aweights is None else mul(g, bias, correction))
        weighted = mul(g, centred, w)
    norm = clamp_min(g, norm, 0) if is_tensor(norm) else g.constant(max(norm, 0), g.type(x).dtype)
    result = div(g, matmul(g, weighted, transposed(g, centred)), norm)
    rows = g.type(x).shape[0]
    return reshaped(g, result, [] if rows == 1 else [rows, rows])
