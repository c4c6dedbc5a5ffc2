"""Runs PyTorch with other rounding: in float64, or with random noise in the last digits of all floats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tmconvert.ir.tree import leaves, map_leaves

UNIT = torch.finfo(torch.float32).eps
SMALLEST = torch.finfo(torch.float32).tiny
# what ranks elements, which noise relative to the largest puts in any order where they are equal
_RANKS = "topk sort argsort argmax argmin max min kthvalue median nanmedian mode nms msort"
RANKS = frozenset(_RANKS.split())


class OtherRounding(TorchDispatchMode):
    """Within it ops compute in float64 for 0 ``units``, else with noise of as many on their results.

    Views, and what is written in place, keep their memory, and are computed as they are.
    """

    def __init__(self, seed: int, units: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.units = units
        self._random = torch.Generator().manual_seed(seed)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and torch._dynamo takes seconds to import

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if any(each.alias_info for each in func._schema.returns):
            return func(*args, **kwargs)
        if not self.units:
            return func(*map_leaves(_wide, args), **map_leaves(_wide, kwargs))
        if func._schema.name.rpartition("::")[2] in RANKS:
            args = (args[0] if args[0].dim() == 0 else self._ranked(args[0]), *args[1:])
        made = func(*args, **kwargs)
        return map_leaves(self.moved, made) if _takes_tensors((args, kwargs)) else made

    def moved(self, leaf: Any) -> Any:
        """Returns a float32 tensor with noise relative to each element; other values as they are."""
        if not _is_float32(leaf):
            return leaf
        signs = torch.randint(0, 2, leaf.shape, generator=self._random, dtype=torch.int8).mul_(2).sub_(1)
        made = leaf * (1 + self.units * UNIT * signs)
        return torch.where(made.isinf(), leaf, made)  # the largest numbers stay finite

    def _ranked(self, leaf: Any) -> Any:
        if not _is_float32(leaf) or not leaf.numel():
            return leaf
        largest = leaf.abs().nan_to_num(0, 0, 0).max().clamp(min=SMALLEST)
        noise = torch.rand(leaf.shape, generator=self._random) * 2 - 1
        return leaf + largest * self.units * UNIT * noise


def _is_float32(leaf: object) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32


def _wide(leaf: Any) -> Any:
    if leaf is torch.float32:
        return torch.float64
    return leaf.double() if _is_float32(leaf) else leaf


def _takes_tensors(arguments: object) -> bool:
    return any(isinstance(leaf, torch.Tensor) for leaf in leaves(arguments))
