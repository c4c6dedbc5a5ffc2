"""The user's module during a run: everything that the run changes is put back."""

from __future__ import annotations

import random
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

import torch

# What an empty container of each kind held; most containers of a module are empty.
_EMPTY: dict[Any, Any] = {dict: {}, list: [], set: set(), deque: deque()}


class Borrowed:
    """Remembers modules and tensors as they were.

    ``changed`` are the tensors, by id, whose data had to be put back.
    """

    def __init__(self) -> None:
        self._containers: dict[int, Any] = {}  # by id; what they held is in _held
        self._held: dict[int, Any] = {}
        self._tensors: dict[int, tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = {}
        self._parameters: list[Any] = []
        self._gradients: list[tuple[Any, Any]] | None = None
        self.changed: dict[int, torch.Tensor] = {}

    def add_module(self, module: Any) -> None:
        """Remembers the attributes of a module and of those below it, and what these hold.

        That is followed through lists, dicts, sets and objects of the user's, such as a cache.
        """
        waiting: list[Any] = [each.__dict__ for each in module.modules()]
        self._parameters = list(module.parameters())
        kinds: Any = tuple(_EMPTY)
        while waiting:
            value = waiting.pop()
            if isinstance(value, kinds):
                if id(value) in self._containers:
                    continue
                kind = next(kind for kind in _EMPTY if isinstance(value, kind))
                self._containers[id(value)] = value
                self._held[id(value)] = kind(value) if value else _EMPTY[kind]
                waiting += value.values() if isinstance(value, dict) else value
                continue
            if isinstance(value, tuple):
                waiting += value
            if _is_users_object(value):
                waiting.append(value.__dict__)

    def about_to_write(self, tensor: torch.Tensor) -> bool:
        """Remembers the data of a tensor; whether it is the first time."""
        if id(tensor) in self._tensors:
            return False
        own = tensor.detach()
        self._tensors[id(tensor)] = (tensor, own, own.clone())
        return True

    def about_to_differentiate(self) -> None:
        """Remembers the gradients of parameters, to which a backward pass may add."""
        if self._gradients is None:
            self._gradients = [(each, each.grad) for each in self._parameters]
            for _, gradient in self._gradients:
                if gradient is not None:
                    self.about_to_write(gradient)

    def give_back(self) -> None:
        """Puts everything back."""
        for parameter, gradient in self._gradients or ():
            parameter.grad = gradient
        with torch.no_grad():
            for key, (tensor, own, data) in reversed(self._tensors.items()):  # one may lie in another
                if not (tensor.is_set_to(own) and torch.equal(own, data)):
                    self.changed[key] = tensor
                    own.copy_(data)
                    tensor.data = own
        for key, value in self._containers.items():
            _put_back(value, self._held[key])


def _is_users_object(value: Any) -> bool:
    """Whether it is an object with attributes of its own that no framework made."""
    if isinstance(value, (type, ModuleType, FunctionType, torch.Tensor, torch.nn.Module)):
        return False
    home = type(value).__module__.partition(".")[0]
    return home not in _NOT_FOLLOWED and isinstance(getattr(value, "__dict__", None), dict)


_NOT_FOLLOWED = {"torch", "numpy", *sys.stdlib_module_names} - {"__main__"}


def _put_back(value: Any, before: Any) -> None:
    """Gives a list, dict, set or deque what it held; other threads never see it without what stays."""
    if isinstance(value, list):
        value[:] = before
    elif isinstance(value, dict):
        for key in [key for key in value if key not in before]:
            del value[key]
        for key, held in before.items():
            if key not in value or value[key] is not held:
                value[key] = held
        if list(value) != list(before):
            value.clear()
            value.update(before)
    elif isinstance(value, set):
        value &= before
        value |= before
    else:
        value.clear()
        value.extend(before)


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
