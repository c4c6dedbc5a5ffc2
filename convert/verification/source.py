"""Compares the graph of a quantized model with its source: the file in its runtime, or recorded outputs.

A file in integers is compared with the source's graph, layer by layer, where it does not matter what else
was rounded before. Whether that graph is the source's own computation shows here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tmconvert.errors import TmconvertError, VerificationError
from tmconvert.ir import InternalGraph, QParams, TensorNode, TracedModule
from tmconvert.ir.fake_quant import rounding_of
from tmconvert.ir.interpreter import run_module
from tmconvert.ir.tree import leaves
from tmconvert.verification.compare import Comparison, compare, refuse_wrong
from tmconvert.verification.reference import CONFIRMED, Reference
from tmconvert.verification.tolerance import comparisons_of

_FAR = 0.1  # of the largest element; rounding to eight bits moves networks that were trained with it less
_LEAST = 10.0  # decibels: steps that fall to the other side cost less, but for a model in which they grow


def check_float_graph(reference: Reference, names: Sequence[str]) -> tuple[str, str]:
    """Checks that a graph, before its calibration, computes what its source does, to the accuracy of floats.

    The outputs called ``names`` are compared for the inputs of the example, or drawn ones, and for others.
    Returns what computed the source's outputs, and why that cannot be done; one or both are empty.
    Raises VerificationError TM4001.
    """
    if (
        (reference.original is None and not reference.has_example())
        or reference.is_random
        or reference.lacks([])
    ):
        return "", ""
    by, refusal = "", ""
    for number, case in enumerate((_first_case(reference), reference.second_case())):
        if case is None:
            continue
        given, expected = case
        if not number:
            by, refusal = reference.computed_by, reference.refusal
        is_drawn = number > 0 or not reference.has_example()
        made = reference.run(given)
        try:
            comparisons_of(reference, given, made, expected, names, is_drawn=is_drawn, is_second=number > 0)
        except VerificationError as error:
            raise VerificationError(
                error.code,
                f"the graph that was read is not its source: {error.message}",
                notes=[*error.notes, ("help", "report this as a defect, with `tmconvert doctor`")],
            ) from error
    return by, refusal


def _first_case(reference: Reference) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]] | None:
    try:
        return reference.case(None)
    except (ValueError, IndexError):  # the model itself fails for the inputs
        return None


def compare_with_source(module: TracedModule) -> list[str]:
    """Returns a note if the example's outputs differ much from those of the reference kernels, or []."""
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


def against_source(
    reference: Reference,
    given: Sequence[np.ndarray],
    actual: Sequence[np.ndarray],
    comparisons: Sequence[Comparison],
    notes: list[str] | None = None,
) -> list[Comparison]:
    """Returns the comparisons of a float file with what its source computes in integers, for one case.

    ``comparisons`` are those with the float graph, and the result where there is nothing else to compare
    with; ``reading`` of the reference tells it. An output may differ as much as rounding to the steps of the
    source changes it by measurement, twice that and two steps of eight bits. ``notes`` takes the
    signal-to-noise ratio. Raises VerificationError TM4001 where the source's own runtime computes something
    else.
    """
    wanted = reference.of_source(given) if reference.is_quantized() else None
    shapes = [each.shape for each in actual]
    if wanted is None or [each.shape for each in wanted] != shapes or reference.lacks([]):
        return list(comparisons)
    unrounded = reference.run(given, rounding=saturated)
    rounded = reference.run(given, rounding=lambda array, qparams: rounding_of(qparams)(array, qparams))
    found, ratios = list(comparisons), list[float]()
    # Kernels for weights in integers round their other operand, too, to steps that no tensor has.
    least = _FAR if has_quantized_weights_only(reference.graph) else 2 / 255
    for place, (made, array) in enumerate(zip(actual, wanted, strict=True)):
        if array.dtype.kind != "f" or not array.size:
            continue
        largest = float(np.max(np.abs(array))) or 1.0
        noise = float(np.max(np.abs(unrounded[place].astype(np.float64) - rounded[place]))) / largest
        each = compare([made], [array], [found[place].output])[0]
        found[place] = each._replace(tolerance=max(each.tolerance, 2 * noise + least))
        ratios.append(_ratio(made, array))
    worst = max((each.max_error for each in found), default=0.0)
    if reference.keeps_ranges and reference.original is not None:
        refuse_wrong(found)
        reference.reading = CONFIRMED % reference.original.name
    if notes is not None and ratios:
        notes.append(
            f"the source, which computes in integers, is {min(ratios):.1f} dB from the float file, "
            f"and differs by {worst:.1%} at most"
            + (": --quantized (quantized=True) keeps its rounding and ranges" if worst > _FAR else "")
        )
    return found if all(each.ok for each in found) else list(comparisons)


def has_quantized_weights_only(graph: InternalGraph) -> bool:
    """Whether the model has integers in its constants alone, as dynamic-range files do."""
    computed = set(graph.inputs)
    for expr in graph:
        if not computed.isdisjoint(expr.inputs):
            computed.update(expr.outputs)
    return all(not isinstance(node, TensorNode) or node.qparams is None for node in computed)


def saturated(array: np.ndarray, qparams: QParams) -> np.ndarray:
    """Clips an array to the range of its QParams, without rounding."""
    shape = [1] * array.ndim
    if qparams.channel_axis is not None:
        shape[qparams.channel_axis] = -1
    scale, zero = (np.array(each, np.float32).reshape(shape) for each in (qparams.scale, qparams.zero_point))
    low, high = ((np.float32(end) - zero) * scale for end in (qparams.quant_min, qparams.quant_max))
    return np.asarray(np.clip(array, low, high), array.dtype)


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
