"""Vector and matrix norms, and distances."""

from __future__ import annotations

import math
from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.elementwise.complex import COMPLEX as OF_COMPLEX
from tmconvert.frontends.torch.adapters.linalg.spectra import svdvals
from tmconvert.frontends.torch.adapters.reductions.sums import axes_given
from tmconvert.frontends.torch.adapters.values import axis_of, floating, promoted, rank, reshaped, typed
from tmconvert.ir.complex_values import Complex
from tmconvert.ir.emitter import Emitter

ATEN, COMPLEX = Table(), Table()


@ATEN.add("linalg_vector_norm")
def vector_norm(g, x, ord=2, dim=None, keepdim=False, *, dtype=None):
    return g.call("aten::linalg_vector_norm", typed(g, x, dtype), ord, axes_given(g, x, dim), keepdim)


@ATEN.add("linalg_matrix_norm")
def matrix_norm(g, A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """Frobenius norm, the largest (smallest) absolute sum of a column (1) or row (inf), the largest (2) or
    smallest (-2) singular value, or their sum ("nuc").
    """
    x = typed(g, A, dtype)
    rows, columns = (axis_of(g, x, axis) for axis in dim)
    if ord in ("fro", None):
        return vector_norm(g, x, 2, [rows, columns], keepdim)
    if ord in ("nuc", 2, -2):
        return _norm_of_singular_values(g, x, ord, rows, columns, keepdim)
    if isinstance(ord, str) or abs(ord) not in (1, math.inf):
        raise Refusal(f"there is no matrix norm {ord}", "use one that torch.linalg.matrix_norm has")
    summed, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = g.call("aten::sum", g.call("aten::abs", x), [summed], keepdim=True)
    largest = "aten::sum" if g.type(x).shape[other] == 0 else "aten::amax"  # of nothing it is 0
    result = g.call(largest if ord > 0 else "aten::amin", sums, [other], keepdim=True)
    if keepdim:
        return result
    return g.call("aten::sum", result, [rows, columns], keepdim=False)


def _norm_of_singular_values(g: Emitter, x: Any, ord: Any, rows: int, columns: int, keepdim: bool) -> Any:
    others = [axis for axis in range(rank(g, x)) if axis not in (rows, columns)]
    values = svdvals(g, g.call("aten::permute", x, [*others, rows, columns]))
    names = {2: "aten::amax", -2: "aten::amin"} if g.type(values).shape[-1] != 0 else {}  # of nothing it is 0
    result = g.call(names.get(ord, "aten::sum"), values, [-1], keepdim=False)
    shape = [1 if axis in (rows, columns) else extent for axis, extent in enumerate(g.type(x).shape)]
    return reshaped(g, result, shape) if keepdim else result


@ATEN.add("linalg_norm")
def linalg_norm(g, A, ord=None, dim=None, keepdim=False, *, dtype=None):
    dims = None if dim is None else list(dim) if isinstance(dim, (list, tuple)) else [dim]
    count = rank(g, A) if dims is None else len(dims)
    if ord is None or count == 1:
        return vector_norm(g, A, 2 if ord is None else ord, dims, keepdim, dtype=dtype)
    return matrix_norm(g, A, ord, (-2, -1) if dims is None else dims, keepdim, dtype=dtype)


@ATEN.add("norm")
def norm(g, input, p="fro", dim=None, keepdim=False, dtype=None):
    """torch.norm: the vector norm of all elements, unless ``p`` is "nuc"."""
    if p == "nuc":
        return matrix_norm(g, input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(g, input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


def _of_absolute(name: str) -> None:
    def adapter(g: Emitter, input: Complex, *args, **kwargs) -> Any:
        return ATEN[name](g, OF_COMPLEX["abs"](g, input), *args, **kwargs)

    COMPLEX.add(name)(adapter)


for _name in ("linalg_vector_norm", "norm"):
    _of_absolute(_name)


@ATEN.add("cosine_similarity")
def cosine_similarity(g, x1, x2, dim=1, eps=1e-8):
    x, y = (floating(g, each) for each in promoted(g, x1, x2))
    if not rank(g, x) and not rank(g, y):
        x, y = reshaped(g, x, [1]), reshaped(g, y, [1])
    return g.call("aten::cosine_similarity", x, y, dim, eps)


@ATEN.add("pairwise_distance")
def pairwise_distance(g, x1, x2, p=2, eps=1e-6, keepdim=False):
    x, y = (floating(g, value) for value in promoted(g, x1, x2))
    return g.call("aten::pairwise_distance", x, y, p, eps, keepdim)
