"""Other layers that compute the same, where a dialect lacks a layer or limits it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tmconvert.symbolics.idioms.caffe import reshaped

if TYPE_CHECKING:
    from tmconvert.formats.caffe.dialects.dialect import Dialect
    from tmconvert.lowering.builder import Builder
    from tmconvert.lowering.target_graph import Value


def alternative(
    g: Builder, dialect: Dialect, type: str, inputs: Sequence[Value | None], options: Mapping[str, Any]
) -> Value | None:
    """Returns the result of other layers than ``type``, or None where the dialect takes this one."""
    x = inputs[0] if inputs else None
    if x is None:
        return None
    if type == "Split" and not dialect.has("Split"):
        return _one(g, "Power", x, power=1.0, scale=1.0, shift=0.0)
    if type == "AbsVal" and not dialect.has("AbsVal"):
        return _one(g, "Eltwise", x, _one(g, "Power", x, scale=-1.0), operation="MAX")
    if type == "Eltwise":
        return _combined(g, dialect, [value for value in inputs if value is not None], options)
    if type in ("PReLU", "Power") and not dialect.allows(type, "ranks", len(x.shape)):
        made = _one(g, type, reshaped(g, x, four_axes(x.shape)), *inputs[1:], **{**options, "shape": None})
        return reshaped(g, made, x.shape)
    if type == "InnerProduct" and dialect.products_keep_axes and len(x.shape) == 2:
        image = reshaped(g, x, four_axes(x.shape))
        # each Reshape of the result keeps the first axis, so that the axes of one element vanish
        made = _one(g, type, image, *inputs[1:], **{**options, "axis": 1})
        return _one(g, "Reshape", made, shape=made.shape, **{"shape.dim": [0, *made.shape[1:]]})
    return None


def four_axes(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns ``shape`` with ones after it, or with the axes after the second one as one.

    >>> four_axes((2, 3)), four_axes((2, 3, 4, 5, 6))
    ((2, 3, 1, 1), (2, 3, 120, 1))
    """
    if len(shape) <= 4:
        return (*shape, *[1] * (4 - len(shape)))
    return (*shape[:2], math.prod(shape[2:]), 1)


def _one(g: Any, type: str, *inputs: Value | None, **options: Any) -> Value:
    made: Value = g.op(type, *inputs, **options)
    return made


def _combined(g: Builder, dialect: Dialect, parts: list[Value], options: Mapping[str, Any]) -> Value | None:
    """An Eltwise as Power layers of its coefficients, and one Eltwise for two blobs at a time."""
    factors = options.get("coeff") or []
    has_factors = bool(factors) and not dialect.reads("Eltwise", "coeff")
    most = len(parts) if dialect.allows("Eltwise", "bottoms", len(parts)) else 2
    if not has_factors and most == len(parts):
        return None
    rest = dict(options)
    if has_factors:
        parts = [
            part if factor == 1 else _one(g, "Power", part, scale=float(factor))
            for part, factor in zip(parts, rest.pop("coeff"), strict=True)
        ]
    total, *others = parts
    for part in others:
        total = _one(g, "Eltwise", total, part, **rest)
    return total
