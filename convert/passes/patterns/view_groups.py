"""Maps the factors of a ``tm::view`` to the axes of its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tmconvert.symbolics.ops.shapes.view import KEPT, groups_of


def result_groups(attributes: Mapping[str, Any]) -> list[list[int]]:
    """Returns, by axis of a view's result, the positions of its factors in ``split``. Raises ValueError."""
    split, index = attributes["split"], attributes["index"]
    kept = [place for place, chosen in enumerate(index) if chosen == KEPT]
    placed = [kept[number] for number in attributes["order"]]
    groups = groups_of([split[place] for place in placed], attributes["shape"])
    return [[placed[position] for position in group] for group in groups]


def keeps_features(attributes: Mapping[str, Any], width: int) -> bool:
    """Whether a view leaves the last axis, of ``width``, as it is, in one factor at the end."""
    split, order, shape = attributes["split"], attributes["order"], attributes["shape"]
    is_last = bool(order) and order[-1] == max(order) and attributes["index"][-1] == KEPT
    return is_last and bool(shape) and split[-1] == width == shape[-1]
