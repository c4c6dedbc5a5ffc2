"""aten::split_with_sizes and aten::unbind along one axis."""

from __future__ import annotations

import itertools

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, integer, integers
from tmconvert.symbolics.results import normalized_axis

Array = np.ndarray


def _split_result(x: TensorType, split_sizes: list[int], dim: int) -> list[TensorType]:
    axis = normalized_axis(dim, x.rank)
    if not split_sizes or any(size < 0 for size in split_sizes) or sum(split_sizes) != x.shape[axis]:
        raise ValueError(f"the split sizes {split_sizes} do not add up to axis {dim} of {x}")
    return [TensorType(x.dtype, (*x.shape[:axis], size, *x.shape[axis + 1 :])) for size in split_sizes]


def _unbind_result(x: TensorType, dim: int) -> list[TensorType]:
    axis = normalized_axis(dim, x.rank)
    if x.shape[axis] == 0:
        raise ValueError(f"axis {dim} of {x} has no elements: its size is 0")
    part = TensorType(x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :]))
    return [part] * x.shape[axis]


split_with_sizes = Op(
    "aten::split_with_sizes",
    args=[Tensor("x", ANY_DTYPE), integers("split_sizes"), integer("dim", 0)],
    result=_split_result,
)
unbind = Op("aten::unbind", args=[Tensor("x", ANY_DTYPE), integer("dim", 0)], result=_unbind_result)
OPS = [split_with_sizes, unbind]


@split_with_sizes.reference
def split_with_sizes_ref(x: Array, split_sizes: list[int], dim: int) -> list[Array]:
    """Parts of ``split_sizes`` elements, one after the other."""
    return np.split(x, list(itertools.accumulate(split_sizes))[:-1], dim)


@split_with_sizes.onnx(since=13)  # the sizes are an input
def split_with_sizes_onnx13(g, x, split_sizes, dim):
    shapes = [type_.shape for type_ in g.result_types]
    return g.op("Split", x, g.ints(split_sizes), axis=dim % len(x.shape), shapes=shapes)


@split_with_sizes.onnx(since=2)
def split_with_sizes_onnx2(g, x, split_sizes, dim):
    shapes = [type_.shape for type_ in g.result_types]
    return g.op("Split", x, axis=dim % len(x.shape), split=split_sizes, shapes=shapes)


@split_with_sizes.decompose
def split_with_sizes_sliced(g, x, split_sizes, dim):
    ends = list(itertools.accumulate(split_sizes))
    bounds = zip([0, *ends], ends, strict=False)
    return [g.call("aten::slice", x, dim, start, end) for start, end in bounds]


@unbind.reference
def unbind_ref(x: Array, dim: int) -> list[Array]:
    """The parts x[0], x[1], ... along ``dim``."""
    return list(np.moveaxis(x, dim, 0))


unbind.decompose(lambda g, x, dim: [g.call("aten::select", x, dim, i) for i in range(g.type(x).shape[dim])])
