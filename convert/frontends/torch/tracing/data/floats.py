"""Floats that Python reads from tensors: ``torch.clamp(x, min=x.max().item() - 1.0)``.

Such a float remembers its tensor. Arithmetic computes with the tensor, too, a comparison is a decision, and
functions of torch get the tensor in the place of the float. What else Python does with it, such as
``math.sqrt``, makes a plain number, which runs on other data show; text, hashes and integers are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.data.integers import WHAT, reads_data
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place
from tmconvert.frontends.torch.tracing.sizes.integers import TRACED
from tmconvert.ir.tree import map_leaves

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder


class TensorFloat(float):
    """The element of ``tensor``, which the calls that ``recorder`` records computed."""

    recorder: Recorder
    tensor: torch.Tensor

    def __new__(cls, number: float, tensor: torch.Tensor, recorder: Recorder) -> TensorFloat:
        self = super().__new__(cls, number)
        self.tensor, self.recorder = tensor, recorder
        return self

    def __reduce__(self) -> Any:
        return float, (float.__pos__(self),)

    def __pos__(self) -> TensorFloat:
        return self

    def __bool__(self) -> bool:
        return bool(self != 0.0)


def read(recorder: Recorder, name: str, tensor: torch.Tensor, number: float) -> TensorFloat | None:
    """Returns the float that ``item()`` reads of a tensor; None for another read."""
    if name != "item" or recorder.follows_gradients or recorder.is_batched:
        return None
    if tensor.dim():
        tensor = recorder.called(torch.Tensor.reshape, (tensor, ()), {})
    recorder.tape.with_floats = _with_tensors
    return TensorFloat(number, tensor, recorder)


def _with_tensors(arguments: object) -> Any:
    """Returns the arguments of a call with tensors in the place of floats that were read of them."""
    return map_leaves(lambda leaf: leaf.tensor if isinstance(leaf, TensorFloat) else leaf, arguments)


def _computed(name: str, *, is_reflected: bool = False) -> Callable[..., Any]:
    plain = getattr(float, f"__r{name}__" if is_reflected else f"__{name}__")
    function = getattr(torch, {"truediv": "true_divide", "mod": "remainder"}.get(name, name))

    def method(self: TensorFloat, *others: object) -> object:
        number = plain(self, *others)
        if (
            number is NotImplemented
            or self.recorder.is_busy
            or any(isinstance(each, TRACED) for each in others)
        ):
            return number
        operands = _with_tensors((self, *others))
        if is_reflected:
            first = operands[1]
            operands = (
                first if isinstance(first, torch.Tensor) else self.tensor.new_tensor(first),
                self.tensor,
            )
        with torch._C.DisableTorchFunction():  # as in a call that the recorder sees
            return TensorFloat(number, self.recorder.called(function, operands, {}), self.recorder)

    return method


def _compared(name: str) -> Callable[..., Any]:
    plain, function = getattr(float, f"__{name}__"), getattr(torch, name)

    def method(self: TensorFloat, other: object) -> object:
        outcome = plain(self, other)
        if outcome is NotImplemented or self.recorder.is_busy:
            return outcome
        return _decided(self, function, other, outcome)

    return method


def _decided(number: TensorFloat, function: Callable[..., object], other: object, outcome: bool) -> bool:
    from tmconvert.frontends.torch.tracing.control_flow.decisions import answer

    recorder, place = number.recorder, user_place()
    with torch._C.DisableTorchFunction():
        condition = recorder.called(function, _with_tensors((number, other)), {})
        decided = answer(recorder, "__bool__", ((condition,), {}), outcome, place)
    if decided is None:
        raise _error(place)
    return decided


def _refused(self: TensorFloat, *args: object) -> None:
    raise _error(user_place())


def _error(place: Source) -> Exception:
    return reads_data(place, WHAT["item"])


for _name in ("add", "sub", "mul", "truediv", "mod", "pow"):
    setattr(TensorFloat, f"__{_name}__", _computed(_name))
    setattr(TensorFloat, f"__r{_name}__", _computed(_name, is_reflected=True))
for _name in ("neg", "abs"):
    setattr(TensorFloat, f"__{_name}__", _computed(_name))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(TensorFloat, f"__{_name}__", _compared(_name))
_REFUSED = "float int trunc floor ceil round floordiv rfloordiv divmod rdivmod hash str repr format"
for _name in _REFUSED.split():
    setattr(TensorFloat, f"__{_name}__", _refused)
