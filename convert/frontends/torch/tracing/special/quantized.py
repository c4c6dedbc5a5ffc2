"""Torch's quantized tensors, packed weights and observers during a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from tmconvert.frontends.torch.tracing.recording.tape import Value
from tmconvert.ir import QParams

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder

# methods and properties of tensors that say how they are quantized
_PARAMETERS = """q_scale q_zero_point q_per_channel_scales q_per_channel_zero_points q_per_channel_axis
    qscheme is_quantized"""
PARAMETERS = tuple(_PARAMETERS.split())


def dtype_of(tensor: torch.Tensor) -> str:
    """Returns the name of a tensor's element type; of a quantized tensor that of its integers."""
    name = str(tensor.dtype).removeprefix("torch.")
    if not tensor.is_quantized:
        return name
    from tmconvert.frontends.torch.quantized_types import INTEGERS

    return "float32" if qparams_of(tensor) is None else INTEGERS[name].stored


def qparams_of(tensor: torch.Tensor) -> QParams | None:
    """Returns the tensor's quantization; None for a float tensor, or if zero points are not integers."""
    if not tensor.is_quantized or tensor.qscheme() == torch.per_channel_affine_float_qparams:
        return None
    from tmconvert.frontends.torch.quantized_types import INTEGERS

    kind = INTEGERS[str(tensor.dtype).removeprefix("torch.")]
    if tensor.qscheme() == torch.per_tensor_affine:
        return kind.qparams((tensor.q_scale(),), (tensor.q_zero_point(),))
    scales = tensor.q_per_channel_scales().tolist()
    zeros = tensor.q_per_channel_zero_points().tolist()
    return kind.qparams(tuple(scales), tuple(zeros), tensor.q_per_channel_axis())


_FAKE_QUANTIZE = re.compile(r"(?:.*\.)?fake_quantize_per_(tensor|channel)_affine")


def fake_quant_qparams_of(name: str, args: Sequence[Any]) -> QParams | None:
    """Returns the QParams of a recorded call of fake quantization; None for other calls.

    Also None where scales or zero points are computed, or are no valid QParams.
    """
    match = _FAKE_QUANTIZE.fullmatch(name)
    if match is None or len(args) != (6 if match[1] == "channel" else 5):
        return None
    x, scale, zero_point, *axis, low, high = args
    scales, zeros = _constant(scale), _constant(zero_point)
    if scales is None or zeros is None or len(scales) != len(zeros) or any(zero % 1 for zero in zeros):
        return None
    from tmconvert.frontends.torch.quantized_types import fake_quant_qparams

    found = fake_quant_qparams(scales, zeros, low, high, axis[0] % len(x.shape) if axis else None)
    return None if found.problem(x.shape) else found


def _constant(value: Any) -> list[float] | None:
    """Returns the elements of a number or of a tensor from before the run."""
    if isinstance(value, Value):
        return None if value.captured is None else value.captured.detach().reshape(-1).tolist()
    return [value]


class PackedWeights:
    """Weight and bias of a packed-parameters object; the same tensors on every access."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[Any, dict[str, Any]]] = {}

    def parts(self, packed: object) -> dict[str, Any]:
        """``weight`` and ``bias``, and for convolutions their parameters.

        It is empty for other objects, such as those of recurrent layers, whose tensors cannot be read.
        """
        if not hasattr(packed, "unpack"):
            return {}
        if id(packed) not in self._parts:
            held = packed.unpack()
            weight, bias = (held, None) if isinstance(held, torch.Tensor) else held  # one is a table's
            said: dict[str, Any] = {"weight": weight, "bias": None if bias is None else bias.detach()}
            said["engine"] = torch.backends.quantized.engine
            for name in _CALLED_WITH:
                if hasattr(packed, name):
                    value = getattr(packed, name)()
                    said[name] = list(value) if isinstance(value, (list, tuple)) else value
            self._parts[id(packed)] = packed, said
        return self._parts[id(packed)][1]

    def tensors(self, module: object) -> Iterator[tuple[str, torch.Tensor]]:
        """Returns the tensors of packed weights among the attributes of a module."""
        for value in module.__dict__.values():
            if isinstance(value, torch.ScriptObject) and hasattr(value, "unpack"):
                parts = self.parts(value)
                for name in ("weight", "bias"):
                    if parts[name] is not None:
                        yield name, parts[name]


def made_of_tensors(cls: type) -> bool:
    """Whether a tensor subclass wraps other tensors, as torchao's do, and defines its calls itself."""
    return hasattr(cls, "__tensor_flatten__")


def has_wrappers(args: Sequence[object]) -> bool:
    """Whether tensors that wrap others are among the arguments of a call, or in lists there."""
    return any(
        any(map(made_of_tensors, map(type, arg)))
        if isinstance(arg, (list, tuple))
        else made_of_tensors(type(arg))
        for arg in args
    )


def parts_of(name: str, tensor: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Returns a tensor by its name, or the tensors that it wraps by theirs."""
    if not made_of_tensors(type(tensor)):
        yield name, tensor
        return
    for part in tensor.__tensor_flatten__()[0]:  # type: ignore[attr-defined]
        yield from parts_of(f"{name}_{part}", getattr(tensor, part))


def called_of_class(
    recorder: Recorder, cls: Any, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Records the calls inside of a tensor subclass's own implementation.

    A function that the subclass passes on to torch is followed into its ATen ops, which the subclass may
    implement in ``__torch_dispatch__``.
    """
    if (cls, function) in recorder.running:
        with torch._C.DisableTorchFunctionSubclass():
            return recorder.called(function, args, kwargs)
    recorder.running.append((cls, function))
    try:
        with recorder:
            return cls.__torch_function__(function, types, args, kwargs)
    finally:
        recorder.running.pop()


_CALLED_WITH = ("stride", "padding", "output_padding", "dilation", "groups")


def without_observer(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``torch.fused_moving_avg_obs_fake_quant`` with a disabled observer, which writes to no tensor."""
    names = "x observes rounds low high scale zero_point rate quant_min quant_max axis is_per_channel"
    given = dict(zip(names.split(), args, strict=False))
    if kwargs or recorder.run(bool, given["observes"].any()):
        return recorder.record(recorder._name(function), function, args, kwargs)
    if not recorder.run(bool, given["rounds"].any()):
        return given["x"]
    settings = [given["axis"]] if given.get("is_per_channel") else []
    settings += [given["quant_min"], given["quant_max"]]
    kind = "channel" if given.get("is_per_channel") else "tensor"
    with recorder:
        rounds = getattr(torch, f"fake_quantize_per_{kind}_affine")
        return rounds(given["x"], given["scale"], given["zero_point"], *settings)


@contextmanager
def observers_at_rest(modules: Sequence[torch.nn.Module]) -> Iterator[None]:
    """Makes observers among the modules identities, and keeps the scales of fake quants unchanged.

    In torch observers keep observing in evaluation mode unless they are disabled; results would depend on
    earlier inputs.
    """
    fake_quants: list[Any] = [each for each in modules if _is_fake_quant(each)]
    watching = [each.observer_enabled for each in fake_quants if bool(each.observer_enabled[0])]
    classes = {cls for cls in set(map(type, modules)) if _is_observer(cls)}
    observers = [each for each in modules if type(each) in classes]
    with torch.no_grad():
        for switch in watching:
            switch[0] = 0
    for one in observers:
        one.__dict__["forward"] = _passed
    try:
        yield
    finally:
        for one in observers:
            del one.__dict__["forward"]
        with torch.no_grad():
            for switch in watching:
                switch[0] = 1


def _is_fake_quant(module: torch.nn.Module) -> bool:
    # hasattr takes longer where a module does not have an attribute
    return all(
        name in module._buffers or name in module.__dict__
        for name in ("observer_enabled", "fake_quant_enabled")
    )


def _is_observer(cls: type) -> bool:
    """Whether the class is that of an observer, of torch or torchao."""
    return any(base.__name__ == "ObserverBase" for base in cls.__mro__)


def _passed(x: torch.Tensor, *args: object) -> torch.Tensor:
    return x
