"""Compares the graph of a quantized model with its source in its own runtime.

The graph rounds each tensor as the scales of the source say, which runtimes do, too: most outputs are equal.
Where a kernel rounds differently, or a number is next to the middle between two steps, a tensor is a step
off. What this does to the outputs is measured: ``NEAR`` times what all rounding changes is no error.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.ir import QParams, TensorNode
from tmconvert.ir.fake_quant import fake_quantize, rounding_of
from tmconvert.ir.symbolic.data_dependent import depends_on_data
from tmconvert.verification.inputs import inputs_like, within_ranges
from tmconvert.verification.reference import Reference
from tmconvert.verification.source import has_quantized_weights_only, saturated

NEAR = 2.0
_STEPS = (1.5, 0.5)  # of the output's own, that an element and the root of the mean square may be off
_EIGHT_BITS = 1 / 255  # of the largest element, a step of an output without scales
_OWN_STEPS = 0.1  # of the largest element: kernels for weights in integers round their other operand, too
_SEEDS = (0, 1, 2)
_FAR = 4  # times as many integers may differ as rounding changes

Arrays = Sequence[np.ndarray]


def check_quantized_graph(reference: Reference, names: Sequence[str]) -> str:
    """Checks that a graph with QParams computes what its source does in integers; its weights are rounded.

    The inputs are those of the example, or drawn ones, and others from the whole range of each input. Returns
    why the source does not tell; empty where it agrees. Raises VerificationError TM4001.
    """
    from tmconvert.passes.bake_weights import bake_weights

    original, lacking = reference.original, reference.lacks([])
    if original is None or lacking:
        return lacking
    bake_weights(reference.graph)
    for given in _inputs(reference):
        try:
            wanted = reference.of_source(given)
            if wanted is None:
                return original.refusal
            found = _Outputs(reference, given, wanted)
        except (ValueError, IndexError, ArithmeticError) as error:  # of inputs that the model does not take
            return str(error)
        wrong = [name for place, name in enumerate(names) if found.is_wrong(place)]
        if not wrong:
            continue
        undecided = [name for name in wrong if found.is_undecided(names.index(name))]
        if len(undecided) == len(wrong):
            return f"rounding decides {', '.join(wrong)} in the source itself, in {original.name}"
        if original.saturates:
            return f"{original.name} computes something else, but its integers saturate on this processor"
        name = next(each for each in wrong if each not in undecided)
        raise VerificationError(
            "TM4001",
            f"the quantized graph is not its source: the output {name} {found.difference(names.index(name))} "
            f"{original.name} computes",
            notes=[("help", "report this as a defect, with `tmconvert doctor`")],
        )
    return ""


def _inputs(reference: Reference) -> Iterator[list[np.ndarray]]:
    """Yields inputs on the steps of the source."""
    graph, first = reference.graph, reference.case(None)[0]
    others = inputs_like(first, graph, reference.catalogue)
    for given in (first, within_ranges(graph, others)):
        yield [
            rounding_of(node.qparams)(array, node.qparams)
            if isinstance(node, TensorNode) and node.qparams is not None and array.dtype.kind == "f"
            else array
            for node, array in zip(graph.inputs, given, strict=True)
        ]


class _Outputs:
    """The outputs of a graph with rounding, without, and those of its source, for one set of inputs."""

    def __init__(self, reference: Reference, given: Arrays, wanted: Arrays) -> None:
        self.reference, self.given, self.wanted = reference, given, wanted
        self.made = reference.run(given, rounding=lambda array, each: rounding_of(each)(array, each))
        self.unrounded = reference.run(given, rounding=saturated)
        self.least = _OWN_STEPS if has_quantized_weights_only(reference.graph) else 0.0

    def is_wrong(self, place: int) -> bool:
        """Whether an output is further off than rounding explains, at one element or on the whole."""
        made, wanted = self.made[place], self.wanted[place]
        if made.shape != wanted.shape:
            return not depends_on_data(self.reference.graph)
        if wanted.dtype.kind != "f":
            return np.count_nonzero(made != wanted) > _FAR * np.count_nonzero(made != self.unrounded[place])
        limits = [NEAR * each for each in _sizes(made, self.unrounded[place])]
        step = self._step(place)
        return any(a > b + c * step for a, b, c in zip(_sizes(made, wanted), limits, _STEPS, strict=True))

    def is_undecided(self, place: int) -> bool:
        """Whether the output moves as far where other tensors are a step off."""
        made, wanted = self.made[place], self.wanted[place]
        if made.shape != wanted.shape:
            return False
        moved = [_sizes(made, each[place]) for each in self.moved]
        return all(a <= max(b) for a, b in zip(_sizes(made, wanted), zip(*moved, strict=True), strict=True))

    @functools.cached_property
    def moved(self) -> list[list[np.ndarray]]:
        """The outputs of runs in which each tensor is a step off here and there."""
        return [self.reference.run(self.given, rounding=_AtRandom(seed)) for seed in _SEEDS]

    def difference(self, place: int) -> str:
        made, wanted = self.made[place], self.wanted[place]
        if made.shape != wanted.shape:
            return f"has shape {list(made.shape)}, not {list(wanted.shape)} as"
        if wanted.dtype.kind != "f":
            return f"has {np.count_nonzero(made != wanted)} integers other than those that"
        return f"is {_sizes(made, wanted)[0] / self._step(place):.1f} steps off what"

    def _step(self, place: int) -> float:
        node, wanted = self.reference.graph.outputs[place], self.wanted[place]
        qparams = node.qparams if isinstance(node, TensorNode) else None
        largest = float(np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted))) or 1.0
        own = _EIGHT_BITS * largest if qparams is None else max(qparams.scale)
        return max(own, self.least * largest)


class _AtRandom:
    """Rounds each number to a step next to it, as kernels do that are a step off."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def __call__(self, array: np.ndarray, qparams: QParams) -> np.ndarray:
        moves = self.random.uniform(-1, 1, array.shape).astype(array.dtype)
        return fake_quantize(array + moves * array.dtype.type(max(qparams.scale)), qparams)


def _sizes(ones: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Returns the largest difference and the root of the mean square; infinite where NaN are elsewhere."""
    if ones.shape != others.shape or not ones.size:
        return 0.0, 0.0
    finite = np.isfinite(ones)
    if not np.array_equal(finite, np.isfinite(others)):
        return math.inf, math.inf
    off = np.subtract(ones, others, where=finite, out=np.zeros(ones.shape), dtype=np.float64)
    return float(np.max(np.abs(off))), float(np.sqrt(np.mean(np.square(off))))
