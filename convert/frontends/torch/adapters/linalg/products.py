"""einsum, integer matmul and grouped matmul."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.einsum import LETTERS, einsum_of
from tmconvert.frontends.torch.adapters.values import cast, is_tensor, promoted, rank, reshaped

ATEN, FUNCTIONS = Table(), Table()


@FUNCTIONS.add("torch.einsum")
def einsum(g, equation, *operands):
    """``einsum("ij,jk", a, b)``, ``einsum("ij,jk", [a, b])`` and ``einsum(a, [0, 1], b, [1, 2], [0, 2])``."""
    if is_tensor(equation):
        equation, operands = _written([equation, *operands])
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return aten_einsum(g, equation, operands)


@ATEN.add("einsum")
def aten_einsum(g, equation, tensors, *, path=None):
    return einsum_of(g, equation, promoted(g, *tensors))  # which torch allows where nothing is summed


def _written(given: list[Any]) -> tuple[str, tuple[Any, ...]]:
    """Returns the equation of operands with lists of axes; a single last list is the result's."""
    result = "" if len(given) % 2 == 0 else "->" + _of_numbers(given.pop())
    return ",".join(_of_numbers(axes) for axes in given[1::2]) + result, tuple(given[::2])


def _of_numbers(axes: Any) -> str:
    return "".join("..." if axis is Ellipsis else LETTERS[axis] for axis in axes)


@ATEN.add("_int_mm")
def _int_mm(g, self, mat2):
    """Product of int8 matrices, accumulated in int32."""
    return g.call("aten::matmul", *(cast(g, each, np.int32) for each in (self, mat2)))


@ATEN.add("_grouped_mm", "transformers::grouped_mm_fallback")
@FUNCTIONS.add("torch.nn.functional.grouped_mm")
def grouped_mm(g, mat_a, mat_b, offs=None, bias=None, out_dtype=None):
    """Multiplies row ``i`` of ``mat_a`` (rows, n) by the matrix of its group in ``mat_b`` (groups, n, m).

    Group ``j`` ends before row ``offs[j]``; rows after the last group give 0. The product of each group is
    computed for all rows, with the rows of other groups set to 0, so that no shape depends on data. Source:
    torch.nn.functional.grouped_mm.
    """
    if rank(g, mat_a) != 2 or rank(g, mat_b) != 3 or offs is None or bias is not None:
        raise Refusal("grouped_mm is supported only for rows times a batch of matrices")
    rows, groups = g.type(mat_a).shape[0], g.type(mat_b).shape[0]
    ends = reshaped(g, cast(g, offs, np.int64), [groups, 1])
    before = g.call("aten::slice", ends, 0, 0, groups - 1, 1)
    starts = g.call("aten::cat", [g.constant(np.zeros((1, 1), np.int64)), before], 0)
    places = g.call("aten::arange", 0, rows, 1)
    is_in = g.call("aten::logical_and", g.call("aten::ge", places, starts), g.call("aten::lt", places, ends))
    mask = reshaped(g, cast(g, is_in, g.type(mat_a).dtype), [groups, rows, 1])
    products = g.call("aten::matmul", g.call("aten::mul", mat_a, mask), mat_b)
    return g.call("aten::sum", products, [0], False)
