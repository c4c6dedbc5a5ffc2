"""Everything that can be traced, whatever it comes as."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

from ....errors import TmconvertError
from ....ir import TracedModule
from ..door import inputs_needed
from ..request import Tracing
from .borrowed import same_randomness
from .factory import importable_folder, made_by
from .tracer import trace_module
from .users_code import raise_users_own


def trace_object(model: Any, tracing: Tracing) -> TracedModule:
    """A module, or a function of tensors."""
    if not tracing.has_inputs and isinstance(model, torch.nn.Module):
        raise inputs_needed()
    return _trace(model, *_tensors(tracing), tracing)


def trace_factory(name: str, tracing: Tracing) -> TracedModule:
    """What ``package.module:factory`` makes; ``tracing``'s inputs go before those of the factory."""
    with same_randomness(), importable_folder():
        module, args, kwargs = made_by(name)
        if tracing.has_inputs:
            args, kwargs = _tensors(tracing)
        if not args and not kwargs:
            raise inputs_needed()
        try:
            return _trace(module, args, kwargs, tracing)
        except TmconvertError:
            raise
        except Exception as error:
            raise_users_own(module, args, kwargs, error)
            raise


def _trace(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tracing: Tracing) -> TracedModule:
    return trace_module(
        module,
        args,
        kwargs,
        dynamic_shapes=tracing.dynamic_shapes,
        freeze_control_flow=tracing.freeze_control_flow,
    )


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
