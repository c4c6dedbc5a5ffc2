"""Padding of windows: the schemes SAME and VALID."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tmconvert.errors import Refusal
from tmconvert.ir.symbolic.clamps import maximum


class Padding(NamedTuple):
    """Elements before and after each spatial axis."""

    begin: list[Any]
    end: list[Any]

    @property
    def is_even(self) -> bool:
        """Whether both ends of each axis have the same padding."""
        return self.begin == self.end


def padding_of(
    scheme: str, extents: Sequence[Any], kernel: Sequence[int], strides: Sequence[int],
    dilations: Sequence[int],
) -> Padding:  # fmt: skip
    """Returns the padding of windows over axes of these extents. Raises Refusal.

    SAME pads so that each stride has a window; of an odd number the larger part is at the end.

    >>> padding_of("SAME", [8], [3], [2], [1])
    Padding(begin=[0], end=[1])
    """
    if min(*strides, *dilations) < 1:
        raise Refusal(f"a window has the strides {list(strides)} and dilations {list(dilations)}")
    if scheme == "VALID":
        return Padding([0] * len(kernel), [0] * len(kernel))
    whole = [
        _same(extent, size, step, spread)
        for extent, size, step, spread in zip(extents, kernel, strides, dilations, strict=True)
    ]
    return Padding([each // 2 for each in whole], [each - each // 2 for each in whole])


def _same(extent: Any, size: int, step: int, spread: int) -> Any:
    reach = (size - 1) * spread + 1
    if step == 1:
        return reach - 1
    return maximum((-(-extent // step) - 1) * step + reach - extent, 0)
