"""Inputs on which written files are timed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tmconvert.errors import UsageError
from tmconvert.inspection.given_inputs import Inputs
from tmconvert.inspection.run_file import FileRunner, real
from tmconvert.ir.symbolic.chosen_sizes import names_of_sizes
from tmconvert.targets.written_model import with_examples

MOST_ELEMENTS = 1 << 28  # of an input: they are written to a file for the process that runs the model


def timed_inputs(
    paths: Sequence[Path], inputs: Inputs | None, sizes: Mapping[str, int] | None, signature: str = ""
) -> list[dict[str, np.ndarray]]:
    """Returns what each file is fed: ``inputs``, or zeros at these sizes, in the order of the file.

    Raises LoadError; UsageError TM6002, TM6003, TM6014.
    """
    if inputs is not None and sizes:
        raise UsageError("TM6002", "inputs have sizes of their own: omit --size (sizes)")
    runners = [FileRunner(path, warns=False, signature=signature) for path in paths]
    if inputs is not None:
        return [each.fed(each.arrays(inputs)) for each in runners]
    _check_names(sizes or {}, runners)
    first = _zeros(runners[0], sizes)
    return [first, *(_like(first, runners[0], each, sizes) for each in runners[1:])]


def _like(
    first: Mapping[str, np.ndarray], other: FileRunner, runner: FileRunner, sizes: Mapping[str, int] | None
) -> dict[str, np.ndarray]:
    """Returns zeros at the sizes of the first file where they fit, so that times can be compared."""
    reals = [real(array, info) for array, info in zip(first.values(), other.inputs, strict=True)]
    is_named = sizes and set(sizes) & set(_names(runner))
    if is_named or len(reals) != len(runner.inputs):
        return _zeros(runner, sizes)
    try:
        return runner.fed(reals)
    except UsageError:  # sizes do not fit
        return _zeros(runner, sizes)


def _check_names(sizes: Mapping[str, int], runners: Sequence[FileRunner]) -> None:
    """Raises UsageError TM6014 for names that no file has."""
    known = list(dict.fromkeys(name for runner in runners for name in _names(runner)))
    for name, number in sizes.items():
        if name not in known:
            help = (
                f"the open sizes are {', '.join(known)}"
                if known
                else "no file names its sizes: pass inputs (-i)"
            )
            raise UsageError(
                "TM6014", f"no open size of the files is called {name!r}", notes=[("help", help)]
            )
        if number < 0:
            raise UsageError("TM6014", f"the size {name} must not be negative, got {number}")


def _names(runner: FileRunner) -> list[str]:
    return names_of_sizes([info.shape or () for info in runner.inputs])


def _zeros(runner: FileRunner, sizes: Mapping[str, int] | None) -> dict[str, np.ndarray]:
    found = {}
    takes = with_examples(runner.model.input_tensors, runner.model.ranges, sizes)
    for info in takes:
        if any(extent < 0 for extent in info.example_shape):
            raise UsageError("TM6014", f"{info.name} {info.type_text} cannot be {list(info.example_shape)}")
        if math.prod(info.example_shape) > MOST_ELEMENTS:
            raise UsageError("TM6003", f"{info.name} {info.type_text} has too many elements to be timed")
        is_number = info.dtype.startswith(("float", "int", "uint", "bool", "complex"))
        found[info.name] = np.zeros(info.example_shape, info.dtype if is_number else "float32")
    return found
