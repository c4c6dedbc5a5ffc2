"""The result of ``tmconvert stream``: what a step file takes and returns, and how it was compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tmconvert.streaming.builder import END
from tmconvert.streaming.step_model import StepModel


@dataclass(frozen=True)
class StreamReport:
    """Description of a step file and of its comparison.

    ``chunk`` is the number of frames of the first input over time that a step takes, or where it ``is_open``
    the number of which each chunk is a multiple. ``inputs`` are the axes and frames of all of them by name.
    ``outputs`` have axis, frames and delay: frame i of step t is frame ``t * frames + i - delay`` of the
    offline output. ``states`` are inputs, zeros at first, by name with their shapes; ``NAME_next`` are the
    outputs with their next values. ``needs_end`` states that the input ``end`` takes the number of frames of
    the stream, 0 until it is known; ``has_variables`` that states are variables of the file, which a new
    interpreter has at zero. ``max_error`` is the largest error of the joined outputs, relative to the
    largest value, over streams of ``lengths`` frames.

    >>> print(tmconvert.stream("net.tm", "step.onnx"))  # doctest: +SKIP
    """

    paths: tuple[Path, ...]
    chunk: int
    is_open: bool
    inputs: dict[str, tuple[int, int]]
    outputs: dict[str, tuple[int, int, int]]
    states: dict[str, tuple[int, ...]]
    needs_end: bool
    has_variables: bool
    max_error: float
    lengths: tuple[int, ...]

    @classmethod
    def of(
        cls,
        paths: tuple[Path, ...],
        step: StepModel,
        max_error: float,
        lengths: list[int],
        *,
        has_variables: bool = False,
    ) -> StreamReport:
        """Describes a step model that was written to ``paths``."""
        return cls(
            paths,
            step.least,
            step.is_open,
            {name: (axis, step.at(step.frames[name], step.least)) for name, axis in step.axes.items()},
            {
                name: (each.axis, step.at(each.frames, step.least), each.delay)
                for name, each in step.outputs.items()
            },
            {name: tuple(node.type.shape) for name, node in step.states.items()},
            step.has_end,
            has_variables,
            max_error,
            tuple(lengths),
        )

    @property
    def delay(self) -> int:
        """Returns the largest delay of an output, in frames of that output."""
        return max(delay for _, _, delay in self.outputs.values())

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """Returns the text of the command."""
        yield ", ".join(map(str, self.paths))
        times = "any number of times " if self.is_open else ""
        for name, (axis, frames) in self.inputs.items():
            yield f"  input {name}: {times}{frames} frames along axis {axis}"
        if self.needs_end:
            yield f"  input {END}: the number of frames of the stream from its last chunk on, before that 0"
        for name, (axis, frames, delay) in self.outputs.items():
            late = f"{delay} frames late" if delay else "without delay"
            yield f"  output {name}: {times}{frames} frames along axis {axis}, {late}"
        for name, shape in self.states.items():
            what = f"variable {name}" if self.has_variables else f"state {name} -> {name}_next"
            yield f"  {what}: {list(shape)}, zeros at first"
        streams = " and ".join(map(str, self.lengths))
        yield f"  equal to the offline model over {streams} frames: the error is {self.max_error:.2g}"

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON document of the command."""
        return {
            "paths": [str(path) for path in self.paths],
            "chunk": self.chunk,
            "is_open": self.is_open,
            "inputs": {
                name: {"axis": axis, "frames": frames} for name, (axis, frames) in self.inputs.items()
            },
            "outputs": {
                name: {"axis": axis, "frames": frames, "delay": delay}
                for name, (axis, frames, delay) in self.outputs.items()
            },
            "states": {name: list(shape) for name, shape in self.states.items()},
            "needs_end": self.needs_end,
            "has_variables": self.has_variables,
            "max_error": self.max_error,
            "lengths": list(self.lengths),
        }
