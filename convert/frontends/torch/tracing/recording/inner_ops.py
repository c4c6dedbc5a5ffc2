"""Records the ATen ops inside of functions that have no adapter."""

from __future__ import annotations

from inspect import ismethod
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tmconvert.errors import TmconvertError, UnsupportedError
from tmconvert.frontends.torch.names import Name
from tmconvert.frontends.torch.tracing.data import access
from tmconvert.frontends.torch.tracing.recording import op_traits
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place
from tmconvert.frontends.torch.tracing.sizes.integers import TRACED
from tmconvert.frontends.torch.tracing.special.quantized import made_of_tensors
from tmconvert.frontends.torch.tracing.special.upcast_to_float32 import float8_steps, widened
from tmconvert.ir.tree import leaves
from tmconvert.ir.types import Args, Kwargs

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder


class Inside(TorchDispatchMode):
    """Records the ATen ops inside a function that has no adapter."""

    def __init__(self, recorder: Recorder, name: Name) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.recorder = recorder
        self.name = name
        self.empty: dict[int, object] = {}  # the Values of new tensors, which no recorded call has filled yet
        self._results: list[Any] = []  # kept alive, so that their identities stay unique

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # it would import torch._dynamo, which takes seconds, while constructors are replaced

    def __torch_dispatch__(self, func: Any, types: Any, args: Args = (), kwargs: Kwargs | None = None) -> Any:
        recorder, kwargs = self.recorder, kwargs or {}
        if recorder.is_busy:
            return func(*args, **kwargs)
        cls = next((each for each in types if made_of_tensors(each)), None)
        if cls is not None:
            return self._called_of_class(cls, func, types, args, kwargs)
        func, args, kwargs = widened(recorder, func, args, kwargs)
        steps = float8_steps(recorder, func, args, kwargs) or op_traits.body_call(func, args, kwargs)
        if steps is not None:
            with self:
                return steps()
        if recorder.fills_unseen and func is torch.ops.aten.empty.memory_format:
            self._results.append(recorder.run(lambda: func(*args, **kwargs).zero_()))  # the same in each run
            return self._results[-1]  # captured when it is used
        if func.namespace == "prims":
            recorder.load_dynamo()
        name = recorder._name(func)
        special = access.special(name)
        if special is not None:
            return self._looked(special, func, args, kwargs)
        if not op_traits.knows(name) or op_traits.is_number(func, args):
            decomposed = op_traits.decomposition(func)
            if decomposed is not None:
                if getattr(decomposed, "__module__", "").startswith("torch._") and not ismethod(decomposed):
                    recorder.load_dynamo()  # which wrappers of references import when they are first called
                with self:
                    result = decomposed(*args, **kwargs)
                if result is not NotImplemented:
                    return result
            if _is_constant(recorder, func, args, kwargs) and not func._schema.is_mutable:
                self._results.append(recorder.origins.add(recorder.run(func, *args, **kwargs)))
                return self._results[-1]  # captured when it is used
        with torch._C.DisableTorchFunction():
            result = recorder.record(name, func, args, kwargs)
        if func is torch.ops.aten.empty.memory_format:
            self.empty[id(result)] = recorder.value_of(result)
        self._results.append(result)
        return result

    def captured(self, result: object) -> object:
        """Captures new tensors of a result that no recorded call has filled: C++ did, past all modes."""
        recorder = self.recorder
        for leaf in leaves(result) if self.empty else ():
            if isinstance(leaf, torch.Tensor) and self.empty.get(id(leaf)) is recorder.value_of(leaf):
                recorder.aliases.add(leaf, recorder.capture(recorder.origins.add(leaf)))
        return result

    def _called_of_class(
        self, cls: type, func: object, types: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """Records the calls inside of a tensor subclass's own implementation of an ATen op."""
        implementation: Any = cls.__torch_dispatch__  # type: ignore[attr-defined]
        try:
            with self:
                return implementation(func, types, args, kwargs)
        except NotImplementedError as error:
            raise UnsupportedError(
                "TM2013",
                f"{cls.__name__} does not implement {func}: it cannot be traced",
                source=user_place(),
                notes=[("help", "call the module in PyTorch first, which shows the same error")],
            ) from error

    def _looked(self, special: access.Special, func: object, args: tuple[object, ...], kwargs: Kwargs) -> Any:
        try:
            return special(self.recorder, func, args, kwargs)
        except TmconvertError as error:
            self.recorder.failure = error  # for TorchScript, which loses it
            raise


def _is_constant(recorder: Recorder, func: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Whether all tensors of a call are the same in every run, and it uses no other value of the run.

    A call without tensors, such as of a window of a fixed size, is constant unless it draws random numbers.
    """
    if not any(isinstance(leaf, (torch.Tensor, *TRACED)) for leaf in leaves((args, kwargs))):
        return torch.Tag.nondeterministic_seeded not in func.tags
    tensors = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    if recorder.follow_sizes or not tensors:
        return False
    values = [recorder.value_of(tensor) for tensor in tensors]
    return not any(value.depends or value.is_open for value in values)
