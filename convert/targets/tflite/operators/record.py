"""The record of a TFLite operator: ``OperatorSpec``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tmconvert.formats.tflite.schema import OptionField, operator_code, options_fields, options_of
from tmconvert.lowering.target_graph import Operator
from tmconvert.targets.tflite.element_types import first_releases

Range = tuple[float, float]  # the lowest and the highest value; of integers both are int
RangeRule = Callable[[Operator, Sequence[Range]], Range]
# from the range of the result and those of the data to the ranges that the data must have; None: any
NeededRule = Callable[[Range, Sequence[Range]], Sequence[Range | None]]
Test = Callable[[Operator], bool]
Rules = tuple[tuple[int, Test], ...]
MacsRule = Callable[[Sequence[tuple[int, ...]], Sequence[tuple[int, ...]]], int]
Relation = Literal["weights", "free", "same", "fixed", "compared"]

FLOAT32 = ("float32",)
FLOAT16_FLOAT32 = ("float16", "float32")
FLOAT32_INT32 = ("float32", "int32")
FLOAT32_INT32_INT64 = ("float32", "int32", "int64")
SIGNED = ("int8", "int16", "int32", "int64")
FLOAT32_AND_INTEGERS = ("float32", *SIGNED, "uint8")
COMMON = ("float16", "float32", *SIGNED, "uint8", "bool")

INT8, INT16 = frozenset({"int8"}), frozenset({"int16"})

ALL_AXES, FIRST_AXIS, LAST_AXIS = slice(None), slice(0, 1), slice(-1, None)


class Weights(NamedTuple):
    """Input indices of activations, weights and bias, and the output-channel axis of the weights."""

    x: int
    weight: int
    bias: int
    axis: int


class DynamicRange(NamedTuple):
    """A kernel for int8 weights with float32 activations.

    ``weight`` and ``x`` are the input indices of the weights and the activations. ``since`` is the N of the
    oldest runtime 2.N with a correct and fast kernel, which is independent of operator versions. Measured:
    2.14 runs none of them in XNNPACK, which makes them slower than float32, and fails on TRANSPOSE_CONV;
    LiteRT 1.0 (2.18) has wrong scales in BATCH_MATMUL. With ``says_asymmetric`` the option
    asymmetric_quantize_inputs is set. ``narrow`` are the types of fewer bits that the kernel reads, too.
    """

    weight: int = 1
    x: int = 0
    since: int = 18
    says_asymmetric: bool = False
    narrow: tuple[str, ...] = ()


class NotEmpty(NamedTuple):
    """Restrictions of LiteRT on tensors without elements.

    The first ``operands`` inputs must not be empty along ``axes``, nor the result. An input that may be empty
    is padded with ``filled_with``.
    """

    axes: slice
    operands: int = 1
    filled_with: float = 0.0


@dataclass(frozen=True, eq=False)
class IntegerKernel:
    """An integer kernel's requirements on the QParams of its tensors.

    ``relation`` is one of

    - "weights": a product with constant weights; activations and results have any parameters, the bias the
      scale of the products;
    - "free": operands and results have any parameters, the kernel requantizes;
    - "same": results have the parameters of the operands;
    - "fixed": the result has parameters of its own, whatever the operand's;
    - "compared": operands have any parameters (in int16 the same), results are no quantized tensors.

    Source: LiteRT's quantization specification and the kernels' Prepare. Each kernel runs in LiteRT in
    tests/targets/tflite/test_integer_kernels.py, which measures its error over all integers and many
    parameters: at most 1.6 steps, except for kernels with a ``slack``. A product of int8 wraps around if it
    exceeds the range of its result 128 times, one of int16 if it does 32768 times.
    """

    relation: Relation
    types: frozenset[str] = INT8 | INT16  # the element types that the kernel exists for
    results: tuple[int, ...] | None = None  # the outputs that are quantized; None: all
    # (scale, zero point) of the results of a "fixed" kernel, by element type
    fixed: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    # results lie within the range of the operand, and get its parameters where the source names none
    is_within: bool = False
    keeps_sign: bool = False  # results are not negative where the operand is not
    # into how many parts of a step of the operand an exact result falls; None: it is not known
    parts: Callable[[Operator], int] | None = None
    # int16 aborts where a summand is 2**14 times coarser than the sum
    aligns_summands: bool = False
    # int16 interpolates in 513 entries and int8 has a coarse scale: a lookup table may be nearer
    is_rough: bool = False
    slack: Mapping[str, float] = field(default_factory=dict)  # steps beyond rounding, by element type

    def outputs(self, count: int) -> tuple[int, ...]:
        """Returns the indices of the quantized outputs among ``count`` outputs."""
        return tuple(range(count)) if self.results is None else self.results


@dataclass(frozen=True, eq=False, kw_only=True)
class OperatorSpec:
    """The specification of one TFLite operator."""

    name: str = field(kw_only=False)
    # ---- the file (LiteRT's schema.fbs)
    options_name: str | None = None  # the options table, where it is not called after the operator
    states: tuple[int, ...] = ()  # inputs that are variable tensors, zero at first, which nothing computes
    # ---- runtimes (LiteRT's op_version.cc and runtime_version.cc)
    # the oldest release with version 1, 2, ...; "-" where there is none (runtimes.py)
    releases: str = ""
    # (version, test): the first whose test holds gives the version, and 1 is for the rest
    versions: Rules = ()
    # ---- operands and results
    # The inputs that are data: no shapes, axes, indices, conditions or weights. None: all.
    data: tuple[int, ...] | None = (0,)
    # Element types of data without quantization in LiteRT's own kernels (XNNPACK has float16 too, but not
    # every runtime has XNNPACK), measured with LiteRT 2.3, one operator a model. None: all of tmconvert's.
    types: tuple[str, ...] | None = None
    index: int | None = None  # the input that is an index, of any integer type
    index_is_checked: bool = False  # a run with an index outside of the tensor fails
    gives_indices: tuple[int, ...] = ()  # the outputs that are indices into the first input
    reads_sizes: bool = False  # of the data it reads the shape alone, whatever the elements are
    draws_random: bool = False  # the result is random; the seed is in the options "seed" and "seed2"
    moves: bool = False  # results consist of elements of the data
    keeps_all: bool = False  # each element of the data is in the result
    adds_zeros: bool = False  # zeros are among the elements of the results, too
    compares: bool = False  # results are truth values of data that is compared
    is_spatial: bool = False  # operands and results are images, channels last
    macs: MacsRule | None = None  # multiply-accumulates, from the shapes of operands and results
    result_range: RangeRule | None = None  # the range of the results, from those of the data
    needed_ranges: NeededRule | None = None
    activation: Range | None = None  # as a fused activation function it clamps to this range
    # ---- forms that the converter may write
    fuses_activation: bool = False  # its float kernel has fused activation functions
    weights: Weights | None = None
    dynamic_range: DynamicRange | None = None
    not_empty: NotEmpty | None = None
    integer: IntegerKernel | None = None

    @property
    def code(self) -> int | None:
        """Returns the number among the builtin operators; None if the writer must not see it."""
        return operator_code(self.name)

    @property
    def options(self) -> str | None:
        """Returns the name of the options table; None if the operator has none."""
        return self.options_name or options_of(self.name)

    @property
    def option_fields(self) -> dict[str, OptionField]:
        """Returns the fields of the options table by name."""
        return {} if self.options is None else options_fields(self.options)

    @property
    def measured(self) -> Mapping[str, int]:
        """Returns, by element types ("int8q,int32q>int8q"), the N of the first runtime 2.N with them."""
        return first_releases().get(self.name, {})

    def data_of(self, count: int) -> tuple[int, ...]:
        """Returns the indices of data inputs among this number of inputs."""
        return tuple(range(count)) if self.data is None else tuple(i for i in self.data if i < count)

    @property
    def typed(self) -> int:
        """Returns the index of the input whose element type the kernel must support."""
        return self.data[0] if self.data else 0

    @property
    def moves_one(self) -> bool:
        """Whether results consist of elements of one input, and so have its QParams."""
        return self.moves and self.data is not None and len(self.data) == 1

    @property
    def keeps_qparams(self) -> bool:
        """Whether results have the quantization parameters of the one input whose elements they are."""
        return self.moves_one and self.integer is not None and self.integer.relation == "same"

    def range_of(self, operator: Operator, ranges: Sequence[Range]) -> Range | None:
        """Computes the range of the results from those of the data; None where it is not known."""
        if self.result_range is not None:
            return self.result_range(operator, ranges)
        if not self.moves:
            return None
        ends = [*ranges, (0, 0)] if self.adds_zeros else ranges
        return min(low for low, _ in ends), max(high for _, high in ends)
