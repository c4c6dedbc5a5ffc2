"""Converts torch constants to constants that a graph and a container can store."""

from __future__ import annotations

from typing import Any

import torch

from tmconvert.ir.inert import GlobalRef


def plain_constant(leaf: Any) -> Any:
    """Dtypes, devices and layouts become names; numbers and texts stay; other objects become their class
    name.
    """
    if leaf is None or isinstance(leaf, (bool, str)) or type(leaf) in (int, float, complex):
        return leaf
    if isinstance(leaf, int):
        return int(leaf)
    if isinstance(leaf, float):
        return float(leaf)
    if isinstance(leaf, (torch.dtype, torch.layout, torch.memory_format)):
        return GlobalRef("torch", str(leaf).removeprefix("torch."))
    if isinstance(leaf, torch.device):
        return str(leaf)
    if leaf is Ellipsis:
        return leaf
    if isinstance(leaf, type):
        return GlobalRef(leaf.__module__, leaf.__qualname__)
    if getattr(leaf, "size", 1) == 1 and (hasattr(leaf, "__index__") or hasattr(leaf, "item")):  # of NumPy
        return leaf.item() if hasattr(leaf, "item") else leaf.__index__()
    return GlobalRef(type(leaf).__module__, type(leaf).__qualname__)
