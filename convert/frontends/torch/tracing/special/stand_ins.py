"""Weights in the place of those of a model that is larger than memory, while it is traced.

A trace follows shapes and decisions, and runs the model at many sizes. Each run would read all weights from
the disk. So the large parameters get random numbers of one piece of memory, and know the numbers that they
stand for (``STORED``), which are those of the graph and of references. Their products take a few columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from tmconvert.frontends.torch.tracing.recording.arrays import INTEGERS, STORED
from tmconvert.frontends.torch.tracing.recording.modes import modules_of
from tmconvert.ir.types import Args, Kwargs
from tmconvert.output.scratch import return_freed_blocks, scratch_array, scratch_copy

LARGE_MODEL = 8 << 30  # bytes of float32 parameters
LARGE = 1 << 24  # bytes of a parameter that is replaced; smaller ones may decide, as those of a router
_FIRST = "_tmconvert_first_column"  # attribute of a parameter whose stand-in is zero but for _COLUMNS columns
_COLUMNS = 16  # those of one line of the processor's cache


def put_stand_ins(model: torch.nn.Module) -> None:
    """Gives the large parameters of a large model other numbers; does nothing to other models.

    All that have one shape share memory, and start at other columns of it: no two have the same address.
    """
    large = [each for each in model.parameters() if each.nbytes >= LARGE and each.dtype == torch.float32]
    if sum(each.nbytes for each in large) < LARGE_MODEL:
        return
    return_freed_blocks()
    by_shape: dict[torch.Size, list[torch.nn.Parameter]] = {}
    for parameter in large:
        by_shape.setdefault(parameter.shape, []).append(parameter)
    for shape, parameters in by_shape.items():
        _replace_by(parameters, _numbers(shape.numel() // shape[-1] + 1, shape[-1]))


def _replace_by(parameters: list[torch.nn.Parameter], numbers: np.ndarray) -> None:
    """Replaces parameters of one shape by views of ``numbers``, and keeps what they store."""
    for number, parameter in enumerate(parameters):
        columns = parameter.shape[-1]
        stored, integers = parameter.data, vars(parameter).pop(INTEGERS, None)
        setattr(stored, INTEGERS, integers)
        setattr(parameter, STORED, stored)
        start = _COLUMNS * number % columns
        setattr(parameter, _FIRST, (columns - start) % columns)
        part = numbers[start : start + parameter.numel()]
        parameter.data = torch.from_numpy(part).view(parameter.shape)


def _numbers(rows: int, columns: int) -> np.ndarray:
    """Returns the elements of a matrix whose first columns are random, and whose others are zeros."""
    made = scratch_array((rows, columns), np.dtype(np.float32))
    made[...] = 0
    made[:, :_COLUMNS] = np.random.default_rng(0).standard_normal((rows, _COLUMNS)) / _COLUMNS**0.5
    return made.reshape(-1)


class ProductsOfStandIns(TorchFunctionMode):
    """Computes products with stand-ins of matrices from the columns that are not zero."""

    def __torch_function__(
        self, func: Callable[..., object], types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        if func is torch.nn.functional.linear and len(args) > 1 and _is_stand_in(args[1]):
            input, weight, *others = args
            first = getattr(weight, _FIRST)
            columns = slice(first, first + _COLUMNS)
            args = (input[..., columns], weight[:, columns], *others)
        return func(*args, **(kwargs or {}))


def clone_in_scratch(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a copy, whose memory may be that of a scratch file."""
    return torch.from_numpy(scratch_copy(tensor.numpy())) if tensor.dtype == torch.float32 else tensor.clone()


def _is_stand_in(tensor: torch.Tensor) -> bool:
    stored = getattr(tensor, STORED, None)
    return stored is not None and stored.data_ptr() != tensor.data_ptr()


@contextmanager
def stored_weights(module: Callable[..., object]) -> Iterator[None]:
    """Puts the stored numbers in the place of stand-ins within the context."""
    replaced = [(parameter, parameter.data) for parameter in _stored(module)]
    try:
        for parameter, _ in replaced:
            parameter.data = getattr(parameter, STORED)
        yield
    finally:
        for parameter, data in replaced:
            parameter.data = data


def _stored(module: Callable[..., object]) -> Iterator[torch.nn.Parameter]:
    for part in modules_of(module):
        yield from (each for each in part._parameters.values() if each is not None and hasattr(each, STORED))
