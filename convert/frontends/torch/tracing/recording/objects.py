"""Objects that hold tensors, among the arguments and results of a model.

Classes that are not registered with torch's pytree are not containers: their tensors would become constants,
or be missing from the outputs. The key-value caches of transformers, which are not registered, are flattened
here; other classes with tensors are an error that names the class.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from typing import Any

import numpy as np
import torch

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.tracing.sizes.cache_lengths import cloned_cache

# Attributes of caches that are settings, the same in every call, and the method that cache_lengths.py sets.
_SETTINGS = frozenset(("_sliding_window_tensor", "get_mask_sizes"))
_NAMES = {"keys": "key", "values": "value"}
_NO_DATA = (types.ModuleType, torch.nn.Module)
_LIBRARIES = frozenset(("builtins", "torch", "numpy", "abc", "enum", "typing"))  # classes of theirs hold none
_VIEWS = (KeysView, ValuesView, ItemsView)
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinMethodType, functools.partial)
_MOST_OBJECTS = 100_000
_FUNCTION_HELP = {
    "takes": "pass the tensors as arguments of their own",
    "returns": "return the tensors themselves",
}
INSTEAD = (
    "use a tuple, list, dict, named tuple or dataclass, or register the class: "
    "tmconvert.register_supported_type(Class, flatten, unflatten)"
)


def is_cache(value: object) -> bool:
    """Whether the object is a key-value cache of transformers, or one of its layers."""
    return any(
        base.__module__.partition(".")[0] == "transformers" and "Cache" in base.__name__
        for base in type(value).__mro__
    )


def opener(what: str) -> Callable[[Any], Any]:
    """Returns the function that flattens objects with tensors (caches), or None; ``what`` is "takes" or
    "returns", for messages.

    It raises UnsupportedError TM2015 for other objects with tensors.
    """

    def opened(leaf: object) -> Any:
        if is_cache(leaf):
            return _content(leaf)
        if isinstance(leaf, _FUNCTIONS):
            if next(_tensors(leaf), None) is not None:
                raise UnsupportedError(
                    "TM2015",
                    f"the model {what} a function that holds tensors, {_function_name(leaf)}",
                    notes=[("help", _FUNCTION_HELP[what])],
                )
            return None
        if isinstance(leaf, Iterator) or next(_tensors(leaf), None) is not None:
            kind = leaf if isinstance(leaf, type) else type(leaf)
            name = f"{kind.__module__}.{kind.__qualname__}"
            has = "an iterator" if isinstance(leaf, Iterator) else "tensors in an object"
            raise UnsupportedError(
                "TM2015", f"the model {what} {has} of the class {name}", notes=[("help", INSTEAD)]
            )
        return None

    return opened


def cloned_object(value: object, clone: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Returns a deep copy of a cache whose tensors are copied by ``clone``; lengths follow its tensors."""
    return cloned_cache(value, {id(tensor): clone(tensor) for tensor in _tensors(value)})


def _content(cache: object) -> Any:
    """Returns the tensors of a cache as a tree with its attribute names, ``key`` and ``value`` for those of a
    layer; a list of layers replaces the cache.
    """
    parts = {
        _NAMES.get(name, name): _opened_within(value)
        for name, value in vars(cache).items()
        if name not in _SETTINGS and not isinstance(value, int) and next(_tensors(value), None) is not None
    }
    return parts["layers"] if list(parts) == ["layers"] else parts


def _opened_within(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _opened_within(child) for key, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [_opened_within(child) for child in value]
    if isinstance(value, torch.Tensor):
        return value
    return _content(value) if hasattr(value, "__dict__") else None


def _function_name(function: object) -> str:
    if isinstance(function, functools.partial):
        return f"functools.partial of {_function_name(function.func)}"
    return f"{getattr(function, '__module__', None)}.{getattr(function, '__qualname__', function)}"


def _tensors(value: object) -> Iterator[torch.Tensor]:
    """Returns the tensors among the attributes or elements of an object, at any depth.

    Also those that functions captured, or have as defaults; not those of modules.
    """
    waiting, seen = [value], set[int]()
    while waiting and len(seen) < _MOST_OBJECTS:
        held = waiting.pop()
        if isinstance(held, torch.Tensor):
            yield held
        if id(held) in seen or isinstance(held, (torch.Tensor, *_NO_DATA)):
            continue
        seen.add(id(held))
        waiting += held_objects(held)


def held_objects(value: object) -> list[Any]:
    if isinstance(value, _FUNCTIONS):
        held = _held_by_function(value)
    elif isinstance(value, type):
        return [] if _is_library(value) or issubclass(value, _NO_DATA) else [*vars(value).values()]
    elif isinstance(value, dict):
        held = [*value, *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset, *_VIEWS)):
        held = [*value]
    elif isinstance(value, weakref.ReferenceType):
        held = [value()]
    elif isinstance(value, np.ndarray) and value.dtype.hasobject:
        held = value.ravel().tolist()
    else:
        held = []
    slots = [name for base in type(value).__mro__ for name in _names(base.__dict__.get("__slots__", ()))]
    missing = object()
    found = (getattr(value, name, missing) for name in slots if name not in ("__dict__", "__weakref__"))
    attributes = getattr(value, "__dict__", None)
    return [
        *held,
        *(base for base in type(value).__mro__ if not _is_library(base)),
        *(each for each in found if each is not missing),
        *(attributes.values() if isinstance(attributes, dict) else ()),
    ]


def _is_library(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in _LIBRARIES


def _held_by_function(function: Any) -> list[Any]:
    if isinstance(function, functools.partial):
        return [function.func, *function.args, *function.keywords.values()]
    if isinstance(function, types.BuiltinMethodType):
        return [function.__self__]
    if isinstance(function, types.MethodType):
        return [function.__self__, function.__func__]
    cells = (cell for cell in function.__closure__ or () if cell != types.CellType())
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return [*(cell.cell_contents for cell in cells), *defaults]


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)
