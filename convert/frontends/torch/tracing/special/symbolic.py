"""Runs the symbolic of a torch.autograd.Function once, and records its ONNX operators."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from tmconvert.errors import UnsupportedError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.recording.arrays import array_of
from tmconvert.ir.tree import leaves
from tmconvert.symbolics.custom import raised_at


@dataclass
class Said:
    """``inputs`` are the input tensors of the operators, ``results`` the indices of the returned values.

    ``operators`` are as in ``symbolics/ops/control_flow/function.py``.
    """

    inputs: list[torch.Tensor] = field(default_factory=list)
    operators: list[Any] = field(default_factory=list)
    results: list[int] = field(default_factory=list)


class TorchScriptOnly(AttributeError):
    """The symbolic needs attributes that only values and graphs of TorchScript have."""


class SymbolicValue:
    """A tensor in a symbolic; ``type()`` has its sizes if it is an argument of the call."""

    def __init__(self, key: object, tensor: torch.Tensor | None = None) -> None:
        self.key = key
        self.tensor = tensor

    def type(self) -> SymbolicValue:
        return self

    def setType(self, type: object) -> SymbolicValue:
        """Ignored: types are inferred from what the function computes."""
        return self

    def sizes(self) -> list[int] | None:
        return None if self.tensor is None else list(self.tensor.shape)

    def dim(self) -> int | None:
        return None if self.tensor is None else self.tensor.dim()

    def scalarType(self) -> str | None:
        return None if self.tensor is None else self.tensor.type().rpartition(".")[2].removesuffix("Tensor")

    def __getattr__(self, name: str) -> Any:
        if any(hasattr(kind, name) for kind in (torch._C.Value, torch._C.TensorType)):
            raise TorchScriptOnly(name)
        raise AttributeError(f"a value of this graph has no attribute {name}")


class SymbolicGraph:
    """The ``g`` argument of a symbolic."""

    def __init__(self) -> None:
        self.said = Said()
        self.made = 0

    def op(self, type: str, *operands: object, outputs: int = 1, **attributes: Any) -> Any:
        """Adds an operator, ``domain::type`` or one of ONNX; attributes end in _i, _f, _s or _t."""
        type = type.removeprefix("onnx::")
        given = [self._operand(operand) for operand in operands]
        if type == "Constant" and not given and isinstance(attributes.get("value_t"), torch.Tensor):
            return self._value(attributes["value_t"])
        plain = [[name[:-2], _attribute(type, name, value)] for name, value in attributes.items()]
        self.said.operators.append([type, given, plain, outputs])
        values = [SymbolicValue(("result", self.made + number)) for number in range(outputs)]
        self.made += outputs
        return values[0] if outputs == 1 else tuple(values)

    def _operand(self, operand: object) -> Any:
        if operand is None:
            return None
        if isinstance(operand, (torch.Tensor, int, float)):
            operand = self._value(torch.as_tensor(operand))
        if not isinstance(operand, SymbolicValue):
            raise TypeError(f"{operand!r} is not a value of this graph")
        return operand.key

    def _value(self, tensor: torch.Tensor) -> SymbolicValue:
        for number, known in enumerate(self.said.inputs):
            if known is tensor:
                return SymbolicValue(("input", number), tensor)
        self.said.inputs.append(tensor)
        return SymbolicValue(("input", len(self.said.inputs) - 1), tensor)

    def finished(self, result: Any) -> Said:
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        said = self.said
        if not all(isinstance(value, SymbolicValue) for value in results):
            raise TypeError("it returns a value that g.op did not create")
        said.results = [self._number(value.key) for value in results]
        said.operators = [
            [type, [None if key is None else self._number(key) for key in keys], *rest]
            for type, keys, *rest in said.operators
        ]
        return said

    def _number(self, key: tuple[str, int]) -> int:
        kind, number = key
        return number if kind == "input" else len(self.said.inputs) + number


def said_by(cls: Any, args: tuple[Any, ...]) -> Said | None:
    """Returns the operators that the method ``symbolic`` of ``cls`` creates for a call. Raises
    UnsupportedError TM2017.

    The result is None if the symbolic calls functions of ``torch.onnx``, which only write into graphs of
    TorchScript.
    """
    g = SymbolicGraph()
    given = [g._value(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
    try:
        return g.finished(cls.symbolic(g, *given))
    except Exception as error:
        if isinstance(error, TorchScriptOnly) or _in_torch_onnx(error):
            return None
        raise UnsupportedError(
            "TM2017",
            f"the symbolic of {cls.__name__} failed: {type(error).__name__}: {error}",
            source=place_of(cls) if raised_at(error).line is None else raised_at(error),
        ) from error


def _in_torch_onnx(error: BaseException) -> bool:
    frames = traceback.walk_tb(error.__traceback__)
    return any(str(frame.f_globals.get("__name__")).startswith("torch.onnx") for frame, _ in frames)


def place_of(cls: Any) -> Source:
    code = getattr(inspect.unwrap(cls.symbolic), "__code__", None)
    return Source("") if code is None else Source(code.co_filename, code.co_firstlineno)


def _attribute(type: str, name: str, value: object) -> Any:
    """Converts the value of an attribute to the type of its suffix, as plain lists and numbers."""
    convert = _KINDS.get(name[-2:])
    if convert is None or len(name) < 3:
        raise TypeError(f"the attribute {name} of {type} does not end in _i, _f, _s or _t")
    if convert is _array or not isinstance(value, (list, tuple)):
        return convert(value)
    return [convert(item) for item in value]


def _array(value: object) -> list[Any]:
    array = array_of(torch.as_tensor(value))
    return ["tensor", array.dtype.name, list(array.shape), list(leaves(array.reshape(-1).tolist()))]


_KINDS: dict[str, Callable[[Any], Any]] = {"_i": int, "_f": float, "_s": str, "_t": _array}
