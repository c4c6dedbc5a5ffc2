"""Resizing between dynamic sizes, where the elements that are copied or mixed are computed in the graph."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tmconvert.frontends.torch.adapters.shapes.sizes import Quotient
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.symbolics.idioms.dynamic_resizing import ALONG, Scales


def resized_dynamically(g: Emitter, name: str, x, sizes: Sequence[Any], scales: Scales) -> Any:
    """Returns the result of an upsampling op between dynamic sizes; None where the op itself serves all.

    A factor may be a Quotient. Antialiased modes of images of width 1 are left to the op: torch's own result
    is another one there.
    """
    extents = g.type(x).shape[2:]
    along = ALONG.get(name)
    if along is None or not is_symbolic((extents, list(sizes))):
        return None
    is_narrow = not is_symbolic(extents) and min(extents) < 2
    if "_aa" in name and is_narrow and not has_quotient(scales):
        return None
    is_scaled = scales is not None and any(map(_is_other_ratio, extents, sizes, scales))
    if name.startswith("upsample_nearest"):
        is_op = not is_scaled and not any(map(_rest, sizes, extents))
    else:
        is_op = not is_scaled and not name.startswith("_upsample")
    if is_op:
        return None
    for axis, size in enumerate(sizes, 2):
        if is_symbolic((extents[axis - 2], size)) or size != extents[axis - 2]:
            scale = None if scales is None else scales[axis - 2]
            x = along(g, x, axis, size, scale.as_tensor(g) if isinstance(scale, Quotient) else scale)
    return x


def has_quotient(scales: Scales) -> bool:
    return any(isinstance(scale, Quotient) for scale in scales or ())


def _is_other_ratio(extent: Any, size: Any, scale: Any) -> bool:
    """Whether a factor implies other coordinates than the sizes, at some sizes at least."""
    exact = scale if isinstance(scale, Quotient) else Fraction(scale).limit_denominator(1 << 16)
    difference = size * exact.denominator - extent * exact.numerator
    return is_symbolic(difference) or difference != 0


def _rest(size: Any, extent: Any) -> Any:
    rest = size % extent
    return is_symbolic(rest) or rest
