"""State guard of the user's module: restores everything that a run changes."""

from __future__ import annotations

import contextlib
import operator
import os
import random
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

import torch

# What an empty container of each kind held; most containers of a module are empty.
_EMPTY: dict[Any, Any] = {dict: {}, list: [], set: set(), deque: deque()}
MOST_NAMES = 4  # in a note
FROM_INITIAL = "each run of the file starts from the initial values"
INSTEAD = "--state NAME (state=[...]) makes such a tensor an input and an output"
_PLAIN = frozenset({bool, int, float, str, type(None)})
_KINDS: tuple[type[Any], ...] = (torch.Tensor, *_EMPTY, tuple)


class StateGuard:
    """Saves the state of modules and tensors, and restores it.

    ``changed`` are the tensors, by id, whose data had to be put back, ``generators`` those of random numbers.
    ``has_changes`` states whether attributes or containers had to be restored.
    """

    def __init__(self) -> None:
        self._containers: dict[int, Any] = {}  # by id; what they held is in _held
        self._held: dict[int, Any] = {}
        self._tensors: dict[int, tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = {}
        self._found: list[torch.Tensor] = []
        self._gradients: list[tuple[Any, Any]] | None = None
        self.changed: dict[int, torch.Tensor] = {}
        self.generators: list[Any] = []
        self.has_changes = False

    def add_modules(self, modules: Sequence[torch.nn.Module]) -> list[torch.Tensor]:
        """Saves the attributes of modules, and the contents of their containers.

        Lists, dicts, sets and objects of the user's classes, such as caches, are saved recursively. Returns
        the tensors among them: parameters, buffers, those in attributes and in such a cache.
        """
        tensors: list[torch.Tensor] = []
        for each in modules:
            if isinstance(each, torch.jit.ScriptModule):  # its tensors are held by C++
                tensors += [*each.parameters(recurse=False), *each.buffers(recurse=False)]
        waiting: list[Any] = [each.__dict__ for each in modules]
        kinds: dict[type[Any], Any] = {}
        while waiting:
            value = waiting.pop()
            cls = type(value)
            if cls in _PLAIN:
                continue
            if (kind := kinds.get(cls)) is None:
                kind = kinds[cls] = next((each for each in _KINDS if issubclass(cls, each)), object)
            if kind is torch.Tensor:
                tensors.append(value)
            elif kind in _EMPTY:
                if id(value) not in self._containers:
                    self._containers[id(value)] = value
                    held = self._held[id(value)] = _items(value, kind)
                    waiting += held.values() if kind is dict else held
            else:
                if kind is tuple:
                    waiting += tuple.__iter__(value)
                if is_users_object(value):
                    waiting.append(object.__getattribute__(value, "__dict__"))
                elif is_generator(value):
                    self.generators.append(value)
        self._found = tensors
        return tensors

    def about_to_write(self, tensor: torch.Tensor) -> bool:
        """Saves the data of a tensor; returns whether this is the first time."""
        if id(tensor) in self._tensors:
            return False
        own = tensor.detach()
        self._tensors[id(tensor)] = (tensor, own, own.clone())
        return True

    def about_to_differentiate(self) -> None:
        """Saves the gradients of parameters, to which a backward pass may add."""
        if self._gradients is None:
            parameters = [each for each in self._found if isinstance(each, torch.nn.Parameter)]
            self._gradients = [(each, each.grad) for each in parameters]
            for _, gradient in self._gradients:
                if gradient is not None:
                    self.about_to_write(gradient)

    def restore(self) -> None:
        """Restores everything."""
        for parameter, gradient in self._gradients or ():
            parameter.grad = gradient
        with torch.no_grad():
            for key, (tensor, own, data) in reversed(self._tensors.items()):  # one may lie in another
                if own.is_meta:
                    continue
                if own.layout != torch.strided:  # which torch compares and copies for some layouts only
                    self.changed[key] = tensor
                    tensor.data = data
                elif not (tensor.is_set_to(own) and torch.equal(own, data)):
                    self.changed[key] = tensor
                    own.copy_(data)
                    tensor.data = own
        for key, value in self._containers.items():
            if not _is_as_before(value, self._held[key]):
                self.has_changes = True
                _restore_items(value, self._held[key])


def is_generator(value: object) -> bool:
    """Whether a value is a generator of random numbers of Python, NumPy or torch."""
    return issubclass(type(value), random.Random) or (
        type(value).__name__ in ("Generator", "RandomState")
        and type(value).__module__.startswith(("numpy.random", "torch"))
    )


def is_users_object(value: object) -> bool:
    """Whether the object has attributes and belongs to a class of the user, not of a framework."""
    if issubclass(type(value), (type, ModuleType, FunctionType, torch.nn.Module)):
        return False
    home = type(value).__module__.partition(".")[0]
    return home not in _NOT_FOLLOWED and _has_attributes(value)


def _has_attributes(value: object) -> bool:
    try:
        return isinstance(object.__getattribute__(value, "__dict__"), dict)
    except AttributeError:
        return False


def _base(value: object) -> Any:
    """Returns the class of Python or a framework that the class of a container derives from: what a user's
    class has for its own methods may raise, or do anything else.
    """
    if type(value) in _EMPTY:
        return type(value)
    return next(each for each in type(value).__mro__ if each.__module__.partition(".")[0] in _NOT_FOLLOWED)


def _items(value: object, kind: Any) -> Any:
    """Returns a copy of what a container holds."""
    base = _base(value)
    if not base.__len__(value):
        return _EMPTY[kind]
    return kind(base.items(value) if kind is dict else base.__iter__(value))


_NOT_FOLLOWED = {"torch", "numpy", *sys.stdlib_module_names} - {"__main__"}


def _is_as_before(value: object, before: Any) -> bool:
    """Whether a container has the same elements."""
    base = _base(value)
    if base.__len__(value) != len(before):
        return False
    if isinstance(before, set):
        return bool(set(base.__iter__(value)) == before)
    same = all(map(operator.is_, base.__iter__(value), before))
    return same and (
        not isinstance(before, dict) or all(map(operator.is_, base.values(value), before.values()))
    )


def _restore_items(value: object, before: Any) -> None:
    """Restores a list, dict, set or deque; unchanged elements stay visible to other threads."""
    base = _base(value)
    if issubclass(base, list):
        base.__setitem__(value, slice(None), before)
    elif issubclass(base, dict):
        for key in [key for key in base.__iter__(value) if key not in before]:
            base.__delitem__(value, key)
        for key, held in before.items():
            if not base.__contains__(value, key) or base.__getitem__(value, key) is not held:
                base.__setitem__(value, key, held)
        if list(base.__iter__(value)) != list(before):
            base.clear(value)
            base.update(value, before)
    elif issubclass(base, set):
        base.__iand__(value, before)
        base.__ior__(value, before)
    else:
        base.clear(value)
        base.extend(value, before)


def shown_names(names: Sequence[str]) -> str:
    """Returns the first names, and the number of the others."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


@contextmanager
def same_folder() -> Iterator[None]:
    """Makes the current folder the current one again after the context."""
    try:
        folder = Path.cwd()
    except FileNotFoundError:  # it was removed
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the user's code may have removed it
            os.chdir(folder)


@contextmanager
def same_randomness() -> Iterator[None]:
    """Restores the random number generators of torch, Python and NumPy after the context."""
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
def marked_as_exported(said: bool = True, is_traced: bool = False) -> Iterator[None]:
    """Makes modules that test for ``torch.export`` take that code path, which does not depend on data.

    ``torch.export`` sets the same flags. With ``is_traced``, ``torch.jit.is_tracing`` is true, too, but not
    for torch: libraries then take a path that serves all sizes.
    """
    compiler: Any = torch.compiler
    flags = compiler._is_compiling_flag, getattr(compiler, "_is_exporting_flag", False)  # since 2.7
    is_tracing: Any = torch.jit.is_tracing
    compiler._is_compiling_flag = compiler._is_exporting_flag = said
    if is_traced:
        torch.jit.is_tracing = lambda: is_tracing() or _is_users(sys._getframe(1))
    try:
        yield
    finally:
        compiler._is_compiling_flag, compiler._is_exporting_flag = flags
        torch.jit.is_tracing = is_tracing


def _is_users(frame: FrameType) -> bool:
    return not frame.f_code.co_filename.startswith(_TORCH)


_TORCH = str(Path(torch.__file__).parent)
