"""Shapes of tensors: what rearranges, and the sizes themselves."""

from __future__ import annotations

from typing import Any

from ....ir.emitter import Emitter
from ...table import Table
from .values import axis_of, rank, reshaped, static_ints, varargs

ATEN, METHODS = Table(), Table()


@METHODS.add("size")
def size(g: Emitter, self: Any, dim: Any) -> Any:
    return g.type(self).shape[dim]


@METHODS.add("numel")
def numel(g: Emitter, self: Any) -> Any:
    return g.type(self).size


@METHODS.add("view", "reshape")
def method_view(g: Emitter, self: Any, *shape: Any) -> Any:
    return view(g, self, varargs(shape))


@ATEN.add("view", "reshape", "_unsafe_view", "view_copy")
def view(g: Emitter, input: Any, shape: Any) -> Any:
    return reshaped(g, input, static_ints(g, shape))


@ATEN.add("view_as", "reshape_as")
def reshape_as(g: Emitter, self: Any, other: Any) -> Any:
    return reshaped(g, self, list(g.type(other).shape))


@ATEN.add("flatten")
def flatten(g: Emitter, input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    if not rank(g, input):
        return reshaped(g, input, [1])
    shape = list(g.type(input).shape)
    first, last = axis_of(g, input, start_dim), axis_of(g, input, end_dim)
    count: Any = 1
    for extent in shape[first : last + 1]:
        count = count * extent
    return reshaped(g, input, [*shape[:first], count, *shape[last + 1 :]])


@METHODS.add("permute")
def method_permute(g: Emitter, self: Any, *dims: Any) -> Any:
    return permute(g, self, varargs(dims))


@ATEN.add("permute")
def permute(g: Emitter, input: Any, dims: Any) -> Any:
    return g.call("aten::permute", input, [axis_of(g, input, axis) for axis in dims])


@ATEN.add("transpose", "swapaxes", "swapdims")
def transpose(g: Emitter, input: Any, dim0: int, dim1: int) -> Any:
    order = list(range(rank(g, input)))
    if not order:
        return input
    first, second = axis_of(g, input, dim0), axis_of(g, input, dim1)
    order[first], order[second] = second, first
    return g.call("aten::permute", input, order)


@ATEN.add("contiguous", "detach", "clone", "alias", "lift_fresh", "data", "requires_grad_", "cpu")
def same(g: Emitter, input: Any, *args: Any, **kwargs: Any) -> Any:
    return input
