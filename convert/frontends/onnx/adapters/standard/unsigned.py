"""Arithmetic of uint16, uint32 and uint64 in signed integers, since ops take none of them.

16 and 32 bits are computed in a wider type, of which the lower bits are kept. 64 bits have the sums, products
and bits of int64, and its order once the sign bit is flipped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.frontends.onnx.adapters.values import cast
from tmconvert.ir.emitter import Emitter

SIGNED = {"uint16": np.int32, "uint32": np.int64, "uint64": np.int64}
# ops of which the lower bits of the result depend on the lower bits of the operands alone
_OF_BITS = {
    *("add", "sub", "mul", "eq", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"),
    "bitwise_left_shift",
}
_OF_ORDER = {"gt", "lt", "ge", "le", "maximum", "minimum"}
_LOWEST = np.iinfo(np.int64).min


def in_signed(op: str, apply: Callable[..., Any]) -> Callable[..., Any]:
    """Returns ``apply``, which calls the aten op ``op``, for operands of any integer type.

    64 bits are passed on to ops for which no signed integer stands in; these refuse them.
    """

    @functools.wraps(apply)
    def computed(g, *operands):
        dtype = g.type(operands[0]).dtype
        if dtype.name not in SIGNED:
            return apply(g, *operands)
        is_longest = dtype.itemsize == 8
        if is_longest and op not in _OF_BITS | _OF_ORDER:
            return apply(g, *operands)
        signed = [cast(g, each, SIGNED[dtype.name]) for each in operands]
        has_order = is_longest and op in _OF_ORDER
        if has_order:
            signed = [flipped(g, each) for each in signed]
        result = apply(g, *signed)
        if g.type(result).dtype.kind == "b":
            return result
        return cast(g, flipped(g, result) if has_order else result, dtype)

    return computed


def ordered_as_signed(g: Emitter, x) -> tuple[Any, Callable[[Any], Any]]:
    """Returns signed integers in the order of ``x``, and a function that makes elements of ``x`` of them."""
    dtype = g.type(x).dtype
    if dtype.name not in SIGNED:
        return x, lambda value: value
    signed = cast(g, x, SIGNED[dtype.name])
    if dtype.itemsize < 8:
        return signed, lambda value: cast(g, value, dtype)
    return flipped(g, signed), lambda value: cast(g, flipped(g, value), dtype)


def flipped(g, x):
    """Flips the sign bit of int64."""
    return g.call("aten::add", x, g.constant(_LOWEST, np.int64))
