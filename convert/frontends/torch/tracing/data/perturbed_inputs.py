"""Other data for the inputs of a module, to see what it decides by data."""

from __future__ import annotations

import torch


def _negated(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype == torch.bool:
        return ~tensor
    return -tensor if tensor.is_floating_point() else tensor.flip(list(range(tensor.dim())))


def _raised(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.is_floating_point() or tensor.dtype == torch.bool else tensor + 1


def _lowered(tensor: torch.Tensor) -> torch.Tensor:
    is_integer = not (tensor.is_floating_point() or tensor.dtype == torch.bool)
    return torch.where(tensor > 1, tensor - 1, tensor) if is_integer else tensor


def _halved(tensor: torch.Tensor) -> torch.Tensor:
    return tensor / 2 if tensor.is_floating_point() else tensor


def _reversed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.flip(0) if tensor.dim() else tensor


OTHER_DATA = (_negated, _halved, _raised, _lowered, _reversed)


def moved(tensor: torch.Tensor) -> torch.Tensor:
    """Returns other data with the same signs: each float is scaled by another factor, integers are
    permuted.
    """
    if not tensor.is_floating_point():
        return tensor.flip(list(range(tensor.dim())))
    factors = torch.linspace(0.5, 0.9, max(tensor.numel(), 1))[: tensor.numel()]
    return tensor * factors.reshape(tensor.shape).to(tensor.dtype)
