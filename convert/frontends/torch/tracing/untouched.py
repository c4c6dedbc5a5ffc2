"""Runs a module as PyTorch runs it, with nothing recorded: the reference for what is traced of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from tmconvert.frontends.torch.tracing.recording.arrays import array_of
from tmconvert.frontends.torch.tracing.recording.objects import opener
from tmconvert.frontends.torch.tracing.recording.state_guard import (
    StateGuard,
    same_folder,
    same_randomness,
)
from tmconvert.frontends.torch.tracing.recording.structure import plain_structure
from tmconvert.frontends.torch.tracing.special.quantized import observers_at_rest
from tmconvert.frontends.torch.tracing.special.upcast_to_float32 import wide_state
from tmconvert.ir.tree import leaves

Outputs = tuple[np.ndarray, ...]
MOST_SAVED = 1 << 30  # bytes of parameters: a second copy of larger ones may not fit, and few modules write to them


class UntouchedModule:
    """A module, or a function of tensors, that runs by itself; see ``ir.traced_module.Original``.

    Its state, the random number generators and the current folder are afterwards what they were before.
    ``clone`` copies the arguments, with other tensors in the place of some, by their ids; ``inputs`` are these
    tensors by name. ``name`` is that of the program that runs the module.
    """

    def __init__(
        self,
        module: Callable[..., Any],
        clone: Callable[[Mapping[int, torch.Tensor]], Any],
        inputs: Mapping[str, torch.Tensor],
    ) -> None:
        self.name = f"PyTorch {torch.__version__}"
        self._module, self._clone, self._inputs = module, clone, inputs
        self._owners = list(_owners(module))
        self._modules = list(
            {id(each): each for owner in self._owners if _is_module(owner) for each in owner.modules()}.values()
        )
        self._modes = [each.training for each in self._modules]
        self.first = self.outputs({})
        self._is_same: bool | None = None  # as it was when it was traced

    def outputs(self, others: Mapping[str, torch.Tensor]) -> Outputs | None:
        """Returns the outputs, with other inputs by name; None where the module raises an error.

        Gradients are followed only where the module needs them, as it then holds all activations.
        """
        replaced = {id(self._inputs[name]): tensor for name, tensor in others.items()}
        for follows_gradients in (False, True):
            with suppress(Exception, SystemExit), self._as_it_is(follows_gradients):
                args, kwargs = self._clone(replaced)
                made = leaves(plain_structure(self._module(*args, **kwargs), opener("returns")))
                tensors = [leaf for leaf in made if isinstance(leaf, torch.Tensor)]
                if not any(tensor.is_complex() for tensor in tensors):
                    return tuple(array_of(tensor).copy() for tensor in tensors)
        return None

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Returns the outputs for arrays in order; None where the module raises, or is no longer the same."""
        tensors = list(self._inputs.values())
        if [array.ndim for array in inputs] != [tensor.dim() for tensor in tensors] or not self._is_unchanged():
            return None
        pairs = zip(self._inputs.items(), inputs, strict=True)
        others = {
            name: torch.from_numpy(np.array(array)).to(tensor.device, tensor.dtype)
            for (name, tensor), array in pairs
        }
        made = self.outputs(others)
        return None if made is None else list(made)

    def _is_unchanged(self) -> bool:
        if self._is_same is None:
            again = self.outputs({})
            self._is_same = again is not None and self.first is not None and are_equal(again, self.first)
        return self._is_same

    @contextmanager
    def _as_it_is(self, follows_gradients: bool) -> Iterator[None]:
        """Restores all that a run changes, and gives the modules the modes that they were traced in."""
        from tmconvert.frontends.torch.tracing.module_run import ONE_AT_A_TIME

        guard = StateGuard()
        with ExitStack() as stack:
            stack.enter_context(ONE_AT_A_TIME)
            for context in (torch.set_grad_enabled(follows_gradients), same_folder(), same_randomness()):
                stack.enter_context(context)
            for tensor in _savable(guard.add_modules(self._owners + self._modules)):
                guard.about_to_write(tensor)
            if follows_gradients:
                guard.about_to_differentiate()
            stack.callback(guard.restore)
            stack.enter_context(wide_state(self._module))
            stack.enter_context(observers_at_rest(self._modules))
            for each, mode in zip(self._modules, self._modes, strict=True):
                if each.training != mode:
                    each.training = mode
            yield


def are_equal(ones: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    """Whether two runs gave the same, bit for bit."""
    return len(ones) == len(others) and all(
        np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        for one, other in zip(ones, others, strict=True)
    )


def _savable(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Returns the tensors that can be copied and put back; without the parameters where these are large."""
    dense = [each for each in tensors if each.layout == torch.strided and not each.is_meta]
    parameters = {id(each) for each in dense if isinstance(each, torch.nn.Parameter)}
    is_large = sum(each.nbytes for each in dense if id(each) in parameters) > MOST_SAVED
    return [each for each in dense if not (is_large and id(each) in parameters)]


def _is_module(value: object) -> bool:
    return isinstance(value, torch.nn.Module)


def _owners(module: Any) -> Iterator[Any]:
    """Yields what holds state: the module, and what a function, or a method, refers to."""
    if _is_module(module):
        yield module
        return
    yield from (each for each in (getattr(module, "__self__", None),) if hasattr(each, "__dict__"))
    with suppress(TypeError, ValueError):
        found = inspect.getclosurevars(inspect.unwrap(module))
        held = {**found.globals, **found.nonlocals}
        yield from filter(_is_module, held.values())
        yield SimpleNamespace(**held)
