"""Sizes that are ``Dim.AUTO`` or ``Dim.DYNAMIC``: trials show which of them are the same size."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tmconvert.errors import TmconvertError
from tmconvert.frontends.torch.request import AutomaticSize, FreeSize
from tmconvert.frontends.torch.tracing.recording.structure import Tensors
from tmconvert.ir import TracedModule

Sizes = Mapping[str, Mapping[int, str]]


def traced_with(
    trace: Callable[[Sizes | None], TracedModule], sizes: Sizes | None, tensors: Tensors
) -> TracedModule:
    """Traces with sizes that differ from one another; where the module fails with these, with equal ones.

    Automatic sizes that are equal in the example become one size, first those of one axis, then all. Then
    those of ``Dim.AUTO`` with which the module fails are static. Raises the error of the first attempt.
    """
    names = {name for axes in (sizes or {}).values() for name in axes.values()}
    if not any(isinstance(name, AutomaticSize) for name in names):
        return trace(sizes)
    assert sizes is not None
    merged = _merged(sizes, tensors, by_axis=True)
    forms = [sizes, merged, _merged(sizes, tensors, by_axis=False), _without(merged, names)]
    traced: TracedModule | TmconvertError
    errors: list[TmconvertError] = []
    for number, form in enumerate(forms):
        if form in forms[:number]:
            continue
        traced = _attempt(trace, form)
        if not isinstance(traced, TmconvertError):
            break
        errors.append(traced)
    else:
        raise errors[0]
    if form != forms[-1] or not errors:
        return traced
    static: set[str] = {
        name for axes in merged.values() for name in axes.values() if isinstance(name, FreeSize)
    }
    for name in sorted(static):
        found = _attempt(trace, _without(merged, static - {name}))
        if not isinstance(found, TmconvertError):
            static, traced = static - {name}, found
    return traced


def _attempt(trace: Callable[[Sizes | None], TracedModule], sizes: Sizes) -> TracedModule | TmconvertError:
    try:
        return trace(sizes)
    except TmconvertError as error:
        if error.code not in ("TM2030", "TM2031"):
            raise
        return error


def _merged(sizes: Sizes, tensors: Tensors, *, by_axis: bool) -> Sizes:
    merged: dict[tuple[int, int | None], str] = {}
    made: dict[str, dict[int, str]] = {}
    for name, axes in sizes.items():
        shape = tensors[name].shape if name in tensors else ()
        made[name] = {}
        for axis, size in axes.items():
            is_free = isinstance(size, AutomaticSize) and -len(shape) <= axis < len(shape)
            key = shape[axis] if is_free else 0, axis % len(shape) if is_free and by_axis else None
            made[name][axis] = merged.setdefault(key, size) if is_free else size
    return made


def _without(sizes: Sizes, static: set[str]) -> Sizes:
    """Returns the sizes without those of ``Dim.AUTO`` that are ``static``."""
    return {
        name: {
            axis: size for axis, size in axes.items() if size not in static or not isinstance(size, FreeSize)
        }
        for name, axes in sizes.items()
    }
