"""Reruns the source module at other sizes to compute reference outputs for a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

from tmconvert.frontends.torch.tracing.recording.structure import Tensors
from tmconvert.frontends.torch.tracing.sizes.validate_dynamic_shapes import resized
from tmconvert.ir.traced_module import Example, Original

SMALLER = (2.0**-2, 2.0**-6, 2.0**-20, 2.0**-40)  # factors for inputs whose outputs overflow
# input tensors by name; what the module computes for them, and where its calls differ from the trace or ""
Run = Callable[[Mapping[str, torch.Tensor]], tuple[Example, str]]


class Rerun:
    """Runs a module at sizes other than the example's, once for each set of shapes.

    ``first`` has the outputs of the traced run. If the module no longer returns these, as after further
    training, it is not run at other sizes. ``original`` is the module with nothing recorded, which computes
    the outputs that are returned.
    """

    def __init__(self, run: Run, inputs: Tensors, first: Example, original: Original | None) -> None:
        self._run, self._inputs, self._first, self._original = run, inputs, first, original
        self._known: dict[tuple[tuple[int, ...], ...], Example | str] = {}
        self._others: set[tuple[tuple[int, ...], ...]] = set()  # shapes at which other calls are made
        self._scaled: set[tuple[tuple[int, ...], ...]] = set()  # shapes at which smaller floats were tried
        self._by_itself: set[tuple[tuple[int, ...], ...]] = set()  # shapes at which ``original`` was run
        self._is_same: bool | None = None

    def remember(self, example: Example, difference: str) -> None:
        """Stores the inputs and outputs of a run of the tracer, and whether its calls differ."""
        self._known.setdefault(_shapes(example), example)
        self._compared(example, difference)

    def at(self, shapes: Sequence[tuple[int, ...]]) -> Example | str | None:
        """Returns inputs of these shapes, in order, and outputs; or the error that the module raises for
        them.

        None if the inputs have other ranks, or the module has changed.
        """
        tensors = list(self._inputs.values())
        if [len(shape) for shape in shapes] != [tensor.dim() for tensor in tensors]:
            return None
        key = tuple(map(tuple, shapes))
        if key not in self._known or (_overflows(self._known[key]) and key not in self._scaled):
            if not self._is_unchanged():
                return None
            self._known[key] = self._at_sizes(key)
            self._scaled.add(key)
            self._by_itself.discard(key)
        found = self._known[key]
        if isinstance(found, Example) and found.outputs and self._original and key not in self._by_itself:
            self._by_itself.add(key)
            made = self._original.run(found.inputs)
            if made is not None and len(made) == len(found.outputs):
                found = self._known[key] = found._replace(outputs=tuple(made))
        return found

    def _at_sizes(self, shapes: tuple[tuple[int, ...], ...]) -> Example | str:
        """Runs the module at these shapes, on smaller floats where what is finite at first overflows.

        PyTorch accumulates some sums and products in float64, so that what follows an infinity is not what a
        file in float32 computes.
        """
        resized = {
            name: _with_shape(tensor, shape)
            for (name, tensor), shape in zip(self._inputs.items(), shapes, strict=True)
        }
        found = self._known[shapes] if shapes in self._known else self._tried(resized)
        for factor in SMALLER if not _overflows(self._first) else ():
            if not _overflows(found):
                break
            again = self._tried({name: _scaled(tensor, factor) for name, tensor in resized.items()})
            found = again if isinstance(again, Example) else found
        return found

    def is_same_at(self, shapes: Sequence[tuple[int, ...]]) -> bool:
        """Whether the module runs at these shapes and makes the calls that were recorded."""
        return isinstance(self.at(shapes), Example) and tuple(map(tuple, shapes)) not in self._others

    def _tried(self, inputs: Tensors) -> Example | str:
        try:
            example, difference = self._run(inputs)
            self._compared(example, difference)
            return example
        except (Exception, SystemExit) as error:  # the module's own, at a size that it does not take
            return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"

    def _compared(self, example: Example, difference: str) -> None:
        if difference:
            self._others.add(_shapes(example))

    def _is_unchanged(self) -> bool:
        if self._is_same is None:
            again = self._tried(self._inputs)
            made = (again.outputs or ()) if isinstance(again, Example) else ()
            first = self._first.outputs or ()
            self._is_same = isinstance(again, Example) and len(made) == len(first)
            if self._is_same:
                pairs = zip(made, first, strict=True)
                self._is_same = all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)
        return self._is_same


def _overflows(example: Example | str) -> bool:
    """Whether a run gave infinities or NaN."""
    outputs = () if isinstance(example, str) else example.outputs or ()
    return any(not np.isfinite(array).all() for array in outputs if array.dtype.kind == "f")


def _scaled(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    return tensor * factor if tensor.is_floating_point() else tensor


def _shapes(example: Example) -> tuple[tuple[int, ...], ...]:
    return tuple(array.shape for array in example.inputs)


def _with_shape(tensor: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    for axis, size in enumerate(shape):
        if tensor.shape[axis] != size:
            tensor = resized(tensor, axis, size)
    return tensor
