"""Op traits: properties of ops beyond their signature that passes use, declared in the op's file.

A pass tests for a trait, never for the name of an op, so that all passes support a new op by the traits in
its file::

    leaky_relu = Op("aten::leaky_relu", ..., traits=[Homogeneous()])

    weights = trait_of(call, Weights)  # of symbolics/registry.py; None where the op has no weights

The classes are plain ones: each start would spend half a millisecond on making each frozen dataclass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tmconvert.ir.expr import CallFunction
from tmconvert.ir.node import TensorNode


class Trait:
    """A property of an op; its subclasses in this file are a closed set."""


T = TypeVar("T", bound=Trait)


# ---- layers


class Weights(Trait):
    """The result sums products of operand 0 with the weight, operand 1, and adds the bias, operand 2.

    ``spatial`` is the number of axes after batch and channels; 0: channels are the last axis.
    """

    def __init__(self, spatial: int, is_transposed: bool = False) -> None:
        self.spatial = spatial
        self.is_transposed = is_transposed

    @property
    def output_axis(self) -> int:
        """Returns the output-channel axis of the weight, per group where that is axis 1."""
        return 1 if self.is_transposed else 0

    def channel_axis(self, rank: int) -> int:
        """Returns the channel axis of a result of ``rank`` axes."""
        return 1 if self.spatial else rank - 1


class MatrixProduct(Trait):
    """The result sums products of all tensor operands from position ``first`` on; those before are added."""

    def __init__(self, first: int = 0) -> None:
        self.first = first


class NormalizesRows(Trait):
    """Each row, over the last axes, is divided by its own deviation or root mean square."""


class Pool(Trait):
    """A window of the attributes ``kernel_size``, ``stride`` and ``padding`` moves over the spatial axes."""


class Average(Trait):
    """Each element of the result is the mean of some elements of the operand."""


class Reduction(Trait):
    """The axes ``dim``, by default all, are reduced; reducing twice is reducing the axes of both at once."""


# ---- elementwise


class Arithmetic(Trait):
    """The result is x + other (``neutral`` 0) or x * other (``neutral`` 1), or x - other or x / other."""

    def __init__(self, neutral: int, is_inverse: bool = False) -> None:
        self.neutral = neutral
        self.is_inverse = is_inverse

    @property
    def is_product(self) -> bool:
        return self.neutral == 1


class Homogeneous(Trait):
    """Channels of the first ``operands`` times s > 0 make channels of the result times s.

    ``channels(axis, count, **attributes)`` returns, for each channel of the result, from which of the
    ``count`` channels along ``axis`` it is computed, or None if channels are mixed; without it each is
    computed from the same channel.
    """

    def __init__(self, operands: int = 1, channels: Callable[..., np.ndarray | None] | None = None) -> None:
        self.operands = operands
        self.channels = channels


class Clamp(Trait):
    """The operand is clamped to two bounds: numbers, names of attributes, or None for no bound."""

    def __init__(self, low: float | str | None, high: float | str | None = None) -> None:
        self.low = low
        self.high = high

    def bounds(self, attributes: Mapping[str, Any]) -> tuple[Any, Any]:
        """Returns the lower and the upper bound of a call, None for no bound."""
        low, high = (attributes[each] if isinstance(each, str) else each for each in (self.low, self.high))
        return low, high


class SeesSignOfZero(Trait):
    """The results for -0.0 and for 0.0 differ, in the operands of these numbers.

    Of a power whose operand ``exponent`` is a constant, they differ for odd exponents alone, and by more than
    the sign of a zero for negative ones.
    """

    def __init__(self, *operands: int, exponent: int | None = None) -> None:
        self.operands = operands
        self.exponent = exponent


class DividesBySecond(Trait):
    """Operand 1 is a divisor of integers, which runtimes refuse to be 0."""


class Bounded(Trait):
    """Each element of the result is from ``low`` to ``high``, whatever the operands are."""

    def __init__(self, low: float, high: float = math.inf) -> None:
        self.low = low
        self.high = high


class BoundedByOther(Trait):
    """The result is the lesser of the operands: a constant operand 1 is an upper bound for each element."""


class SelfGated(Trait):
    """The result is the operand times its sigmoid."""


class ChoosesByCondition(Trait):
    """Each element of the result is that of one operand or another, selected by a condition."""


class Interpolates(Trait):
    """The result is images of the size ``output_size``, interpolated between the pixels of the operand."""


class Spatial(Trait):
    """Operand 0 is [N, C, ...]: its channels are axis 1, and the axes after them are spatial."""


class MultiplyAccumulates(Trait):
    """``count(operands, result)`` is the number of multiply-accumulates, from the shapes of the tensors.

    Ops with ``Weights`` or ``MatrixProduct`` do not need it: theirs follows from these traits.
    """

    def __init__(self, count: Callable[[Sequence[Sequence[int]], Sequence[int]], int]) -> None:
        self.count = count


# ---- elements that are moved


class Reshaped(NamedTuple):
    shape: Sequence[int]


class Permuted(NamedTuple):
    order: Sequence[int]


class Selected(NamedTuple):
    axis: int
    position: int


ViewStep = Reshaped | Permuted | Selected


class View(Trait):
    """The result is a view of operand 0: ``steps(rank, **attributes)`` leads from one to the other."""

    def __init__(self, steps: Callable[..., Sequence[ViewStep]]) -> None:
        self.steps = steps

    def of(self, call: CallFunction) -> Sequence[ViewStep]:
        """The steps of a call."""
        x = call.args[0]
        assert isinstance(x, TensorNode)
        return self.steps(x.type.rank, **call.kwargs)


class SameElements(Trait):
    """The result has the elements of the operand in the same order, in another shape or element type."""


class KeepsQparams(Trait):
    """The result has the range of operand 0, and integer kernels keep its quantization parameters."""


class SelectsElements(Trait):
    """Each element of the result is one of operand 0: it does not matter which of the two is rounded."""


class AlongAxis(Trait):
    """The op works along the axis ``dim``, keeps the rank, and treats the other axes element by element."""


class Slices(Trait):
    """The result is the indices from ``start`` to ``end`` by ``step`` along the axis ``dim``."""


class Concatenates(Trait):
    """The result is a list of tensors, one after the other along the axis ``dim``."""


class Identity(Trait):
    """Where the result has the type of operand 0 and ``holds(**attributes)``, it is operand 0."""

    def __init__(self, holds: Callable[..., bool]) -> None:
        self.holds = holds


class Casts(Trait):
    """The result is the elements of operand 0 in another element type."""


# ---- indices


class RanksElements(Trait):
    """A result is indices of elements chosen by size along ``dim``, where equal ones come in any order."""


class IndexedRows(Trait):
    """An operand called ``indices`` addresses rows, along axis 0, of operand 0."""


class IndexesAxis(Trait):
    """Operand 1 is indices along axis ``dim`` of operand 0; negative ones count from the end."""


class IndicesBelow(Trait):
    """The elements of the operand are indices below the attribute ``extent``."""

    def __init__(self, extent: str) -> None:
        self.extent = extent


# ---- random numbers


class DrawsRandom(Trait):
    """The result is random: ``cdf`` is its distribution function, ``support`` the interval of its values."""

    def __init__(self, cdf: Callable[[np.ndarray], np.ndarray], support: tuple[float, float]) -> None:
        self.cdf = cdf
        self.support = support


# ---- in integers


class Quantizes(Trait):
    """The result is operand 0, quantized with the quantization parameters of the result."""


class FixedRange(Trait):
    """Integer kernels have a fixed output range, independently of the measured one.

    In int8 it is from ``low`` to ``high``; where ``in_int16``, it is from -1 to 1 there.
    """

    def __init__(self, low: float, high: float, in_int16: bool = False) -> None:
        self.low = low
        self.high = high
        self.in_int16 = in_int16


class AbsoluteAccuracy(Trait):
    """Kernels compute each element to a few units in the last place of 1, also those next to 0.

    They add 1/2 and an odd function: 1e-6 has one right digit then. Source: ``MlasComputeLogistic``,
    measured in ONNX Runtime, 1.4 units.
    """


class Distribution(Trait):
    """The elements along ``dim`` are non-negative and sum to 1, such as attention weights."""


class Elimination(Trait):
    """The decomposition divides by differences repeatedly, for which 16 bits are too few."""


class IntegerSteps(Trait):
    """``function(g, **arguments)`` is a decomposition into steps with integer kernels."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
