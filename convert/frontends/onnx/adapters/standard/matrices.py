"""Matrix products and what is computed of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.standard.unsigned import in_signed
from tmconvert.frontends.onnx.adapters.values import like, rank, reshaped, scalar
from tmconvert.ir import CallFunction, Constant, TensorNode
from tmconvert.ir.emitter import Emitter

OPERATORS = OperatorTable()


@OPERATORS.add("MatMul")
def matmul(g, A, B):
    return product(g, A, B)


def product(g, a, b):
    """A product of floats, as a linear layer where the second is a constant matrix, or of integers."""
    if g.type(a).dtype.kind == "f":
        if rank(g, b) == 2 and rank(g, a) > 1 and _is_constant(b) and not _is_constant(a):
            return g.call("aten::linear", a, g.call("aten::permute", b, [1, 0]), None)
        return g.call("aten::matmul", a, b)
    return in_signed("mul", _integer_matmul)(g, a, b)


def _integer_matmul(g: Emitter, a, b) -> Any:
    is_row, is_column = rank(g, a) == 1, rank(g, b) == 1
    left = reshaped(g, a, [1, *g.type(a).shape]) if is_row else a
    made = integer_product(g, left, reshaped(g, b, [*g.type(b).shape, 1]) if is_column else b)
    shape = list(g.type(made).shape)
    if is_row:
        del shape[-2]
    return reshaped(g, made, shape[:-1] if is_column else shape)


def _is_constant(value) -> bool:
    """Whether ``value`` is a constant or computed from constants alone, as a dequantized weight."""
    if not isinstance(value, TensorNode):
        return True
    expr = value.expr
    return isinstance(expr, Constant) or (
        isinstance(expr, CallFunction) and all(map(_is_constant, expr.inputs))
    )


def integer_product(g, a, b):
    """[..., M, K] x [..., K, N] of integers, as the sum over K of [..., M, K, 1] x [..., 1, K, N]."""
    left = reshaped(g, a, [*g.type(a).shape, 1])
    shape = list(g.type(b).shape)
    right = reshaped(g, b, [*shape[:-2], 1, *shape[-2:]])
    dtype = g.type(a).dtype
    made = g.call("aten::sum", g.call("aten::mul", left, right), [-2], False)
    return made if g.type(made).dtype == dtype else g.call("aten::to", made, dtype=dtype.name)


@OPERATORS.add("Gemm")
def gemm(g, A, B, C=None, *, alpha=1.0, beta=1.0, transA=0, transB=0, broadcast=0):
    """alpha A' B' + beta C."""
    a = g.call("aten::permute", A, [1, 0]) if transA else A
    if g.type(a).dtype.kind != "f":
        b = g.call("aten::permute", B, [1, 0]) if transB else B
        return _sum(g, _times(g, integer_product(g, a, b), alpha), C, beta)
    weight = B if transB else g.call("aten::permute", B, [1, 0])
    is_bias = C is not None and g.type(C).shape == (g.type(weight).shape[0],)
    if alpha == 1.0 and beta == 1.0 and is_bias:
        return g.call("aten::linear", a, weight, C)
    return _sum(g, _times(g, g.call("aten::linear", a, weight, None), alpha), C, beta)


def _times(g: Emitter, x, factor: float) -> Any:
    if factor == 1.0:
        return x
    if g.type(x).dtype.kind != "f":
        if factor != int(factor):
            raise Refusal(f"Gemm of integers with the factor {factor} is not supported")
        factor = int(factor)
    return g.call("aten::mul", x, like(g, x, factor))


def _sum(g: Emitter, x, other, beta: float) -> Any:
    return x if other is None or beta == 0 else g.call("aten::add", x, _times(g, other, beta))


@OPERATORS.add("Einsum")
def einsum(g, *Inputs, equation):
    from tmconvert.frontends.shared.einsum import einsum_of

    operands, arrow, result = equation.partition("->")
    if arrow and "..." in operands and "..." not in result:
        raise Refusal(f"the result of Einsum {equation!r} lacks the axes of the ellipsis")
    if not arrow and operands.lower() != operands != operands.upper():
        raise Refusal(
            f"Einsum {equation!r} has no result, whose order by letters is not the same in all runtimes",
            "write the result into the equation",
        )
    return einsum_of(g, equation, Inputs)


OPERATORS.add("Det")(lambda g, X: g.call("aten::linalg_det", X))


@OPERATORS.add("Trilu")
def trilu(g, input, k=None, *, upper=1):
    diagonal = 0 if k is None else int(scalar(g, k, "the diagonal"))
    return g.call("aten::triu" if upper else "aten::tril", input, diagonal)


@OPERATORS.add("EyeLike")
def eye_like(g, input, *, dtype=None, k=0):
    from tmconvert.frontends.onnx.adapters.values import dtype_of

    rows, columns = g.type(input).shape
    wanted = g.type(input).dtype if dtype is None else dtype_of(dtype)
    row = reshaped(g, g.call("aten::arange", 0, rows, 1), [rows, 1])
    column = reshaped(g, g.call("aten::arange", 0, columns, 1), [1, columns])
    is_diagonal = g.call("aten::eq", g.call("aten::add", row, g.constant(k, np.int64)), column)
    return g.call("aten::to", is_diagonal, dtype=wanted.name)
