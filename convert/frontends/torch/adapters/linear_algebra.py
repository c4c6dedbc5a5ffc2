"""Products of two tensors along axes, and linear algebra."""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from ....ir.emitter import Emitter
from ...table import Table
from .arithmetic import add, clamp_min, div, mul, sub
from .reductions import ATEN as REDUCTIONS
from .values import axis_of, floating, is_tensor, kind_of, promoted, rank, reshaped, static_ints

ATEN = Table()
_LETTERS = string.ascii_letters


@ATEN.add("matmul", "__matmul__", "linalg_matmul")
def matmul(g: Emitter, input: Any, other: Any) -> Any:
    return g.call("aten::matmul", input, other)


@ATEN.add("__rmatmul__")
def rmatmul(g: Emitter, input: Any, other: Any) -> Any:
    return matmul(g, other, input)


def _declare_added(name: str, *names: str, product: str) -> None:
    """beta * input + alpha * a product of what has these names; the factors of integers are integers."""

    def adapter(g: Emitter, input: Any, *given: Any, beta: Any = 1, alpha: Any = 1, **named: Any) -> Any:
        first, second = (*given, *(named[each] for each in names[len(given) :]))
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


@ATEN.add("ger")
def ger(g: Emitter, input: Any, vec2: Any) -> Any:
    return g.call("aten::outer", input, vec2)


@ATEN.add("vdot")
def vdot(g: Emitter, input: Any, other: Any) -> Any:
    return g.call("aten::dot", input, other)


@ATEN.add("linalg_vecdot")
def vecdot(g: Emitter, x: Any, y: Any, *, dim: int = -1) -> Any:
    return REDUCTIONS["sum"](g, mul(g, x, y), dim)


@ATEN.add("inner")
def inner(g: Emitter, input: Any, other: Any) -> Any:
    if not rank(g, input) or not rank(g, other):
        return mul(g, input, other)
    return tensordot(g, input, other, [-1], [-1])


@ATEN.add("tensordot")
def tensordot(g: Emitter, input: Any, other: Any, dims: Any = 2, dims_other: Any = None) -> Any:
    """``dims`` is how many axes, the last of one and the first of the other, or two lists of them."""
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
def kron(g: Emitter, input: Any, other: Any) -> Any:
    """Every element of the one times the other: axes interleave."""
    x, y = promoted(g, input, other)
    count = max(rank(g, x), rank(g, y))
    shapes = [[1] * (count - rank(g, each)) + list(g.type(each).shape) for each in (x, y)]
    x = reshaped(g, x, [extent for pair in zip(shapes[0], [1] * count, strict=True) for extent in pair])
    y = reshaped(g, y, [extent for pair in zip([1] * count, shapes[1], strict=True) for extent in pair])
    return reshaped(g, mul(g, x, y), [a * b for a, b in zip(*shapes, strict=True)])


@ATEN.add("cross")
def cross(g: Emitter, input: Any, other: Any, dim: int | None = None) -> Any:
    if dim is None:
        dim = list(g.type(input).shape).index(3)
    return g.call("aten::linalg_cross", *promoted(g, input, other), dim)


@ATEN.add("linalg_cross")
def linalg_cross(g: Emitter, input: Any, other: Any, *, dim: int = -1) -> Any:
    return g.call("aten::linalg_cross", *promoted(g, input, other), dim)


# ---- matrices


@ATEN.add("linalg_det", "det")
def det(g: Emitter, A: Any) -> Any:
    return g.call("aten::linalg_det", A)


@ATEN.add("linalg_inv", "inverse")
def inv(g: Emitter, A: Any) -> Any:
    return g.call("aten::linalg_inv", A)


@ATEN.add("linalg_inv_ex")
def inv_ex(g: Emitter, A: Any, *, check_errors: bool = False) -> Any:
    return inv(g, A), _no_errors(g, A)


def _no_errors(g: Emitter, matrices: Any) -> Any:
    return g.call("aten::expand", g.constant(0, np.int32), list(g.type(matrices).shape[:-2]))


@ATEN.add("linalg_slogdet", "slogdet")
def slogdet(g: Emitter, A: Any) -> Any:
    return tuple(g.call("aten::linalg_slogdet", A))


@ATEN.add("logdet")
def logdet(g: Emitter, A: Any) -> Any:
    return g.call("aten::log", det(g, A))


@ATEN.add("linalg_cholesky")
def linalg_cholesky(g: Emitter, A: Any, *, upper: bool = False) -> Any:
    return cholesky(g, A, upper)


@ATEN.add("cholesky")
def cholesky(g: Emitter, input: Any, upper: bool = False) -> Any:
    factor = g.call("aten::linalg_cholesky", input)
    return _transposed(g, factor) if upper else factor


@ATEN.add("cholesky_solve")
def cholesky_solve(g: Emitter, input: Any, input2: Any, upper: bool = False) -> Any:
    return g.call("aten::linalg_solve", _of_factor(g, input2, upper), input)


@ATEN.add("cholesky_inverse")
def cholesky_inverse(g: Emitter, input: Any, upper: bool = False) -> Any:
    return inv(g, _of_factor(g, input, upper))


def _of_factor(g: Emitter, factor: Any, upper: bool) -> Any:
    """The matrix of a triangular factor, of whose other half nothing counts."""
    x = g.call("aten::triu" if upper else "aten::tril", factor)
    return matmul(g, _transposed(g, x), x) if upper else matmul(g, x, _transposed(g, x))


def _transposed(g: Emitter, x: Any) -> Any:
    axes = list(range(rank(g, x)))
    return g.call("aten::permute", x, [*axes[:-2], axes[-1], axes[-2]])


@ATEN.add("linalg_cholesky_ex")
def cholesky_ex(g: Emitter, A: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    return cholesky(g, A, upper), _no_errors(g, A)


@ATEN.add("linalg_solve")
def solve(g: Emitter, A: Any, B: Any, *, left: bool = True) -> Any:
    if not left:  # X A = B
        return _transposed(g, solve(g, _transposed(g, A), _transposed(g, B)))
    is_vector = rank(g, B) == 1 or g.type(B).shape == g.type(A).shape[:-1]
    B = reshaped(g, B, [*g.type(B).shape, 1]) if is_vector else B
    result = g.call("aten::linalg_solve", A, B)
    return reshaped(g, result, g.type(result).shape[:-1]) if is_vector else result


@ATEN.add("linalg_solve_ex")
def solve_ex(g: Emitter, A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    return solve(g, A, B, left=left), _no_errors(g, A)


@ATEN.add("linalg_tensorsolve")
def tensorsolve(g: Emitter, A: Any, B: Any, dims: Any = None) -> Any:
    """The tensor X with tensordot(A, X, X.ndim) = B; ``dims`` of A are put behind the others before."""
    moved = [] if dims is None else [axis_of(g, A, axis) for axis in dims]
    A = g.call("aten::permute", A, [axis for axis in range(rank(g, A)) if axis not in moved] + moved)
    shape, count = g.type(A).shape, g.type(B).size
    result = solve(g, reshaped(g, A, [count, count]), reshaped(g, B, [count]))
    return reshaped(g, result, shape[rank(g, B) :])


@ATEN.add("linalg_solve_triangular")
def solve_triangular(
    g: Emitter, A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    triangle = g.call("aten::triu" if upper else "aten::tril", A)
    if unitriangular:
        size = g.type(A).shape[-1]
        unit = g.constant(np.eye(int(size)), bool)
        triangle = g.call("aten::where", unit, g.constant(1, g.type(A).dtype), triangle)
    return solve(g, triangle, B, left=left)


@ATEN.add("triangular_solve")
def triangular_solve(
    g: Emitter, input: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    matrix, is_upper = (_transposed(g, A), not upper) if transpose else (A, upper)
    return solve_triangular(g, matrix, input, upper=is_upper, unitriangular=unitriangular), A


@ATEN.add("linalg_multi_dot", "chain_matmul")
def multi_dot(g: Emitter, tensors: Any, *more: Any) -> Any:
    tensors = [tensors, *more] if is_tensor(tensors) else list(tensors)
    result = tensors[0]
    for tensor in tensors[1:]:
        result = matmul(g, result, tensor)
    return result


@ATEN.add("matrix_power", "linalg_matrix_power")
def matrix_power(g: Emitter, input: Any, n: int) -> Any:
    """By squaring."""
    if n < 0:
        return matrix_power(g, inv(g, input), -n)
    if n == 0:
        shape = g.type(input).shape
        unit = g.constant(np.eye(int(shape[-1])), g.type(input).dtype)
        return g.call("aten::expand", unit, list(shape))
    half = matrix_power(g, input, n // 2) if n > 1 else None
    square = input if half is None else matmul(g, half, half)
    return matmul(g, square, input) if n > 1 and n % 2 else square


@ATEN.add("cdist")
def cdist(g: Emitter, x1: Any, x2: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    return g.call("aten::cdist", x1, x2, p)


@ATEN.add("dist")
def dist(g: Emitter, input: Any, other: Any, p: float = 2) -> Any:
    return g.call("aten::linalg_vector_norm", sub(g, input, other), p)


@ATEN.add("cov")
def cov(g: Emitter, input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """Of the rows: sum w (x - mean)(y - mean) / norm, where the weights w are fweights * aweights.

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
    result = div(g, matmul(g, weighted, _transposed(g, centred)), norm)
    rows = g.type(x).shape[0]
    return reshaped(g, result, [] if rows == 1 else [rows, rows])
