"""Finds outputs whose comparison is not informative: constant, NaN, or empty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def vacuous_outputs(cases: Sequence[Sequence[np.ndarray]], names: Sequence[str]) -> dict[str, str]:
    """Returns by name a description of such outputs, from the expected outputs of all test cases."""
    found = {}
    for name, *arrays in zip(names, *cases, strict=True):
        what = untold_output(arrays)
        if what:
            found[name] = what
    return found


def vacuous_notes(vacuous: dict[str, str]) -> list[str]:
    return [
        f"the output {name} is {what} for all inputs tried, so that its comparison shows nothing"
        for name, what in vacuous.items()
    ]


def untold_output(arrays: Sequence[np.ndarray]) -> str:
    """Describes an output that is uninformative in all cases; a non-zero single element is informative."""
    elements = np.concatenate([np.asarray(array).reshape(-1) for array in arrays])
    if not elements.size:
        return "empty"
    if elements.dtype.kind == "f" and not np.isfinite(elements).any():
        return "NaN" if np.isnan(elements).all() else "NaN or infinite"
    if (
        elements.dtype.kind == "f"
        and (elements == elements[0]).all()
        and (elements.size > 1 or not elements[0])
    ):
        return f"constant ({elements[0]:.6g})"
    return ""
