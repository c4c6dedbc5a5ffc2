"""beta x + alpha product: aten::addmm, addmv, addr, addbmm and baddbmm.

x broadcasts to the product; where beta is 0 it does not count, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import NUMBERS, Argument, Op, Tensor, number
from tmconvert.symbolics.ops.linalg.matmul import matmul_ref, product_type
from tmconvert.symbolics.results import fits
from tmconvert.symbolics.traits import MatrixProduct

Array = np.ndarray
Product = Callable[[TensorType, TensorType], TensorType]


def _outer_type(left: TensorType, right: TensorType) -> TensorType:
    return TensorType(left.dtype, (*left.shape, *right.shape))


def _summed_type(left: TensorType, right: TensorType) -> TensorType:
    product = product_type(left, right)
    return TensorType(product.dtype, product.shape[1:])


def _op(name: str, second: str, third: str, ranks: tuple[int, int], product_of: Product = product_type) -> Op:
    def result(x: TensorType, beta: float, alpha: float, **factors: TensorType) -> TensorType:
        left, right = factors[second], factors[third]
        if (left.rank, right.rank) != ranks or not x.dtype == left.dtype == right.dtype:
            raise ValueError(f"{left} and {right} must have the ranks {ranks} and the type of {x}")
        if not fits(beta, x.dtype) or not fits(alpha, x.dtype):
            raise ValueError(f"the factors {beta} and {alpha} do not have the type of {x}")
        product = product_of(left, right)
        if broadcast_shapes(x.shape, product.shape) != product.shape:
            raise ValueError(f"{x} does not broadcast to {product}")
        return product

    tensors = [Tensor(each, NUMBERS) for each in ("x", second, third)]
    args: list[Argument] = [*tensors, number("beta", 1), number("alpha", 1)]
    return Op(f"aten::{name}", args=args, result=result, traits=[MatrixProduct(first=1)])


addmm = _op("addmm", "mat1", "mat2", (2, 2))
addmv = _op("addmv", "mat", "vec", (2, 1))
addr = _op("addr", "vec1", "vec2", (1, 1), _outer_type)
addbmm = _op("addbmm", "batch1", "batch2", (3, 3), _summed_type)
baddbmm = _op("baddbmm", "batch1", "batch2", (3, 3))
OPS = [addmm, addmv, addr, addbmm, baddbmm]


def _sum(x: Array, product: Array, beta: float, alpha: float) -> Array:
    product = (alpha * product).astype(x.dtype)
    return product if beta == 0 else (beta * x + product).astype(x.dtype)


def _scaled_sum(g: Any, x: Any, product: Any, beta: float, alpha: float) -> Any:
    """Returns beta x + alpha product, in the shape of the product."""
    x, product = (
        value if factor in (0, 1) else g.call("aten::mul", value, g.constant(factor, g.type(value).dtype))
        for value, factor in ((x, beta), (product, alpha))
    )
    if alpha == 0:
        product = g.call("aten::mul", product, g.constant(0, g.type(product).dtype))
    return product if beta == 0 else g.call("aten::add", x, product)


addmm.reference(lambda x, mat1, mat2, beta, alpha: _sum(x, matmul_ref(mat1, mat2), beta, alpha))


@addmm.onnx(since=7)
def addmm_onnx7(g, x, mat1, mat2, beta, alpha):
    if x.dtype.kind == "f":
        return g.op("Gemm", mat1, mat2, x, alpha=float(alpha), beta=float(beta))
    product = g.op("MatMul", mat1, mat2, shape=g.result_types[0].shape)
    scaled = (g.op("Mul", value, g.const(factor)) for value, factor in ((x, beta), (product, alpha)))
    return g.op("Add", *scaled)


@addmm.decompose
def addmm_sum(g, x, mat1, mat2, beta, alpha):
    return _scaled_sum(g, x, g.call("aten::matmul", mat1, mat2), beta, alpha)


addmv.reference(lambda x, mat, vec, beta, alpha: _sum(x, matmul_ref(mat, vec), beta, alpha))


@addmv.decompose
def addmv_sum(g, x, mat, vec, beta, alpha):
    return _scaled_sum(g, x, g.call("aten::matmul", mat, vec), beta, alpha)


addr.reference(lambda x, vec1, vec2, beta, alpha: _sum(x, np.multiply.outer(vec1, vec2), beta, alpha))


@addr.decompose
def addr_sum(g, x, vec1, vec2, beta, alpha):
    return _scaled_sum(g, x, g.call("aten::outer", vec1, vec2), beta, alpha)


@addbmm.reference
def addbmm_ref(x: Array, batch1: Array, batch2: Array, beta: float, alpha: float) -> Array:
    return _sum(x, matmul_ref(batch1, batch2).sum(0), beta, alpha)


@addbmm.decompose
def addbmm_sum(g, x, batch1, batch2, beta, alpha):
    product = g.call("aten::sum", g.call("aten::matmul", batch1, batch2), [0])
    return _scaled_sum(g, x, product, beta, alpha)


baddbmm.reference(lambda x, batch1, batch2, beta, alpha: _sum(x, matmul_ref(batch1, batch2), beta, alpha))


@baddbmm.decompose
def baddbmm_sum(g, x, batch1, batch2, beta, alpha):
    return _scaled_sum(g, x, g.call("aten::matmul", batch1, batch2), beta, alpha)
