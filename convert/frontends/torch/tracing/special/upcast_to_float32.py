"""Runs models of bfloat16, of weights in float8, and casts to float8, in float32.

Runtimes have few kernels for these types. All their values are values of float32, so a float32 model with the
same weights computes the same without their rounding.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeGuard

import torch

from tmconvert.frontends.torch.tracing.special.quantized import parts_of
from tmconvert.ir.tree import map_leaves
from tmconvert.ir.types import Kwargs

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder

NOTE = "bfloat16 becomes float32: weights keep their values, and results are not rounded to bfloat16"
_NOTE_OF_WEIGHTS = "weights in {} become float32 with the same values"
_TYPES = {
    *(torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2),
    *(torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
    *([torch.float8_e8m0fnu] if hasattr(torch, "float8_e8m0fnu") else []),  # since 2.7
}
_BFLOAT16 = {torch.bfloat16}
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_NOTE_OF_CASTS = "casts to {} round to its numbers, which the file holds in float32"
_ROUNDED = (torch.float8_e4m3fn, torch.float8_e5m2)
_CASTS = (*(torch.Tensor.to, torch.Tensor.type), *(torch.ops.aten.to.dtype, torch.ops.aten._to_copy.default))
_PRODUCTS = (torch._scaled_mm, torch.ops.aten._scaled_mm.default)


def wide(tensor: Any) -> Any:
    """Returns a tensor as float32 if it is of bfloat16; everything else as it is."""
    return tensor.float() if isinstance(tensor, torch.Tensor) and tensor.dtype == torch.bfloat16 else tensor


class Float32Copies:
    """The float32 copies of tensors from before a run that the module does not hold as its state.

    A closure has such tensors, or a list, or a subclass of Tensor that a method of the module makes.
    """

    def __init__(self) -> None:
        self._made: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the copy of a tensor, the same one at every call."""
        if id(tensor) not in self._made:
            self._made[id(tensor)] = tensor, tensor.detach().float()
        return self._made[id(tensor)][1]

    def notes(self) -> list[str]:
        """Returns notes for a report, one for each type."""
        return [_note(dtype) for dtype in dict.fromkeys(one.dtype for one, _ in self._made.values())]


def widened(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: Kwargs) -> tuple[Any, Any, Any]:
    """Returns a call in float32: without bfloat16 as a type, or tensors of narrow types from before."""
    if is_narrow_call(function, args, kwargs):
        function, args, kwargs = wide_call(function, args, kwargs)
        recorder.tape.note(NOTE)
    if has_narrow_tensors(args, kwargs):
        args, kwargs = map_leaves(functools.partial(_copied, recorder), (args, kwargs))
    return function, args, kwargs


def float8_steps(
    recorder: Recorder, function: object, args: tuple[Any, ...], kwargs: Kwargs
) -> Callable[[], object] | None:
    """Returns the steps of a cast to float8, or of ``torch._scaled_mm``, in float32; None for other calls."""
    types = [arg for arg in (*args[1:], *kwargs.values()) if isinstance(arg, torch.dtype)]
    if types and types[0] in _ROUNDED and any(function is each for each in _CASTS):
        from tmconvert.frontends.torch.tracing.special.float8 import rounded

        recorder.tape.note(_NOTE_OF_CASTS.format(str(types[0]).removeprefix("torch.")))
        return functools.partial(rounded, args[0], types[0])
    if any(function is each for each in _PRODUCTS):
        from tmconvert.frontends.torch.tracing.special.float8 import scaled_mm

        return functools.partial(scaled_mm, *args, **kwargs)
    return None


def _copied(recorder: Recorder, leaf: object) -> Any:
    """Returns the float32 copy of a tensor from before the run; other values as they are."""
    if not is_narrow(leaf) or recorder.aliases.find(leaf) is not None:
        return leaf
    copy: torch.Tensor = recorder.run(recorder.float32_copies.of, leaf)
    for note in recorder.float32_copies.notes():
        recorder.tape.note(note)
    return recorder.origins.add(copy)


def has_narrow_tensors(args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Whether plain tensors of bfloat16 or float8 are among the arguments of a call, or in lists there."""
    return any(map(_is_narrow, args)) or any(map(_is_narrow, kwargs.values()))


def is_narrow(value: object) -> TypeGuard[torch.Tensor]:
    """Whether a value is a plain tensor of bfloat16 or float8."""
    return isinstance(value, torch.Tensor) and type(value) in _PLAIN and value.dtype in _TYPES


def _is_narrow(value: object) -> bool:
    return any(map(is_narrow, value)) if isinstance(value, (list, tuple)) else is_narrow(value)


def wide_call(function: object, args: tuple[Any, ...], kwargs: Kwargs) -> tuple[Any, Any, Any]:
    """Returns the float32 form of a call that makes a bfloat16 tensor: its function and arguments."""
    if function is torch.Tensor.bfloat16:
        return torch.Tensor.float, args, kwargs
    wider, narrow = torch.float32, _replaced(function)
    return (
        function,
        tuple(wider if isinstance(arg, torch.dtype) and arg in narrow else arg for arg in args),
        {
            name: wider if isinstance(arg, torch.dtype) and arg in narrow else arg
            for name, arg in kwargs.items()
        },
    )


def is_narrow_call(function: object, args: tuple[Any, ...], kwargs: Kwargs) -> bool:
    """Whether a call requests a result of bfloat16, or tests for a narrow type."""
    narrow = _replaced(function)
    return function is torch.Tensor.bfloat16 or any(
        isinstance(arg, torch.dtype) and arg in narrow for arg in (*args, *kwargs.values())
    )


def _replaced(function: object) -> set[torch.dtype]:
    """Returns the types that a call does not see: for an assertion of an exported program, all of them."""
    return _TYPES if function is torch.ops.aten._assert_tensor_metadata.default else _BFLOAT16


@contextmanager
def wide_state(module: object) -> Iterator[list[str]]:
    """Makes parameters, buffers and other tensors of a module float32 within the context.

    Yields notes for a report, a list that grows where the module enters autocast. Autocast to bfloat16 has no
    effect meanwhile.
    """
    narrow = _narrow_tensors(module) if isinstance(module, torch.nn.Module) else []
    before = [tensor.data for tensor in narrow]
    default = torch.get_default_dtype()
    autocast: Any = torch.autocast
    enter, leave = autocast.__enter__, autocast.__exit__
    notes = [_note(dtype) for dtype in dict.fromkeys(tensor.dtype for tensor in narrow)]
    autocast.__enter__, autocast.__exit__ = (_unless_bfloat16(method, notes) for method in (enter, leave))
    try:
        for tensor in narrow:
            tensor.data = tensor.data.float()
        if default == torch.bfloat16:
            torch.set_default_dtype(torch.float32)
        yield notes
    finally:
        torch.set_default_dtype(default)
        autocast.__enter__, autocast.__exit__ = enter, leave
        for tensor, data in zip(narrow, before, strict=True):
            tensor.data = data


def is_widened(notes: Sequence[str]) -> bool:
    """Whether notes state that a run computed in float32 what the module by itself computes otherwise."""
    known = {
        *map(_note, _TYPES),
        *(_NOTE_OF_CASTS.format(str(each).removeprefix("torch.")) for each in _ROUNDED),
    }
    return not known.isdisjoint(notes)


def _note(dtype: torch.dtype) -> str:
    return NOTE if dtype == torch.bfloat16 else _NOTE_OF_WEIGHTS.format(str(dtype).removeprefix("torch."))


def _narrow_tensors(module: torch.nn.Module) -> list[torch.Tensor]:
    found: dict[int, torch.Tensor] = {}
    for each in module.modules():
        for tensors in (each._parameters, each._buffers, vars(each)):
            for held in list[Any](tensors.values()):
                if isinstance(held, torch.Tensor):
                    found |= {id(tensor): tensor for _, tensor in parts_of("", held) if is_narrow(tensor)}
    return list(found.values())


def _unless_bfloat16(method: Any, notes: list[str]) -> Any:
    """Returns a method of autocast that does nothing for bfloat16, but adds a note."""

    def called(self: Any, *args: Any) -> Any:
        if self.fast_dtype == torch.bfloat16:
            notes.extend([NOTE] * (NOTE not in notes))
            is_ours = method.__name__ == called.__name__
            return method(self, *args) if is_ours else None if args else self
        return method(self, *args)

    return called
