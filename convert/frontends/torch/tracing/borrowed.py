"""The user's module during a run: everything that the run changes is put back."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


class Borrowed:
    """Remembers modules and tensors as they were."""

    def __init__(self) -> None:
        self._modules: list[tuple[Any, dict[str, Any]]] = []
        self._containers: list[tuple[Any, Any]] = []
        self._tensors: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def add_module(self, module: Any) -> None:
        """Remembers the attributes of a module and of those below it, and what lists and dicts hold."""
        for each in module.modules():
            state = dict(each.__dict__)
            self._modules.append((each, state))
            for value in state.values():
                if type(value) in (list, dict, set) or isinstance(value, dict):
                    self._containers.append((value, value.copy()))

    def about_to_write(self, tensor: torch.Tensor) -> bool:
        """Remembers the data of a tensor; whether it is the first time."""
        if id(tensor) in self._tensors:
            return False
        self._tensors[id(tensor)] = (tensor, tensor.detach().clone())
        return True

    def give_back(self) -> None:
        """Puts everything back."""
        with torch.no_grad():
            for tensor, data in self._tensors.values():
                tensor.detach().copy_(data)
        for value, copy in self._containers:
            value.clear()
            value.extend(copy) if isinstance(value, list) else value.update(copy)
        for module, state in self._modules:
            module.__dict__.clear()
            module.__dict__.update(state)


@contextmanager
def same_randomness() -> Iterator[None]:
    """Puts the states of the generators of torch, Python and NumPy back."""
    numpy = sys.modules.get("numpy.random")
    states = torch.get_rng_state(), random.getstate(), numpy and numpy.get_state()
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        if numpy is not None:
            numpy.set_state(states[2])


@contextmanager
def said_to_be_exported(said: bool = True) -> Iterator[None]:
    """Modules that ask are told that they are being exported, so that they take a way that serves all data.

    ``torch.export`` sets the same flags.
    """
    compiler: Any = torch.compiler
    flags = compiler._is_compiling_flag, compiler._is_exporting_flag
    compiler._is_compiling_flag = compiler._is_exporting_flag = said
    try:
        yield
    finally:
        compiler._is_compiling_flag, compiler._is_exporting_flag = flags
