"""Everything that can be traced, whatever it comes as."""

from __future__ import annotations

import sys
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import ml_dtypes
import numpy as np
import torch

from ....errors import LoadError, TmconvertError
from ....ir import TracedModule
from ....source import Source
from ..door import inputs_needed
from ..request import Tracing
from .borrowed import same_randomness
from .factory import importable_folder, made_by
from .tracer import trace_module
from .users_code import raise_users_own, shown


def trace_object(model: Any, tracing: Tracing) -> TracedModule:
    """A module, or a function of tensors."""
    if not tracing.has_inputs and isinstance(model, torch.nn.Module):
        raise inputs_needed()
    return _trace(model, *_tensors(tracing), tracing)


def trace_script(path: str, tracing: Tracing) -> TracedModule:
    """A file of TorchScript; code in it runs. Raises LoadError TM1026."""
    if not tracing.has_inputs:
        raise inputs_needed()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch says that TorchScript is deprecated
            script = torch.jit.load(path, map_location="cpu")
    except Exception as error:  # of many kinds, for files that are damaged or too new
        raise unreadable(path, error) from error
    return _trace_of_user(script, *_tensors(tracing), tracing)


def unreadable(path: str, error: Exception) -> LoadError:
    return LoadError("TM1026", f"PyTorch cannot read the file: {shown(error)}", source=Source(path))


def trace_factory(name: str, tracing: Tracing) -> TracedModule:
    """What ``package.module:factory`` makes; ``tracing``'s inputs go before those of the factory."""
    with same_randomness(), importable_folder():
        module, args, kwargs = made_by(name)
        if tracing.has_inputs:
            args, kwargs = _tensors(tracing)
        if not args and not kwargs:
            raise inputs_needed()
        return _trace_of_user(module, args, kwargs, tracing)


def _trace_of_user(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tracing: Tracing
) -> TracedModule:
    """The trace of a model that is not the caller's code: what it raises becomes UnsupportedError TM2014."""
    try:
        return _trace(module, args, kwargs, tracing)
    except TmconvertError:
        raise
    except Exception as error:
        raise_users_own(module, args, kwargs, error)
        raise


def _trace(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tracing: Tracing) -> TracedModule:
    with _uncompiled():
        return trace_module(
            getattr(module, "_orig_mod", module),  # of torch.compile
            args,
            kwargs,
            dynamic_shapes=tracing.dynamic_shapes,
            freeze_control_flow=tracing.freeze_control_flow,
        )


def _uncompiled() -> AbstractContextManager[Any]:
    """What torch.compile has wrapped runs as it was written."""
    if "torch._dynamo" not in sys.modules:  # nothing is compiled then, and importing it takes seconds
        return nullcontext()
    return torch.compiler.set_stance("force_eager")


def _tensors(tracing: Tracing) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The example inputs with tensors in the place of arrays."""
    return (
        tuple(_tensor(value) for value in tracing.args),
        {name: _tensor(value) for name, value in tracing.kwargs.items()},
    )


def _tensor(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    array = np.array(value)  # a copy: torch does not take arrays that must not be written to
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
