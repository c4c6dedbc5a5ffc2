"""Other data for the inputs of a module, to see what it decides by data."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tmconvert.frontends.torch.tracing.data.integers import INTEGERS
from tmconvert.frontends.torch.tracing.recording.structure import Tensors


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


def _most(tensor: torch.Tensor) -> torch.Tensor:
    """Returns data with many positive, true or large elements."""
    if tensor.dtype == torch.bool:
        return torch.ones_like(tensor)
    return tensor.abs() if tensor.is_floating_point() else 4 * tensor + 3


def _fewest(tensor: torch.Tensor) -> torch.Tensor:
    return -tensor.abs() if tensor.is_floating_point() else torch.zeros_like(tensor)


OTHER_DATA = (_negated, _halved, _raised, _lowered, _reversed, _most, _fewest)


def _one(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a mask with one True; of other types the tensor with one infinity, or zeros but for one."""
    changed = tensor.clone() if tensor.is_floating_point() else torch.zeros_like(tensor)
    changed.reshape(-1)[:1] = float("inf") if tensor.is_floating_point() else 1
    return changed


def _scaled(factor: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda tensor: tensor * factor if tensor.is_floating_point() else tensor


# data on which decisions may have other answers: masks that are all True or False, zeros, large numbers
TURNING = (
    _negated,
    torch.zeros_like,
    torch.ones_like,
    _scaled(16.0),
    _scaled(-64.0),
    _scaled(2.0**-10),
    _one,
)


def moved(tensor: torch.Tensor) -> torch.Tensor:
    """Returns other data with the same signs: floats are scaled by factors, integers are permuted."""
    if not tensor.is_floating_point():
        return tensor.flip(list(range(tensor.dim())))
    factors = torch.linspace(0.5, 0.9, max(tensor.numel(), 1))[: tensor.numel()]
    return tensor * factors.reshape(tensor.shape).to(tensor.dtype)


def lengths_like_sizes(inputs: Tensors, others: Tensors) -> dict[str, torch.Tensor]:
    """Returns the integer inputs of ``others`` that have a size of ``inputs`` as an element, with the other
    size in its place: the lengths of a batch whose longest item is as long as the axis.
    """
    sizes = {
        before: after
        for name, tensor in others.items()
        for before, after in zip(inputs[name].shape, tensor.shape, strict=True)
        if before != after
    }
    found = {}
    for name, tensor in (*inputs.items(), *others.items()):
        if tensor.dtype not in INTEGERS:
            continue
        changed = tensor
        for before, after in sizes.items():
            changed = torch.where(tensor == before, after, changed)
        if not torch.equal(changed, tensor):
            found[name] = changed
    return found
