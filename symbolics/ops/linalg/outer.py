"""aten::outer: the products of all pairs of elements of two vectors."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import NUMBERS, Op, Tensor

Array = np.ndarray


def _outer(x: TensorType, vec2: TensorType) -> TensorType:
    if x.rank != 1 or vec2.rank != 1 or x.dtype != vec2.dtype:
        raise ValueError(f"{x} and {vec2} are not two vectors of one type")
    return TensorType(x.dtype, (*x.shape, *vec2.shape))


outer = Op("aten::outer", args=[Tensor("x", NUMBERS), Tensor("vec2", NUMBERS)], result=_outer)


outer.reference(lambda x, vec2: np.multiply.outer(x, vec2))


@outer.decompose
def outer_product(g, x, vec2):
    return g.call("aten::mul", g.call("aten::reshape", x, [*g.type(x).shape, 1]), vec2)


OPS = [outer]
