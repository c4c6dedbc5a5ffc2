"""Converts tensors to NumPy arrays without copying, and other constants to those that a graph stores."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import ml_dtypes
import numpy as np
import torch

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.tracing.recording.modes import modules_of
from tmconvert.frontends.torch.tracing.special.quantized import qparams_of
from tmconvert.ir.fake_quant import with_integers
from tmconvert.ir.inert import GlobalRef

INTEGERS = "_tmconvert_integers"  # attribute of a parameter that was restored from an IntegerMatrix
STORED = "_tmconvert_stored"  # attribute of a parameter that has other numbers while it is traced
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """Returns the tensor's data as an array, sharing memory if possible. Raises UnsupportedError TM2013."""
    integers = getattr(tensor, INTEGERS, None)
    if integers is not None:
        return with_integers(tensor.detach().numpy(), integers)
    tensor = tensor.detach()
    if tensor.is_quantized:
        real, qparams = tensor.dequantize().cpu().numpy(), qparams_of(tensor)
        from tmconvert.ir.fake_quant import with_qparams

        return real if qparams is None else with_qparams(real, qparams)
    if tensor.layout != torch.strided:
        raise UnsupportedError(
            "TM2013",
            (
                f"a constant of the module has layout {tensor.layout}; only strided (dense) tensors are "
                "supported"
            ),
        )
    if tensor.is_meta:
        raise UnsupportedError("TM2013", "a constant of the module is on the device meta, and has no values")
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(BFLOAT16)
    return tensor.numpy()


def has_stand_ins(module: Callable[..., object]) -> bool:
    """Whether a parameter of a module, or of one that a function refers to, has a stand-in."""
    held = (each._parameters.values() for each in modules_of(module))
    return any(hasattr(parameter, STORED) for parameters in held for parameter in parameters)


class Arrays:
    """Caches the array of each tensor; an array shares its tensor's memory.

    Tensors that the module writes to, given by their ids, are copied, since the next run changes them. A
    parameter with a stand-in has the array that is stored, unless ``of_run``.
    """

    def __init__(self, written: Container[int], *, of_run: bool = False) -> None:
        self._written, self._of_run = written, of_run
        self._arrays: dict[int, np.ndarray] = {}

    def of(self, tensor: torch.Tensor) -> np.ndarray:
        array = self._arrays.get(id(tensor))
        if array is None:
            array = array_of(tensor if self._of_run else getattr(tensor, STORED, tensor))
            self._arrays[id(tensor)] = array = array.copy() if id(tensor) in self._written else array
        return array


def numpy_dtype(name: str) -> np.dtype | None:
    """Returns NumPy's dtype of the same name; None where NumPy has none."""
    if name == "bfloat16":
        return BFLOAT16
    try:
        return np.dtype(name)
    except TypeError:
        return None


def plain_constant(leaf: Any) -> Any:
    """Dtypes, devices and layouts become names; numbers and texts stay; others become their class name."""
    if leaf is None or isinstance(leaf, (bool, str)) or type(leaf) in (int, float, complex):
        return leaf
    if isinstance(leaf, int):
        return int(leaf)
    if isinstance(leaf, float):
        return float(leaf)
    if isinstance(leaf, (torch.dtype, torch.layout, torch.memory_format)):
        return GlobalRef("torch", str(leaf).removeprefix("torch."))
    if isinstance(leaf, torch.device):
        return str(leaf)
    if leaf is Ellipsis:
        return leaf
    if isinstance(leaf, type):
        return GlobalRef(leaf.__module__, leaf.__qualname__)
    if getattr(leaf, "size", 1) == 1 and (hasattr(leaf, "__index__") or hasattr(leaf, "item")):  # of NumPy
        return leaf.item() if hasattr(leaf, "item") else leaf.__index__()
    return GlobalRef(type(leaf).__module__, type(leaf).__qualname__)


class ComparedData:
    """A captured tensor, which compares equal to itself and to one with equal elements."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ComparedData):
            return False
        one, two = self.tensor, other.tensor
        return one is two or (one.dtype == two.dtype and one.shape == two.shape and torch.equal(one, two))

    __hash__ = None  # type: ignore[assignment]
