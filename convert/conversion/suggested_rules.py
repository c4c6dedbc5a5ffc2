"""Calibration rules for the modules that add the most quantization noise, and the measured gain of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.errors import InternalError, TmconvertError
from tmconvert.verification.verify import Verification

if TYPE_CHECKING:
    from tmconvert.conversion.report import Report
    from tmconvert.verification.noise import Noise

WORST = 3  # modules
FINE = 40.0  # dB: a layer with less noise is not worth a rule
KINDS = ("int16x8", "float")  # that are tried, in order; the first that the target can write counts
# converts again with further rules
Again = Callable[[Mapping[str, str]], "Report"]


def worst_layers(verification: Verification) -> dict[str, Noise]:
    """Returns the layer that adds the most noise in each of the worst modules, by the module's path."""
    worst: dict[str, Noise] = {}
    for layer in sorted(verification.noise, key=lambda each: each.local):
        if layer.step and layer.module and layer.local < FINE:
            worst.setdefault(layer.module, layer)
    return dict(list(worst.items())[:WORST])


def untried(verification: Verification) -> list[dict[str, Any]]:
    """Returns the rules to try, for the report."""
    return [
        {"layer": layer.name, "text": f"{_cost(layer)} Try", "rule": f"--rule {module}={KINDS[0]}"}
        for module, layer in worst_layers(verification).items()
    ]


def tried(verification: Verification, again: Again) -> list[dict[str, Any]]:
    """Converts once more for each of the worst modules, and returns the rules with their gain, the best
    first.

    A gain is in dB of the output with the most noise. Rules that the target cannot write are left out.
    """
    found = []
    for module, layer in worst_layers(verification).items():
        for kind in KINDS:
            gain = _gain(verification, again, {module: kind})
            if gain is not None:
                text = f"{_cost(layer)} The output gains {gain:+.1f} dB with"
                rule = f"--rule {module}={kind}"
                found.append({"layer": layer.name, "text": text, "rule": rule, "gain_db": round(gain, 2)})
                break
    return sorted(found, key=lambda each: -float(str(each["gain_db"])))


def _cost(layer: Noise) -> str:
    return f"adds the most noise of its module ({layer.local:.1f} dB)."


def _gain(verification: Verification, again: Again, rules: Mapping[str, str]) -> float | None:
    try:
        made = again(rules).verification
    except InternalError:
        raise
    except TmconvertError:
        return None
    before, after = (None if each is None else each.decibels for each in (verification, made))
    if before is None or after is None or not np.isfinite(before - after):
        return None
    return after - before
