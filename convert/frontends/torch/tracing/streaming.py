"""State of a module that becomes inputs and outputs, so that a file streams as the module does.

``streaming`` returns the module as one that takes the tensors of its state as keyword arguments, and returns
them with its outputs as they are after the call. It shares all attributes with the module.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch

from tmconvert.errors import TmconvertError, UnsupportedError, UsageError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.recording.arrays import array_of
from tmconvert.frontends.torch.tracing.recording.kept_state import OF_TORCH
from tmconvert.frontends.torch.tracing.recording.state_guard import (
    StateGuard,
    is_users_object,
    same_randomness,
    shown_names,
)
from tmconvert.frontends.torch.tracing.recording.structure import Tensors, plain_structure
from tmconvert.frontends.torch.tracing.runs import savable
from tmconvert.ir.arrays import are_equal
from tmconvert.ir.tree import leaves
from tmconvert.ir.types import Args

ALL = "all"
_CALLS = 3  # in a row, that the state must reproduce
_HELP = "keep it in a tensor of the same shape at each call, which forward replaces or writes to"

Path = tuple[Any, ...]  # of keys
Clone = Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]


def next_of(name: str) -> str:
    """Returns the name of the output with the value of a tensor after the call."""
    return f"{name.replace('.', '_')}_next"


class Slot(NamedTuple):
    """A tensor of the state: an attribute of a module, or what is at a path within the attribute."""

    name: str
    module: torch.nn.Module
    attribute: str
    path: Path

    def get(self) -> Any:
        """Returns what is there now; None for nothing."""
        value = getattr(self.module, self.attribute, None)
        for key in self.path:
            try:
                value = dict(_children(value))[key]
            except LookupError:
                return None
        return value

    def put(self, content: object, tensor: torch.Tensor) -> None:
        """Puts a tensor there, into a copy of ``content``, which is the attribute as it is after a call."""
        present = getattr(self.module, self.attribute, None)
        value = content if self.path and _shape(present) != _shape(content) else present
        stores: Any = self.module._parameters
        if self.attribute in stores:
            stores[self.attribute] = tensor
        else:
            setattr(self.module, self.attribute, _with(value, self.path, tensor))


def streaming(
    module: object, names: Sequence[str], clone: Clone, inputs: Collection[str], opened: Collection[str]
) -> tuple[Any, dict[str, torch.Tensor], list[str]]:
    """Returns the module with its state as arguments, their example values, and notes.

    ``names`` are attributes by their paths, or ``all``; ``clone`` copies the example inputs, which are called
    ``inputs``; those in ``opened`` have dynamic sizes. Raises UsageError TM6014 for a name that the module
    does not have, UnsupportedError TM2023 for state that no tensors can carry from call to call.
    """
    if not isinstance(module, torch.nn.Module) or isinstance(module, torch.jit.ScriptModule):
        what = "a TorchScript module" if isinstance(module, torch.nn.Module) else "a function"
        raise UsageError("TM6014", f"state must belong to a module of Python, and this is {what}")
    state = _State(module, clone)
    slots, contents = state.slots(names)
    placed = {f"{each[0].name}_state" if each[0].name in inputs else each[0].name: each for each in slots}
    examples = state.learn({name: group[0] for name, group in placed.items()})
    made = _streaming_module(module, placed, contents)
    notes = state.checked(made, examples, names)
    known = {name.replace(".", "_") for name in opened}
    for name, tensor in examples.items():
        after = state.states[0][name].shape
        if tensor.shape != after and name.replace(".", "_") not in known:
            sizes = f"{list(tensor.shape)} before a call and {list(after)} after it"
            notes.append(
                f"warning: {name} is {sizes}: make that size dynamic, to use the output as the next input"
            )
    return made, examples, notes


class _State:
    """The state of a module, learned from calls with the example inputs."""

    def __init__(self, module: torch.nn.Module, clone: Clone) -> None:
        self.module, self.clone = module, clone
        self.modules = list(module.named_modules())
        self.zeros: list[str] = []  # slots that have no tensor before the first call
        self.results: list[list[np.ndarray]] = []  # of calls in a row
        self.states: list[dict[str, Any]] = []  # after each of them
        self.written: list[str] = []  # attributes that the first two calls write to

    def slots(self, names: Sequence[str]) -> tuple[list[list[Slot]], dict[tuple[int, str], Any]]:
        """Returns the slots, those that hold one tensor together, and the attributes after a call."""
        with restored(self.modules):
            before = _held(self.modules)
            self._call()
            self._call()
            self.written = _written(before, _held(self.modules))
            wanted = self.written if ALL in names else [*dict.fromkeys(names)]
            places = [self._place(name) for name in wanted]
            slots = [slot for place in places for slot in self._within(*place, ALL in names)]
            shapes = [_shape(getattr(module, name, None)) for _, module, name, _ in places]
            self._call()
            for (name, module, attribute, _), shape in zip(places, shapes, strict=True):
                if _shape(getattr(module, attribute, None)) != shape:
                    raise _refused(name, "grows, or changes its structure, from call to call")
            owners = {(id(slot.module), slot.attribute): slot.module for slot in slots}
            contents = {key: _copied(getattr(owner, key[1])) for key, owner in owners.items()}
            shared = [slot.get() for slot in slots]
        groups: dict[tuple[int, int], list[Slot]] = {}
        for slot, after in zip(slots, shared, strict=True):
            own = slot.get()
            key = (id(slot) if own is None else id(own), id(after))
            groups.setdefault(key, []).append(slot)
        if not groups:
            raise UsageError("TM6014", "the module has no state: no call changes a tensor that it holds")
        return [*groups.values()], contents

    def learn(self, placed: Mapping[str, Slot]) -> dict[str, torch.Tensor]:
        """Calls the module in a row, and returns the tensors before; zeros like those after it for none."""
        examples = {name: _cloned(slot.get()) for name, slot in placed.items()}
        with restored(self.modules):
            for _ in range(_CALLS):
                self.results.append(_arrays(self._call()))
                self.states.append({name: _cloned(slot.get()) for name, slot in placed.items()})
        self.zeros = [name for name, tensor in examples.items() if tensor is None]
        return {
            name: torch.zeros_like(self.states[-1][name]) if tensor is None else tensor
            for name, tensor in examples.items()
        }

    def checked(self, made: Callable[..., Any], examples: Tensors, names: Sequence[str]) -> list[str]:
        """Returns notes. Raises UnsupportedError TM2023 where calls with the state differ from the module's.

        State that was not requested may differ: a note of the traced model reports it.
        """
        if all(map(are_equal, self._in_a_row(made, examples, _CALLS), self.results)):
            return []
        is_set = all(isinstance(tensor, torch.Tensor) for tensor in self.states[0].values())
        if self.zeros and is_set:
            later = self._in_a_row(made, self.states[0], _CALLS - 1)
            if all(map(are_equal, later, self.results[1:])):
                what = f"the first call, which finds nothing in {shown_names(self.zeros)},"
                how = "computes something else than the file does from zeros; later calls compute the same"
                return [f"warning: {what} {how}"]
        others = [each for each in self.written if not _is_known(each, examples)]
        if others and ALL not in names:
            return []
        why = "does not determine what the next call computes"
        why = "is not a tensor, and calls depend on it" if others else why
        raise _refused(shown_names(others or [*examples]), why)

    def _in_a_row(self, made: Callable[..., Any], state: Tensors, calls: int) -> list[list[np.ndarray]]:
        """Returns the outputs of calls, where each gets the state that the one before returns."""
        results = []
        for _ in range(calls):
            with restored(self.modules):
                result = self._call(made, state)
                state = {name: _cloned(result.pop(next_of(name))) for name in state}
                results.append(_arrays(result))
        return results

    def _call(self, module: Callable[..., Any] | None = None, state: Tensors | None = None) -> Any:
        args, kwargs = self.clone()
        given = {name: tensor.clone() for name, tensor in (state or {}).items()}
        with same_randomness(), torch.no_grad():
            return (self.module if module is None else module)(*args, **kwargs, **given)

    def _place(self, name: str) -> tuple[str, torch.nn.Module, str, tuple[str, ...]]:
        """Returns the module and attribute of a name, and the path of the tensor within it."""
        parts = name.split(".")
        known = dict(self.module.named_modules(remove_duplicate=False))
        for end in range(len(parts) - 1, -1, -1):
            module = known.get(".".join(parts[:end]))
            if module is not None and hasattr(module, parts[end]) and ".".join(parts[: end + 1]) not in known:
                return ".".join(parts[: end + 1]), module, parts[end], tuple(parts[end + 1 :])
        found = shown_names(self.written) or "nothing"
        notes = [("it writes to", found), ("help", "name one, or all")]
        raise UsageError("TM6014", f"the module has no attribute {name!r} for state", notes=notes)

    def _within(
        self, name: str, module: torch.nn.Module, attribute: str, path: tuple[str, ...], is_any: bool
    ) -> Iterator[Slot]:
        """Yields the slots of an attribute whose path begins with ``path``."""
        chosen = [
            keys
            for keys in _shape(getattr(module, attribute, None))
            if tuple(map(str, keys[: len(path)])) == path
        ]
        if not chosen and not is_any:
            value = getattr(module, attribute, None)
            raise _refused(name, f"holds no tensor after a call, but {type(value).__name__}")
        for keys in chosen:
            yield Slot(".".join([name, *map(str, keys)]), module, attribute, keys)


def _streaming_module(
    module: torch.nn.Module, placed: Mapping[str, list[Slot]], contents: Mapping[tuple[int, str], object]
) -> Any:
    """Returns a module of a class like that of ``module``, with its attributes, that takes its state."""

    def call(self: object, /, *args: object, **kwargs: torch.Tensor) -> object:
        given = [(name, slots, kwargs.pop(name)) for name, slots in placed.items()]
        for _, slots, tensor in given:
            for slot in slots:
                slot.put(contents[id(slot.module), slot.attribute], tensor)
        result = module(*args, **kwargs)
        known = result if isinstance(result, dict) else {"output": result}
        return {**known, **{next_of(name): slots[0].get() for name, slots in placed.items()}}

    return like_module(module, call)


def like_module(module: torch.nn.Module, call: Callable[..., object]) -> Any:
    """Returns a module of the class and with the attributes of ``module``, which ``call`` calls."""
    cls = type(module)
    own = {"__call__": call, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    made: Any = torch.nn.Module.__new__(type(cls.__name__, (cls,), own))
    made.__dict__ = module.__dict__
    return made


@contextmanager
def restored(modules: Sequence[tuple[str, torch.nn.Module]]) -> Iterator[None]:
    """Restores the modules after the context."""
    guard = StateGuard()
    for tensor in savable(guard.add_modules([module for _, module in modules])):
        guard.about_to_write(tensor)
    guard.about_to_differentiate()
    try:
        yield
    finally:
        guard.restore()


def _refused(name: str, why: str) -> TmconvertError:
    message = f"the state in {name} cannot be an input and an output: it {why}"
    return UnsupportedError("TM2023", message, source=Source(""), notes=[("help", _HELP)])


def _cloned(tensor: object) -> Any:
    return tensor.detach().clone() if isinstance(tensor, torch.Tensor) else tensor


def _is_known(name: str, examples: Mapping[str, object]) -> bool:
    return any(each == name or each.startswith((f"{name}.", f"{name}_state")) for each in examples)


def _arrays(result: object) -> list[np.ndarray]:
    result = result["output"] if isinstance(result, dict) and list(result) == ["output"] else result
    made = leaves(plain_structure(result))
    return [array_of(leaf.detach()).copy() for leaf in made if isinstance(leaf, torch.Tensor)]


# ---- the values of attributes


Leaves = Sequence[tuple[Path, object, int]]  # the values within an attribute, their paths and versions


def _held(modules: Sequence[tuple[str, torch.nn.Module]]) -> dict[str, Leaves]:
    """Returns what the attributes of modules hold, by their names."""
    found: dict[str, Leaves] = {}
    for path, module in modules:
        own = {name: value for name, value in vars(module).items() if name not in OF_TORCH}
        for name, value in {**own, **module._buffers, **module._parameters}.items():
            leaves_of_value = [(keys, leaf, _version(leaf)) for keys, leaf in _leaves(value)]
            found[f"{path}.{name}" if path else name] = leaves_of_value
    return found


def _version(leaf: object) -> int:
    return leaf._version if isinstance(leaf, torch.Tensor) and not leaf.is_inference() else 0


def _written(before: Mapping[str, Leaves], after: Mapping[str, Leaves]) -> list[str]:
    """Returns the names of attributes that hold other values, or tensors that were written to."""
    return [name for name, leaves in after.items() if not _are_same(before.get(name, []), leaves)]


def _are_same(ones: Leaves, others: Leaves) -> bool:
    return len(ones) == len(others) and all(
        one[0] == other[0] and one[2] == other[2] and _is_same(one[1], other[1])
        for one, other in zip(ones, others, strict=True)
    )


def _is_same(one: object, other: object) -> bool:
    return one is other or (isinstance(one, (bool, int, float, str)) and one == other)


def _children(value: object) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return [*value.items()]
    if isinstance(value, (list, tuple, deque)):
        return [*enumerate(value)]
    return [*vars(value).items()] if is_users_object(value) else []


def _leaves(value: object, path: Path = (), seen: tuple[int, ...] = ()) -> Iterator[tuple[Args, Any]]:
    """Yields what is within a value, with the paths to it."""
    children = [] if isinstance(value, torch.Tensor) or id(value) in seen else _children(value)
    if not children:
        yield path, value
    for key, child in children:
        yield from _leaves(child, (*path, key), (*seen, id(value)))


def _shape(value: object) -> list[Args]:
    """Returns the paths of the tensors within a value."""
    return [path for path, leaf in _leaves(value) if isinstance(leaf, torch.Tensor)]


def _copied(value: object) -> Any:
    """Returns the containers of a value, copied."""
    if isinstance(value, (list, deque, dict)):
        made = copy.copy(value)
        for key, child in _children(value):
            made[key] = _copied(child)
        return made
    return value


def _with(value: Any, path: Path, tensor: torch.Tensor) -> Any:
    """Returns a value with a tensor at a path; only tuples are copied."""
    if not path:
        return tensor
    key, rest = path[0], path[1:]
    if isinstance(value, tuple):
        parts = [_with(each, rest, tensor) if n == key else each for n, each in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if is_users_object(value) and not isinstance(value, (list, dict, deque)):
        vars(value)[key] = _with(vars(value).get(key), rest, tensor)
    else:
        value[key] = _with(value[key], rest, tensor)
    return value
