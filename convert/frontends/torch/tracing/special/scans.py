"""Scans of logarithmic depth over an open size, recorded as loops over the elements.

An associative scan halves its tensors in each of ``log2(n)`` levels: the tape of another size has other
calls. A loop computes the same, and is kept (``loops/rolling.py``). Two forms are found: functions named
``associative_scan`` (jax.lax's, and its copies in libraries), which get the operator, and an
``autograd.Function`` that returns ``h[t] = a[t] * h[t - 1] + x[t]`` of its operands ``a`` and ``x``. In each
run, the results of the loop are compared with those of the code by itself.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch
from torch._C import _functorch as functorch

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder

NAME = "associative_scan"
MOST_STEPS = 512  # of a run; each is recorded
LEAST_STEPS = 3  # that show along which axis a function scans
Tensors = Sequence[torch.Tensor]
Operator = Callable[[list[torch.Tensor], list[torch.Tensor]], Any]


@contextmanager
def scan_functions(recorder: Recorder, homes: Sequence[str]) -> Iterator[None]:
    """Records the functions of this name in some modules as loops inside the context."""
    with ExitStack() as stack:
        for home in homes:
            function = vars(sys.modules[home])[NAME]
            is_own = isinstance(function, FunctionType) and function.__module__ == home
            if is_own and not function.__closure__:
                stack.enter_context(_replaced(recorder, function))
        yield


# The body that a function gets, which users may hold: ``_scan`` is found among the names of its own module.
def _body(*args: object, **kwargs: object) -> Any:
    return _scan(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


@contextmanager
def _replaced(recorder: Recorder, function: FunctionType) -> Iterator[None]:
    code, names, thread = function.__code__, function.__globals__, threading.get_ident()
    own = FunctionType(code, names, NAME, function.__defaults__)
    own.__kwdefaults__ = function.__kwdefaults__
    place = f"{NAME} of tmconvert"

    def called(*args: Any, **kwargs: Any) -> Any:
        if recorder.is_busy or threading.get_ident() != thread:
            return own(*args, **kwargs)
        given = inspect.signature(own).bind(*args, **kwargs)
        given.apply_defaults()
        operator, elements, *_ = given.arguments.values()
        made = None
        if _are_tensors(elements) and callable(operator):
            expected = recorder.run(own, *args, **kwargs)
            axes = [given.arguments[name] for name in ("axis", "dim") if name in given.arguments] or [1, 0]
            made = _as_loop(
                recorder, operator, elements, expected, axes, bool(given.arguments.get("reverse"))
            )
        return own(*args, **kwargs) if made is None else type(elements)(made)

    names[place] = called
    function.__code__ = _body.__code__.replace(co_names=(place,))
    try:
        yield
    finally:
        function.__code__ = code
        del names[place]


def _are_tensors(elements: object) -> bool:
    return isinstance(elements, (tuple, list)) and all(isinstance(each, torch.Tensor) for each in elements)


def recorded_recurrence(recorder: Recorder, forward: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Returns what an ``autograd.Function`` computes of two tensors, if that is a linear recurrence; else
    None.
    """
    is_pair = len(args) == 2 and _are_tensors(args) and args[0].shape == args[1].shape
    if not is_pair or recorder.follows_gradients or not args[1].is_floating_point():
        return None
    with suppress(RuntimeError):
        drawn = recorder.run(_drawn_like, args)  # what the example has, such as zeros, may tell nothing
        expected = recorder.run(lambda: forward(*(each.clone() for each in drawn)))
        if isinstance(expected, torch.Tensor) and expected.shape == args[0].shape:
            made = _as_loop(recorder, _linear, args, [None, expected], range(expected.dim()), False, drawn)
            return None if made is None else made[1]
    return None


def _drawn_like(tensors: Tensors) -> list[torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return [torch.rand(each.shape, generator=random, dtype=each.dtype) for each in tensors]


def _linear(state: Tensors, element: Tensors) -> list[torch.Tensor]:
    """Returns the product of the factors, and the next element of the recurrence."""
    return [element[0] * state[0], element[0] * state[1] + element[1]]


def _as_loop(
    recorder: Recorder,
    operator: Operator,
    elements: Tensors,
    expected: Sequence[torch.Tensor | None],
    axes: Sequence[int],
    is_reverse: bool,
    tried: Tensors | None = None,
) -> list[torch.Tensor] | None:
    """Records the loop along the first of the axes that gives the ``expected`` for the elements, or for those
    that are ``tried``, and returns what it computes; None where no loop does.
    """
    for axis in axes:
        steps = int.__int__(elements[0].shape[axis])
        if not LEAST_STEPS <= steps <= MOST_STEPS:
            continue
        plain = recorder.run(_looped, operator, tried or elements, axis, steps, is_reverse)
        if recorder.run(_are_close, plain, expected):
            return _looped(operator, elements, axis, steps, is_reverse)
    return None


def _looped(
    operator: Operator, elements: Tensors, axis: int, steps: int, is_reverse: bool
) -> list[torch.Tensor]:
    rows: list[Any] = []
    for t in range(steps)[:: -1 if is_reverse else 1]:
        row = [each.narrow(axis, t, 1) for each in elements]
        rows.append(operator(rows[-1], row) if rows else row)
    return [torch.cat(column[:: -1 if is_reverse else 1], axis) for column in zip(*rows, strict=True)]


def _are_close(made: Tensors, expected: Sequence[torch.Tensor | None]) -> bool:
    pairs = [(_plain(one), _plain(two)) for one, two in zip(made, expected, strict=True) if two is not None]
    scale = max((two.abs().max().item() for _, two in pairs if two.numel()), default=0.0)
    return all(
        one.shape == two.shape and torch.allclose(one, two, rtol=1e-3, atol=1e-4 * scale)
        for one, two in pairs
    )


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor of all samples inside of ``torch.vmap``."""
    while functorch.is_batchedtensor(tensor):
        axis = functorch.maybe_get_bdim(tensor)
        tensor = functorch.get_unwrapped(tensor).movedim(axis, 0)
    return tensor
