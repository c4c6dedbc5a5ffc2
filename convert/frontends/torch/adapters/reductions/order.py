"""Sorting, order statistics, and cumulative extremes."""

from __future__ import annotations

from typing import Any

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.reductions.sums import with_places
from tmconvert.frontends.torch.adapters.values import axis_of, floating, is_tensor, rank, reshaped, static_int
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import Dim

ATEN = Table()


@ATEN.add("sort")
def sort(g, input, dim=-1, descending=False, stable=False):
    return with_places(g, "aten::sort", input, dim=dim, descending=descending, stable=bool(stable))


@ATEN.add("argsort")
def argsort(g, input, dim=-1, descending=False, stable=False):
    return sort(g, input, dim, descending, stable)[1]


ATEN.add("msort")(lambda g, input: sort(g, input, 0)[0])


@ATEN.add("topk")
def topk(g, input, k, dim=-1, largest=True, sorted=True):
    if isinstance(k, Dim):  # all are sorted, and as many taken as requested
        parts = with_places(g, "aten::sort", input, dim=dim, descending=bool(largest))
        return [g.call("aten::slice", part, dim, 0, k) for part in parts]
    return with_places(g, "aten::topk", input, static_int(g, k), dim=dim, largest=largest, sorted=sorted)


@ATEN.add("kthvalue")
def kthvalue(g, input, k, dim=-1, keepdim=False):
    return with_places(g, "aten::kthvalue", input, static_int(g, k), dim=dim, keepdim=keepdim)


@ATEN.add("mode")
def mode(g, input, dim=-1, keepdim=False):
    return with_places(g, "aten::mode", input, dim=dim, keepdim=keepdim)


for _name in ("median", "nanmedian"):

    def _median(
        g: Emitter, input, dim: int | None = None, keepdim: bool = False, *, _name: str = _name
    ) -> Any:
        if dim is None:
            return with_places(g, f"aten::{_name}", reshaped(g, input, [g.type(input).size]), dim=0)[0]
        return with_places(g, f"aten::{_name}", input, dim=dim, keepdim=keepdim)

    ATEN[_name] = _median

for _name in ("quantile", "nanquantile"):

    def _quantile(
        g: Emitter, input, q, dim: int | None = None, keepdim: bool = False,
        *, interpolation: str = "linear", _name: str = _name,
    ) -> Any:  # fmt: skip
        axes = rank(g, input)
        q = q if is_tensor(q) else g.constant(q, g.type(input).dtype)
        if dim is not None and axes:
            return g.call(f"aten::{_name}", input, q, axis_of(g, input, dim), keepdim, interpolation)
        flat = reshaped(g, input, [g.type(input).size])
        result = g.call(f"aten::{_name}", flat, q, 0, False, interpolation)
        return reshaped(g, result, [*g.type(q).shape, *([1] * axes)]) if keepdim else result

    ATEN[_name] = _quantile


# ---- along an axis


@ATEN.add("logcumsumexp")
def logcumsumexp(g, input, dim):
    x = floating(g, input)
    return g.call("aten::logcumsumexp", x, axis_of(g, x, dim)) if rank(g, x) else x


for _name in ("cummax", "cummin"):

    def _record(g: Emitter, input, dim: int, *, _name: str = _name) -> Any:
        return with_places(g, f"aten::{_name}", input, dim=dim)

    ATEN[_name] = _record
