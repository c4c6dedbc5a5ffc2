"""Reruns the source module at other sizes to compute reference outputs for a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

from tmconvert.frontends.torch.tracing.validate_dynamic_shapes import resized
from tmconvert.ir.traced_module import Example

# input tensors by name; what the module computes for them, and where its calls differ from the trace or ""
Run = Callable[[Mapping[str, torch.Tensor]], tuple[Example, str]]


class Rerun:
    """Runs a module at sizes other than the example's, once for each set of shapes.

    ``first`` is what the run of the trace gave. A module that no longer gives that, such as one that was
    trained further, is not asked again.
    """

    def __init__(self, run: Run, inputs: Mapping[str, torch.Tensor], first: Example) -> None:
        self._run, self._inputs, self._first = run, inputs, first
        self._known: dict[tuple[tuple[int, ...], ...], Example | str] = {}
        self._others: set[tuple[tuple[int, ...], ...]] = set()  # shapes at which other calls are made
        self._is_same: bool | None = None

    def remember(self, example: Example, difference: str) -> None:
        """Stores the inputs and outputs of a run of the tracer, and whether its calls differ."""
        self._known.setdefault(_shapes(example), example)
        self._compared(example, difference)

    def at(self, shapes: Sequence[tuple[int, ...]]) -> Example | str | None:
        """Returns inputs of these shapes, in order, and outputs; or the error that the module raises for
        them.

        None where nothing can be told: the inputs have other ranks, or the module has changed.
        """
        tensors = list(self._inputs.values())
        if [len(shape) for shape in shapes] != [tensor.dim() for tensor in tensors]:
            return None
        key = tuple(map(tuple, shapes))
        if key not in self._known:
            if not self._is_unchanged():
                return None
            self._known[key] = self._tried(
                {
                    name: _with_shape(tensor, shape)
                    for (name, tensor), shape in zip(self._inputs.items(), shapes, strict=True)
                }
            )
        return self._known[key]

    def is_same_at(self, shapes: Sequence[tuple[int, ...]]) -> bool:
        """Whether the module runs at these shapes and makes the calls that were recorded."""
        return isinstance(self.at(shapes), Example) and tuple(map(tuple, shapes)) not in self._others

    def _tried(self, inputs: Mapping[str, torch.Tensor]) -> Example | str:
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


def _shapes(example: Example) -> tuple[tuple[int, ...], ...]:
    return tuple(array.shape for array in example.inputs)


def _with_shape(tensor: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    for axis, size in enumerate(shape):
        if tensor.shape[axis] != size:
            tensor = resized(tensor, axis, size)
    return tensor
