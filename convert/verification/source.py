"""Compares the graph of a quantized model with its source: the file in its runtime, or recorded outputs.

A file in integers is compared with the source's graph, layer by layer, where it does not matter what else
was rounded before. Whether that graph is the source's own computation shows here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tmconvert.errors import TmconvertError, VerificationError
from tmconvert.ir import TracedModule
from tmconvert.ir.interpreter import run_module
from tmconvert.ir.tree import leaves
from tmconvert.verification.compare import compare
from tmconvert.verification.reference import Reference
from tmconvert.verification.tolerance import judged

_FAR = 0.1  # of the largest element; rounding to eight bits moves networks that were trained with it less
_LEAST = 10.0  # decibels: steps that fall to the other side cost less, but for a model in which they grow


def check_float_graph(reference: Reference, names: Sequence[str]) -> None:
    """Checks that a graph, before its calibration, computes what its source does, to the accuracy of floats.

    The outputs called ``names`` are compared for the inputs of the example, or drawn ones, and for others.
    Raises VerificationError TM4001. A source that cannot be run and has no recorded outputs is not
    compared.
    """
    if (
        (reference.original is None and not reference.has_example())
        or reference.is_random
        or reference.lacks([])
    ):
        return
    for number, case in enumerate((_first_case(reference), reference.second_case())):
        if case is None:
            continue
        given, expected = case
        is_drawn = number > 0 or not reference.has_example()
        made = reference.run(given)
        try:
            judged(reference, given, made, expected, names, is_drawn=is_drawn, is_second=number > 0)
        except VerificationError as error:
            raise VerificationError(
                error.code,
                f"the graph that was calibrated is not its source: {error.message}",
                notes=[*error.notes, ("help", "report this as a defect, with `tmconvert doctor`")],
            ) from error


def _first_case(reference: Reference) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]] | None:
    try:
        return reference.case(None)
    except (ValueError, IndexError):  # the model itself fails for the inputs
        return None


def compare_with_source(module: TracedModule) -> list[str]:
    """Returns a note if the example's outputs differ much from those of the reference kernels; else an empty
    list.
    """
    example = module.example
    if example is None or example.outputs is None:
        return []
    try:
        made = [leaf for leaf in leaves(run_module(module, example.inputs)) if isinstance(leaf, np.ndarray)]
    except TmconvertError:
        return []
    pairs = list(zip(made, example.outputs, strict=False))
    ratio = min((_ratio(*pair) for pair in pairs if pair[1].dtype.kind == "f"), default=math.inf)
    if ratio >= _LEAST:
        return []
    return [
        "the source's framework computed other outputs for the example: the signal-to-noise ratio is "
        f"{ratio:.1f} dB. Its integer kernels may be wrong, or rounding errors grow from layer to "
        "layer"
    ]


def compare_with_fake_quantized(reference: Reference, expected: Sequence[np.ndarray]) -> list[str]:
    """Returns a note if a float file differs much from the example of a fake-quantized source.

    ``expected`` are the outputs of the graph, which does not round, for the inputs of the example.
    """
    example = reference.example
    if example is None or not reference.has_example() or not reference.is_quantized():
        return []
    names = [str(number) for number in range(len(expected))]
    found = compare(expected, example.outputs or expected, names)
    off = max((each.max_error for each in found if each.tolerance), default=0.0)
    if off <= _FAR:
        return []
    return [
        f"the float file differs by {off:.0%} from the source's quantized outputs for the example, "
        "since a float file omits rounding and ranges: --quantized (quantized=True) keeps these"
    ]


def _ratio(made: np.ndarray, wanted: np.ndarray) -> float:
    """Returns the signal-to-noise ratio in decibels."""
    if made.shape != wanted.shape:
        return -math.inf
    signal = wanted.astype(np.float64)
    noise = float(np.sum(np.square(made - signal)))
    power = (
        float(np.sum(np.square(signal - np.mean(signal)))) if signal.size > 1 else float(signal.sum() ** 2)
    )
    return 10 * math.log10(max(power, 1e-30) / noise) if noise else math.inf
