"""Layout rules: which layouts an op supports for its rank-4 tensors.

Shapes in the graph are always those of the source (NCHW); a plan may store a rank-4 tensor channels-last
(NHWC). A rule states which of the two an op accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

NCHW_TO_NHWC = (0, 2, 3, 1)
NHWC_TO_NCHW = (0, 3, 1, 2)

# what an op accepts, see LayoutRule
LayoutKind = Literal["source", "nhwc", "any", "view", "relayout"]


class LayoutRule(NamedTuple):
    """``kind``:

    - "source": every rank-4 tensor in the order of the source;
    - "nhwc": the first tensor argument and the result channels-last (spatial ops); other
      arguments are constants that the symbolic brings into the target's own order;
    - "any": all rank-4 tensors in the same order, whichever it is;
    - "view": tensors in any order, each in its own, since the attributes of tm::view can take in both;
    - "relayout": one operand and one result in different orders.

    ``axes`` names the attributes that a change of order remaps, with their meaning: "axis" (an
    int), "axes" (a list), "per_axis" (a list with an equal number of entries for each axis).
    """

    kind: LayoutKind
    axes: Mapping[str, str] = {}


SOURCE = LayoutRule("source")
NHWC = LayoutRule("nhwc")
ANY = LayoutRule("any")


def any_with(**axes: str) -> LayoutRule:
    """Supports any layout, with these attributes remapped."""
    return LayoutRule("any", axes)


def remap(rule: LayoutRule, attributes: dict[str, object]) -> dict[str, object]:
    """Converts the attributes of a call on NCHW tensors to the same call on NHWC tensors.

    >>> remap(any_with(dim="axis"), {"dim": 1})
    {'dim': 3}
    """
    return {name: _remap(rule.axes.get(name), value) for name, value in attributes.items()}


def _remap(meaning: str | None, value: object) -> object:
    if meaning is None or value is None:
        return value
    if meaning == "axis":
        assert isinstance(value, int)
        return NCHW_TO_NHWC.index(value % 4)
    assert isinstance(value, list)
    if meaning == "axes":
        return sorted(NCHW_TO_NHWC.index(axis % 4) for axis in value)
    width = len(value) // 4
    rows = [value[axis * width : (axis + 1) * width] for axis in range(4)]
    return [item for axis in NCHW_TO_NHWC for item in rows[axis]]
