"""Records what a module of PyTorch calls while it runs, also where it cannot be traced."""

from __future__ import annotations

import enum
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from tmconvert.errors import UsageError
from tmconvert.frontends.torch.names import name_of
from tmconvert.frontends.torch.request import Tracing
from tmconvert.frontends.torch.tracing.programs.factory import importable_folder, made_by
from tmconvert.frontends.torch.tracing.recording.modes import in_evaluation
from tmconvert.frontends.torch.tracing.recording.state_guard import same_randomness
from tmconvert.frontends.torch.tracing.sources import example_tensors
from tmconvert.frontends.torch.written_calls import (
    SMALL,
    Call,
    Code,
    NoForm,
    Program,
    Value,
    map_values,
    values_in,
)

# what reads the data of a tensor; other calls without a tensor among their results are of its type
_READS = frozenset(
    ("item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "__complex__", "__array__")
)
_OPERATORS = frozenset(("__get__", "__set__"))


class EagerCalls(TorchFunctionMode):
    """Records calls of functions of torch and methods of tensors in its block.

    >>> with EagerCalls() as recorder:  # doctest: +SKIP
    ...     module(x)
    >>> len(recorder.program.calls)  # doctest: +SKIP
    12
    """

    def __init__(self) -> None:
        super().__init__()
        self.program = Program()
        self._held: dict[int, tuple[object, Value]] = {}  # tensors stay alive: ids of dead ones recur
        self._made = set[int]()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = _versions((args, kwargs))
        try:
            call = self._call(func, args, kwargs or {})
        except NoForm:
            call = None
        result = func(*args, **(kwargs or {}))
        is_read = name_of(func).text.rpartition(".")[2] in _READS or ".__set__" in name_of(func).text
        found = map_values(self._value, result) if _tensors(result) else None
        changes = before != _versions((args, kwargs))
        if call is not None and (found is not None or is_read or changes):
            self.program.calls.append(call._replace(results=found))
            self._made |= {each.number for each in values_in(found)}
        return result

    def name_inputs(self, tree: object) -> None:
        """Makes the tensors of a tree inputs: what is not is a constant of the module."""
        for each in _tensors(tree):
            self._made.add(self._value(each).number)

    def _call(self, func: Any, args: Any, kwargs: Any) -> Call:
        name = name_of(func)
        text = name.text
        if name.is_method and getattr(func, "__name__", "") == "__get__":
            text = f".{text}"
        elif not name.is_method:
            if not text.startswith("torch"):
                raise NoForm(text)
            if text.startswith("torch.ops.torchvision"):
                self.program.imports.add("torchvision")
        taken = map_values(self._value, (tuple(args), dict(kwargs)))
        for each in values_in(taken):
            if each.number not in self._made:
                self._add_constant(each)
        return Call(text, name.is_method, taken[0], taken[1], results=None)

    def _add_constant(self, value: Value) -> None:
        if value.number in self.program.constants:
            return
        tensor = next(held for held, number in self._held.values() if number == value)
        assert isinstance(tensor, torch.Tensor)
        is_small = tensor.numel() <= SMALL and not tensor.dtype.is_complex
        with torch._C.DisableTorchFunction():
            held = tensor.detach().float() if tensor.dtype == torch.bfloat16 else tensor.detach()
            self.program.constants[value.number] = held.cpu().numpy().copy() if is_small else None

    def _value(self, leaf: object) -> Any:
        """Returns a leaf as calls hold it. Raises NoForm where it has no text."""
        if not isinstance(leaf, torch.Tensor):
            return _plain(leaf)
        if id(leaf) not in self._held:
            value = Value(len(self._held))
            self._held[id(leaf)] = leaf, value
            with torch._C.DisableTorchFunction():
                shape = tuple(int(size) for size in leaf.shape)
                self.program.types[value.number] = str(leaf.dtype).removeprefix("torch."), shape
        return self._held[id(leaf)][1]


def _plain(leaf: object) -> Any:
    if leaf is None or leaf is Ellipsis or isinstance(leaf, (bool, int, float, str, complex, Value)):
        return leaf.value if isinstance(leaf, enum.Enum) else leaf
    if isinstance(leaf, (torch.dtype, torch.memory_format, torch.layout)):
        return Code(str(leaf))
    if isinstance(leaf, torch.device):
        return Code(repr(str(leaf)))
    raise NoForm(type(leaf).__name__)


def _tensors(tree: object) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    map_values(lambda each: found.append(each) if isinstance(each, torch.Tensor) else None, tree)
    return found


def _versions(tree: object) -> list[int]:
    """Returns how often each tensor was written to."""
    with torch._C.DisableTorchFunction():
        return [0 if each.is_inference() else each._version for each in _tensors(tree)]


def program_of_factory(name: str, tracing: Tracing) -> Program:
    """Returns what the module of ``package.module:factory`` calls for its inputs. Raises LoadError."""
    with same_randomness(), importable_folder():
        module, args, kwargs = made_by(name)
        if tracing.has_inputs:
            args, kwargs = example_tensors(tracing)
        return program_of_module(module, args, kwargs, tracing.training)


def program_of_module(module: Any, args: Any, kwargs: Any, training: bool) -> Program:
    """Returns what a module calls up to its end or to an exception that it raises."""
    recorder = EagerCalls()
    recorder.name_inputs((args, kwargs))
    with in_evaluation(module, training), torch.no_grad():
        try:
            with recorder:
                module(*args, **kwargs)
        except Exception as error:
            if not recorder.program.calls:
                reason = f"{type(error).__name__}: {error}"
                raise UsageError("TM6002", f"the model cannot be run: {reason}") from error
    return recorder.program
