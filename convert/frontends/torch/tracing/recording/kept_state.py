"""State that a module keeps from call to call in its attributes, which a file does not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tmconvert.frontends.torch.tracing.recording.arrays import array_of
from tmconvert.frontends.torch.tracing.recording.state_guard import (
    FROM_INITIAL,
    INSTEAD,
    StateGuard,
    is_users_object,
    same_randomness,
    shown_names,
)

OF_TORCH = frozenset(vars(torch.nn.Module()))  # what torch keeps of each module


def state_note(
    modules: Sequence[tuple[str, torch.nn.Module]],
    known: Sequence[str],
    written: Collection[int],
    call: Callable[[], object],
) -> str:
    """Calls a module twice, and returns a note on the attributes that differ after the second call.

    The note is empty where these are as after the first call and both calls return the same, as with a cache
    of what does not depend on earlier calls. Attributes that are ``known`` are noted elsewhere. All are
    restored, and of the parameters those that are ``written``, by their ids.
    """
    guard = StateGuard()
    held = guard.add_modules([module for _, module in modules])
    for tensor in held:
        if id(tensor) in written or not isinstance(tensor, torch.nn.Parameter):
            guard.about_to_write(tensor)
    guard.about_to_differentiate()
    try:
        before = _attributes(modules)
        outputs = [_result(call)]
        first = _attributes(modules)
        outputs.append(_result(call))
        second = _attributes(modules)
    finally:
        guard.restore()
    differs = outputs[0] != outputs[1]
    names = _names_of(first, second)
    if differs:
        names = names or _names_of(before, first)
    names = [name for name in names if name not in known]
    if not names:
        return ""
    what = f"the module keeps state in {shown_names(names)}"
    what = f"warning: {what}, and its next call computes something else" if differs else what
    return f"{what}; {FROM_INITIAL}; {INSTEAD}"


def _names_of(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Returns the names of the attributes that differ."""
    return [name for name, value in after.items() if before.get(name) != value]


def _result(call: Callable[[], object]) -> Any:
    try:
        with same_randomness():
            return _value(call(), set())
    except (Exception, SystemExit) as error:  # the module's own, such as for what its first call left
        return str(error)


def _attributes(modules: Sequence[tuple[str, torch.nn.Module]]) -> dict[str, Any]:
    """Returns the values of the attributes and buffers of modules by name, in a form that can be compared."""
    return {
        f"{path}.{name}" if path else name: _value(value, set())
        for path, module in modules
        for name, value in _named(module)
    }


def _named(module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    yield from ((name, value) for name, value in vars(module).items() if name not in OF_TORCH)
    yield from vars(module).get("_buffers", {}).items()


def _value(value: Any, seen: set[int]) -> Any:
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    if id(value) in seen or isinstance(value, (torch.nn.Module, type)):
        return type(value)
    seen = {*seen, id(value)}
    if isinstance(value, torch.Tensor):
        is_plain = value.layout == torch.strided and not value.is_quantized and not value.is_meta
        value = array_of(value.detach()) if is_plain else np.zeros(0)
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.shape, value.tobytes() if not value.dtype.hasobject else b""
    if isinstance(value, dict):
        return [(repr(key), _value(each, seen)) for key, each in value.items()]
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    if isinstance(value, Sequence) or type(value).__name__ == "deque":
        return [_value(each, seen) for each in value]
    return _value(vars(value), seen) if is_users_object(value) else type(value)
