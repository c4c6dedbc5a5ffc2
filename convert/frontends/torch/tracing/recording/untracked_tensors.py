"""Finds tensors that a run computes where no mode of torch sees it: in another thread, in a tensor subclass.

To the tracer these are tensors that were there before the run, as is one in a global variable or a closure.
So a module with captured tensors of unknown origin is run again on other data, and these are compared. So are
those that the module holds if something has written to them before their first recorded use.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import torch

from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place
from tmconvert.ir.tree import leaves


class Used(NamedTuple):
    """A tensor of unknown origin, the line that uses it first, and its data there."""

    tensor: torch.Tensor
    place: Source
    data: torch.Tensor


class Origins:
    """Origins of the captured tensors of a run; ``unknown`` are those without, with the lines of use."""

    def __init__(self) -> None:
        self.unknown: list[Used] = []
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}  # with their versions

    def add(self, tree: Any) -> Any:
        """Makes the tensors of a tree known, and returns the tree."""
        for leaf in leaves(tree):
            if isinstance(leaf, torch.Tensor):
                self._known[id(leaf)] = weakref.ref(leaf), version_of(leaf)
        return tree

    def forget(self, tensor: torch.Tensor) -> None:
        """Makes the origin of a tensor unknown that was given another storage."""
        self._known.pop(id(tensor), None)

    def used(self, tensors: Collection[int]) -> list[Used]:
        """Returns the tensors of unknown origin among those with these ids.

        The others were looked at only, as the arguments of a function that is recorded as one call.
        """
        return [each for each in self.unknown if id(each.tensor) in tensors]

    def captured(self, tensor: torch.Tensor) -> None:
        """Notes that the run uses a tensor that no recorded call made."""
        known, version = self._known.get(id(tensor), (None, 0))
        if known is None or known() is not tensor:
            self.unknown.append(Used(tensor, user_place(), tensor))
        elif version_of(tensor) != version:
            with torch._C.DisableTorchFunction():
                self.unknown.append(Used(tensor, user_place(), tensor.detach().clone()))


def version_of(tensor: torch.Tensor) -> int:
    """Returns the count of writes to a tensor; -1 for one that does not count."""
    return -1 if tensor.is_inference() else tensor._version


def differing(first: Sequence[Used], second: Sequence[Used]) -> Source | None:
    """Returns the line that uses a tensor of unknown origin which has other data in the second run."""
    for one, two in zip(first, second, strict=False):
        if one.data is not two.data and not _is_equal(one.data, two.data):
            return one.place
    return next((each.place for each in (*first[len(second) :], *second[len(first) :])), None)


def _is_equal(one: torch.Tensor, two: torch.Tensor) -> bool:
    if (one.shape, one.dtype) != (two.shape, two.dtype) or type(one) is not type(two):
        return False
    if one.is_quantized or one.layout != torch.strided:
        return True  # what such a tensor has is compared where it is read
    return torch.allclose(one, two, rtol=0, atol=0, equal_nan=one.is_floating_point() or one.is_complex())
