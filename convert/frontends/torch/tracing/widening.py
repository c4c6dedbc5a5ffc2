"""Runs models of bfloat16, and of weights in float8, in float32.

Runtimes have few kernels for these types. All their values are values of float32, so a float32 model with the
same weights computes the same without their rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeGuard

import torch

from tmconvert.frontends.torch.tracing.quantized import parts_of

NOTE = "bfloat16 becomes float32: weights keep their values, and results are not rounded to bfloat16"
_NOTE_OF_WEIGHTS = "weights in {} become float32 with the same values"
_TYPES = {
    *(torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2),
    *(torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu),
}
_PLAIN = (torch.Tensor, torch.nn.Parameter)


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


def has_narrow_tensors(args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Whether plain tensors of bfloat16 or float8 are among the arguments of a call, or in lists there."""
    return any(map(_is_narrow, args)) or any(map(_is_narrow, kwargs.values()))


def is_narrow(value: object) -> TypeGuard[torch.Tensor]:
    """Whether a value is a plain tensor of bfloat16 or float8."""
    return isinstance(value, torch.Tensor) and type(value) in _PLAIN and value.dtype in _TYPES


def _is_narrow(value: object) -> bool:
    return any(map(is_narrow, value)) if isinstance(value, (list, tuple)) else is_narrow(value)


def wide_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Returns the float32 form of a call that makes a bfloat16 tensor: its function and arguments."""
    if function is torch.Tensor.bfloat16:
        return torch.Tensor.float, args, kwargs
    wider = torch.float32
    return (
        function,
        tuple(wider if arg is torch.bfloat16 else arg for arg in args),
        {name: wider if arg is torch.bfloat16 else arg for name, arg in kwargs.items()},
    )


def is_narrow_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call requests a result of bfloat16."""
    return (
        function is torch.Tensor.bfloat16
        or any(arg is torch.bfloat16 for arg in args)
        or any(arg is torch.bfloat16 for arg in kwargs.values())
    )


@contextmanager
def wide_state(module: Any) -> Iterator[list[str]]:
    """Makes parameters, buffers and other tensors of a module float32 within the context.

    Yields notes for a report. Autocast to bfloat16 has no effect meanwhile.
    """
    narrow = _narrow_tensors(module) if isinstance(module, torch.nn.Module) else []
    before = [tensor.data for tensor in narrow]
    default = torch.get_default_dtype()
    autocast: Any = torch.autocast
    enter, leave = autocast.__enter__, autocast.__exit__
    autocast.__enter__, autocast.__exit__ = _unless_bfloat16(enter), _unless_bfloat16(leave)
    try:
        for tensor in narrow:
            tensor.data = tensor.data.float()
        if default == torch.bfloat16:
            torch.set_default_dtype(torch.float32)
        yield [_note(dtype) for dtype in dict.fromkeys(data.dtype for data in before)]
    finally:
        torch.set_default_dtype(default)
        autocast.__enter__, autocast.__exit__ = enter, leave
        for tensor, data in zip(narrow, before, strict=True):
            tensor.data = data


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


def _unless_bfloat16(method: Any) -> Any:
    def called(self: Any, *args: Any) -> Any:
        if self.fast_dtype == torch.bfloat16:
            return self if not args else None
        return method(self, *args)

    return called
