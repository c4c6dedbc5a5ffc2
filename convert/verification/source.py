"""A quantized model with all that it rounds, beside what its framework computed.

A file in integers is compared with the source's graph, layer by layer, where it does not matter what else
was rounded before. Whether that graph is the source's own computation shows here, if it was traced.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import TmconvertError
from ..ir import TracedModule
from ..ir.tree import leaves

_LEAST = 10.0  # decibels: steps that fall to the other side cost less, but for a model in which they grow


def beside_source(module: TracedModule) -> list[str]:
    """A note if the outputs of the example are far from what the reference kernels give; else nothing."""
    if module.example is None:
        return []
    try:
        made = [leaf for leaf in leaves(module(*module.example.inputs)) if isinstance(leaf, np.ndarray)]
    except TmconvertError:
        return []
    pairs = list(zip(made, module.example.outputs, strict=False))
    ratio = min((_ratio(*pair) for pair in pairs if pair[1].dtype.kind == "f"), default=math.inf)
    if ratio >= _LEAST:
        return []
    return [
        f"the source's framework computed something else for the example: the ratio of signal to noise is "
        f"{ratio:.1f} dB. Its kernels for integers may be at fault, or steps that grow from layer to layer"
    ]


def _ratio(made: np.ndarray, wanted: np.ndarray) -> float:
    """Of the signal to what is off, in decibels."""
    if made.shape != wanted.shape:
        return -math.inf
    signal = wanted.astype(np.float64)
    noise = float(np.sum(np.square(made - signal)))
    power = (
        float(np.sum(np.square(signal - np.mean(signal)))) if signal.size > 1 else float(signal.sum() ** 2)
    )
    return 10 * math.log10(max(power, 1e-30) / noise) if noise else math.inf
