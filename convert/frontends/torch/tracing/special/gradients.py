"""Records the backward passes of gradients that a module computes in forward.

Autograd runs in C++, where a TorchFunctionMode does not see it, so a gradient would be recorded as a
constant. When a module computes a gradient of an input-dependent value, it is run again: all calls that
autograd differentiates are then recorded as ATen ops, as is the backward pass itself.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch.overrides import _pop_mode_temporarily

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.names import Name
from tmconvert.frontends.torch.tracing.recording.recorder import Recorder
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place
from tmconvert.ir.tree import leaves

INSTEAD = (
    "use torch.autograd.grad under torch.enable_grad(), or torch.func.grad, write the derivative in "
    "closed form, or compute the gradient outside of the model"
)
_FUNCTORCH = "torch._functorch.eager_transforms"
# what the transforms of torch.func come down to; the last one returns a function that is called later
_TRANSFORMS = ("grad_and_value_impl", "_jvp_with_argnums", "_vjp_with_argnums")
_DUAL = "torch.autograd.forward_ad"  # forward-mode differentiation without a transform


class GradientTaken(Exception):
    """Signals that the module computes a gradient of an input-dependent value, which must be recorded."""


def is_close(made: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether both are equal up to rounding."""
    if made.dtype.kind != "f":
        return np.array_equal(made, wanted)
    with np.errstate(invalid="ignore"):
        scale = float(np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted)))
        return np.allclose(made, wanted, rtol=1e-3, atol=1e-3 * scale, equal_nan=True)


def refused(what: str) -> UnsupportedError:
    return UnsupportedError("TM2016", what, source=user_place(), notes=[("help", INSTEAD)])


@contextmanager
def calls_of_autograd(recorder: Recorder) -> Iterator[None]:
    """Records backward passes of this thread, and raises an error for other ways to differentiate."""
    variable: Any = torch.autograd.Variable
    original = variable._execution_engine
    with ExitStack() as stack:
        variable._execution_engine = _Engine(recorder, original)
        stack.callback(setattr, variable, "_execution_engine", original)
        for home, name, wrapped in (
            *((_FUNCTORCH, name, _recorded) for name in _TRANSFORMS),
            (_DUAL, "enter_dual_level", _refusing),
        ):
            module = sys.modules.get(home)
            if module is not None:
                begin = getattr(module, name)
                setattr(module, name, wrapped(recorder, begin))
                stack.callback(setattr, module, name, begin)
        yield


def _recorded(recorder: Recorder, transform: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a transform of torch.func whose ATen ops are recorded, those of its backward pass as well."""
    thread = threading.get_ident()

    def transformed(*args: Any, **kwargs: Any) -> Any:
        if recorder.is_busy or recorder.is_batched or threading.get_ident() != thread:
            return transform(*args, **kwargs)
        recorder.is_batched, recorder.tape.takes_gradients = True, True
        try:
            from tmconvert.frontends.torch.tracing.recording.inner_ops import Inside

            with Inside(recorder, Name("torch.func", False)):
                result = transform(*args, **kwargs)
        finally:
            recorder.is_batched = False
        if isinstance(result, tuple):
            return tuple(
                _recorded(recorder, each) if isinstance(each, FunctionType) else each for each in result
            )
        return result

    return transformed


def _refusing(recorder: Recorder, begin: Callable[..., Any]) -> Callable[..., Any]:
    thread = threading.get_ident()

    def begins(*args: Any, **kwargs: Any) -> Any:
        if recorder.is_busy or recorder.is_batched or threading.get_ident() != thread:
            return begin(*args, **kwargs)
        raise refused("the module differentiates in forward mode")

    return begins


class _Engine:
    """Wraps autograd's engine so that its backward passes are recorded."""

    def __init__(self, recorder: Recorder, engine: Any) -> None:
        self._recorder, self._engine = recorder, engine
        self._thread = threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run_backward(self, outputs: Any, *args: Any, **kwargs: Any) -> Any:
        recorder, run = self._recorder, self._engine.run_backward
        if recorder.is_busy or recorder.is_batched or threading.get_ident() != self._thread:
            return run(outputs, *args, **kwargs)
        recorder.guard.about_to_differentiate()
        tensors = [leaf for leaf in leaves((tuple(outputs), args)) if isinstance(leaf, torch.Tensor)]
        if not any(recorder.value_of(tensor).depends for tensor in tensors):
            return recorder.run(run, outputs, *args, **kwargs)
        if not recorder.follows_gradients:
            raise GradientTaken
        if not torch._C._len_torch_function_stack():  # it is called within a function that is traced through
            return run(outputs, *args, **kwargs)
        from tmconvert.frontends.torch.tracing.recording.inner_ops import Inside

        with _pop_mode_temporarily(), Inside(recorder, Name("backward", False)):
            return run(outputs, *args, **kwargs)
