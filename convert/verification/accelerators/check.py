"""Compares what an accelerator computes with what the processor computes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.ir.types import NamedArrays
from tmconvert.profiles.files import operations_of_file
from tmconvert.profiles.judge import lines_by_rule, violations
from tmconvert.profiles.registry import profile_named, profile_names
from tmconvert.verification.accelerators.accelerator import Accelerator, Outcome
from tmconvert.verification.runtime import Runtime

TOLERANCE = 1e-3  # of the largest value of an output in floating point
STEPS = 1.0  # of the scale of an output in 8 or 16 bits; indices and counts are equal
SHARE = 1e-3  # of such an output's elements may differ by more, where a step between layers decides
MOST_OPERATORS = 6  # that a note names


def check_on(
    accelerators: Sequence[Accelerator],
    runtime: Runtime,
    paths: Sequence[Path],
    inputs: NamedArrays,
    outputs: Sequence[str],
    option: str = "--verify-on",
) -> list[str]:
    """Runs the files on each accelerator and on ``runtime``, and returns a note for each.

    Raises VerificationError TM4007 where an output differs, or the accelerator ends its process; TM4003 where
    there is no device.
    """
    expected = runtime.run(paths, inputs, outputs) if accelerators else []
    named = dict(zip(outputs, expected, strict=True)) if accelerators else {}
    return [
        _note(each, paths[0], each.run(paths[0], inputs, outputs), named, option) for each in accelerators
    ]


def _note(accelerator: Accelerator, path: Path, made: Outcome, expected: NamedArrays, option: str) -> str:
    name = accelerator.name
    if made.ended:
        message = f"{name} does not run the file, which runs on the processor: {made.ended}"
        raise _error(message, accelerator, path, option)
    places = ", ".join(made.elsewhere[:MOST_OPERATORS])
    places += f", ... ({len(made.elsewhere)} in all)" if len(made.elsewhere) > MOST_OPERATORS else ""
    if made.outputs is None:
        return f"{name} refuses the file: {places or made.refused}"
    worst, text, difference, is_exceeded = "", "", -1.0, False
    for (output, array), found in zip(expected.items(), made.outputs, strict=True):
        size, limit = difference_of(np.asarray(found), array)
        if size / limit > difference:
            worst, difference, is_exceeded = output, size / limit, size > limit
            text = (
                f"{size:.2g} of its largest value"
                if limit == TOLERANCE
                else f"{size:.0f} step{'s' * (size != 1)}"
            )
    if is_exceeded:
        message = f"{name} computes the output {worst} wrongly: it differs from the processor's by {text}"
        raise _error(message, accelerator, path, option)
    agrees = "agrees with the processor" + (f" within {text}" if " step" in text and difference else "")
    if not made.is_whole:
        return f"{name} {agrees}; on the processor ran: {places or 'some operators'}"
    return f"{name} runs the whole file, and {agrees}"


def difference_of(found: np.ndarray, expected: np.ndarray) -> tuple[float, float]:
    """Returns how far two arrays are apart, and the limit: relative for floats, in steps for integers.

    NaN and infinity must be at the same positions.
    """
    if found.shape != expected.shape:
        return float("inf"), TOLERANCE
    if expected.dtype.kind in "iub":
        gaps = np.sort(np.abs(found.astype(np.int64) - expected.astype(np.int64)).reshape(-1))
        is_scaled = expected.dtype.kind != "b" and expected.dtype.itemsize <= 2
        counted = gaps[: gaps.size - int(SHARE * gaps.size)] if is_scaled else gaps
        return float(counted.max(initial=0)), STEPS if is_scaled else 0.5
    a, b = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return float("inf"), TOLERANCE
    largest = float(np.abs(b[finite]).max(initial=0.0))
    return float(np.abs(a - b)[finite].max(initial=0.0)) / max(largest, 1e-6), TOLERANCE


def known_defects(accelerator: str, path: Path) -> list[str]:
    """Returns a line for each rule of the accelerator's profile by which it computes the file wrongly."""
    if accelerator not in profile_names():
        return []
    profile, file = profile_named(accelerator), operations_of_file(path)
    found = violations(profile, [*file.main, *file.inner]) if file.target in profile.targets else []
    return lines_by_rule([each for each in found if each.effect == "wrong"])


def _error(message: str, accelerator: Accelerator, path: Path, option: str) -> VerificationError:
    name = accelerator.name
    notes = [("known defect", line) for line in known_defects(name, path)]
    text = (
        f"the file is right on the processor; convert without {option} {name} to write it all the same"
        if option == "--verify-on"
        else f"verify without {option} {name} to compare on the processor alone"
    )
    return VerificationError("TM4007", message, notes=[*notes, ("help", text)])
