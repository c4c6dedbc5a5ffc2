"""Calibration rules for the modules that add the most quantization noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tmconvert.verification.verify import Verification

if TYPE_CHECKING:
    from tmconvert.verification.noise import Noise

WORST = 3  # modules
FINE = 40.0  # dB: a layer with less noise is not worth a rule
KINDS = ("int16x8", "float")  # that are tried, in order; the first that the target can write counts


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
        {"layer": layer.name, "text": f"{cost_text(layer)} Try", "rule": f"--rule {module}={KINDS[0]}"}
        for module, layer in worst_layers(verification).items()
    ]


def cost_text(layer: Noise) -> str:
    """Returns the noise of a layer in a sentence."""
    return f"adds the most noise of its module ({layer.local:.1f} dB)."
