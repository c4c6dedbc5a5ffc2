"""Reference outputs: runs the normalized graph on NumPy."""

from __future__ import annotations

import functools
import itertools
import math
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.errors import UsageError
from tmconvert.ir import CallFunction, Constant, Expr, InternalGraph, TensorNode, TensorType
from tmconvert.ir.arrays import are_equal
from tmconvert.ir.fake_quant import RestoredArray
from tmconvert.ir.interpreter import Interpreter
from tmconvert.ir.random_calls import random_calls
from tmconvert.ir.symbolic.data_dependent import bound
from tmconvert.ir.symbolic.dims import example_count, substituted
from tmconvert.ir.traced_module import Example, Original
from tmconvert.ir.tree import leaves
from tmconvert.ir.types import Arrays
from tmconvert.symbolics.layouts import NCHW_TO_NHWC, NHWC_TO_NCHW
from tmconvert.symbolics.op import Op
from tmconvert.verification.compare import example_inputs, max_error, scale_of
from tmconvert.verification.inputs import all_indices, drawn_inputs, extreme_inputs, inputs_like
from tmconvert.verification.vacuous import vacuous_outputs

if TYPE_CHECKING:
    from tmconvert.ir.fake_quant import Rounding
    from tmconvert.verification.rounding import Shaken


ALLOWANCE = 20.0  # seconds of processor time
OWN_READING = "tmconvert's own reading of the source"
CONFIRMED = f"{OWN_READING}, itself compared with %s"
# Beyond this the reference interpreter would take minutes and more memory than the model itself.
MAX_BYTES = 4 << 30
TOO_LARGE = "the activations need more than 4 GiB in the reference interpreter"
SMALL = 1 << 20  # activations of a model that the reference interpreter runs in no time
MOST_CASES = 64
# of the negative floats of drawn inputs, for outputs that are constant for others
_CHANGES: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    lambda x: -x,
    lambda x: x * x.dtype.type(16),
    lambda x: x * x.dtype.type(-16),
    lambda x: -x / (x.dtype.type(1) - x),  # within 0 and 1
)
MANY_ELEMENTS = 64  # of an output, of which one or another is moved far in each run
# A single element is moved by 16 units less than 4 times as far as by 1 unit in 7 % of trials with 3 runs,
# and in 0.005 % of those with 17.
MOST_RUNS = 17
_SPREADS = 3  # runs that show how far a coarse rounding moves outputs
_DISCRETE = 6  # runs, after which a change that coarser rounding does not increase is a discrete decision
_RUNS = 5  # one that is decided by rounding falls the same way in all with a chance of one in sixteen


class OutOfBudget(ValueError):
    """The processor time for a reference is used up."""


class Reference:
    """Runs a normalized graph, and converts arrays between the layouts of source and file.

    ``nhwc_inputs`` and ``nhwc_outputs`` are the inputs and outputs that the file stores channels-last.
    ``example`` has inputs and the outputs for them that the framework ``producer`` computed; ``original``
    runs the source itself, whose outputs are expected of float models, and what those of quantized ones are
    compared with where the graph ``keeps_ranges``, that is, saturates as they do. ``computed_by`` names what
    computed the last expected outputs, ``refusal`` why it was not the source itself, if that can be run.
    ``reading`` names tmconvert's own, and what that was compared with; ``doubt`` states why with nothing.
    A graph that draws random numbers draws others for other inputs; the outputs of its example are not
    compared. ``computes_in`` is the float type in which a file computes, where it is coarser than its
    outputs.
    """

    def __init__(
        self,
        graph: InternalGraph,
        catalogue: Mapping[str, Op],
        nhwc_inputs: Sequence[bool] = (),
        nhwc_outputs: Sequence[bool] = (),
        example: Example | None = None,
        original: Original | None = None,
        producer: str = "",
    ) -> None:
        self.graph = graph
        self.producer = producer or "the framework of the source"
        self.reading, self.doubt = OWN_READING, ""
        self.computed_by, self.refusal = OWN_READING, ""
        self.catalogue = catalogue
        self.is_random = any(True for _ in random_calls(graph, catalogue))
        if self.is_random and example is not None:
            example = example._replace(outputs=None)
        self.example = example
        self.original = original
        self.computes_in = ""
        self.keeps_ranges = False
        self.failure = self.refused = ""  # of the source, and of the file, for inputs of our own making
        self._has_run = False  # whether the source itself ran, for any inputs
        self.deadline = math.inf  # of processor time, after which ``run`` raises OutOfBudget
        self.nhwc_inputs = nhwc_inputs or [False] * len(graph.inputs)
        self.nhwc_outputs = nhwc_outputs or [False] * len(graph.outputs)
        self._drawn: dict[int, dict[int, np.ndarray]] = {}

    @property
    def input_types(self) -> list[TensorType]:
        return [node.type for node in self.graph.inputs if isinstance(node, TensorNode)]

    @property
    def input_names(self) -> list[str]:
        return [node.name for node in self.graph.inputs if isinstance(node, TensorNode)]

    def bytes_needed(self, *, with_constants: bool = True) -> int:
        """Returns an upper bound of the memory for one run, if no activation is freed."""
        exprs = [expr for expr in self.graph if with_constants or not isinstance(expr, Constant)]
        nodes = [*self.graph.inputs, *(node for expr in exprs for node in expr.outputs)]
        types = [node.type for node in nodes if isinstance(node, TensorNode)]
        return sum(example_count(type_.shape) * type_.dtype.itemsize for type_ in types)

    def is_too_large(self) -> bool:
        """Whether its outputs are those of the reference interpreter, for which activations are too large."""
        is_interpreted = self.original is None or self.is_quantized()
        return is_interpreted and self.bytes_needed(with_constants=False) > MAX_BYTES

    def lacks(self, inputs: Arrays | None) -> str:
        """Returns why the outputs of ``case`` cannot be computed: an op has no kernel, or activations are too
        large; else empty.
        """
        example = self.example
        if inputs is None and example is not None and self._fits(example) and not self._is_computed(example):
            return ""
        ops = [self.catalogue[expr.function] for expr in self.graph if isinstance(expr, CallFunction)]
        names = sorted({op.name for op in ops if op.kernel is None})
        if names:
            return f"{', '.join(names)} has no reference kernel (register_symbolic's reference=)"
        return TOO_LARGE if self.bytes_needed(with_constants=False) > MAX_BYTES else ""

    def case(self, inputs: Arrays | None) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Returns inputs and expected outputs: the example if it fits and no inputs are given.

        Of a quantized model the example has what came of rounding, which the graph does not do, and an edited
        one computes something else: of these only the inputs are taken. Without either, the inputs are
        random. Raises UsageError TM6003 for inputs that do not fit.
        """
        example = self.example
        if inputs is None and example is not None and self._fits(example):
            given = list(example.inputs)
            if self._is_computed(example):
                return given, self.expected(given)
            self.computed_by, self.refusal, self._has_run = self.producer, "", True
            return given, list(example.outputs or ())
        if inputs is not None:
            given = matching_inputs(inputs, self.input_types)
            return given, self.expected(given)
        try:
            given = drawn_inputs(self.graph, self.catalogue)
            return given, self.expected(given)
        except (ValueError, IndexError):  # indices beyond what they are taken of: 0 is always there
            given = example_inputs(self.input_types)
            return given, self.expected(given)

    def second_case(self) -> tuple[list[np.ndarray], list[np.ndarray]] | None:
        """Returns a different test case: negated floats, other indices.

        None if the model fails for it, or returns NaN or infinities.
        """
        example = self.example
        if self.lacks([]):
            return None
        given = (
            inputs_like(example.inputs, self.graph, self.catalogue)
            if example is not None and self._fits(example)
            else drawn_inputs(self.graph, self.catalogue, 1)
        )
        return self._finite_case(given)

    def extreme_case(self) -> tuple[list[np.ndarray], list[np.ndarray]] | None:
        """Returns a test case of large magnitudes, see ``extreme_inputs``; None as ``second_case``, for
        float16, whose range they leave, and for integers in PyTorch, whose kernels overflow beyond the range
        of calibration on processors without VNNI.
        """
        if (
            self.lacks([])
            or self.computes_in == "float16"
            or (self.original is not None and self.is_quantized())
        ):
            return None
        example = self.example
        given = (
            example.inputs
            if example is not None and self._fits(example)
            else drawn_inputs(self.graph, self.catalogue)
        )
        return self._finite_case(extreme_inputs(given, self.graph, self.catalogue))

    def side_cases(self) -> Iterator[tuple[list[np.ndarray], list[np.ndarray]]]:
        """Returns test cases in which Python takes other sides of the model's branches."""
        for inputs in () if self.original is None or self.lacks([]) else self.original.sides:
            if [(each.shape, each.dtype) for each in inputs] == [
                (each.shape, each.dtype) for each in self.input_types
            ] and (found := self._finite_case(list(inputs))) is not None:
                yield found

    def cases_for(
        self, cases: Sequence[Arrays], names: Sequence[str]
    ) -> Iterator[tuple[list[np.ndarray], list[np.ndarray]]]:
        """Returns test cases in which outputs vary that are constant, NaN or empty in all of ``cases``; at
        most a few.

        ``cases`` are expected outputs. A model that begins with a ReLU has a constant for the negative floats
        of a second case, and one that begins with a threshold may have it for all small floats.
        """
        known = list(cases)
        if self.lacks([]):
            return
        for number, change in enumerate(_CHANGES):
            vacuous = vacuous_outputs(known, names)
            if not vacuous:
                return
            given = drawn_inputs(self.graph, self.catalogue, number + 2)
            found = self._finite_case([change(each) if each.dtype.kind == "f" else each for each in given])
            if found is not None and len(vacuous_outputs([*known, found[1]], names)) < len(vacuous):
                known.append(found[1])
                yield found

    def _finite_case(self, given: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]] | None:
        try:
            expected = self.expected(given)
        except OutOfBudget:
            return None
        except (ValueError, IndexError, ArithmeticError) as error:  # as a model may check what it takes
            self.failure = str(error) or type(error).__name__
            return None
        is_finite = all(np.isfinite(each).all() for each in expected if each.dtype.kind == "f")
        return (given, expected) if given and is_finite else None

    def further_cases(self) -> Iterator[tuple[list[np.ndarray], list[np.ndarray]]]:
        """Returns test cases with all indices, to compare each row of lookup tables, for small models."""
        if self.lacks([]) or self.bytes_needed() > SMALL:
            return
        for given in all_indices(self.graph, self.catalogue, MOST_CASES):
            try:
                yield given, self.expected(given)
            except (ValueError, IndexError):  # what an index is added to reaches beyond the table
                return

    def has_example(self) -> bool:
        return self.example is not None and self._fits(self.example)

    def expected(self, inputs: Arrays) -> list[np.ndarray]:
        """Returns the outputs that are expected of a file: those of the original, where it can be run."""
        self.computed_by, self.refusal = self.reading, self.doubt
        if self.original is None or self.is_random or self.is_quantized():
            return self.run(inputs)
        found = self.original.run(inputs)
        types = [node.type.dtype for node in self.graph.outputs if isinstance(node, TensorNode)]
        if found is not None and [each.dtype for each in found] == types:
            self.computed_by, self._has_run = self.original.name, True
            return found
        self.refusal = self.original.refusal or f"{self.original.name} returns outputs of other types"
        if self._has_run:  # for other inputs
            raise ValueError(self.refusal)
        return self.run(inputs)

    def of_source(self, inputs: Arrays) -> list[np.ndarray] | None:
        """Returns what the source computes in integers, as real numbers: its file in its runtime, or the
        recorded outputs. None where neither is available; ``refusal`` states why.
        """
        from tmconvert.verification.integer_edges import quantized_inputs, real_outputs

        example = self.example
        if self.original is not None:
            found = self.original.run(quantized_inputs(self.graph, inputs))
            self.refusal = self.original.refusal
            return None if found is None else real_outputs(self.graph, found)
        if example is None or example.outputs is None or not self.has_example():
            return None
        if any(a is not b for a, b in zip(inputs, example.inputs, strict=True)):
            return None
        return list(example.outputs)

    def noise(self, inputs: Arrays, numbers: Sequence[int]) -> list[float]:
        """Returns for each float output how much rounding inside the model changes an element at most.

        It is measured. It is 0 if a coarser rounding does not increase the change, which is then due to a
        discrete decision. Trials on outputs of few elements, which may change little by chance, are repeated.
        """
        sizes = [
            example_count(node.type.shape) for node in self.graph.outputs if isinstance(node, TensorNode)
        ]
        enough = 2 if all(sizes[number] >= MANY_ELEMENTS for number in numbers) else 4
        from tmconvert.verification.rounding import COARSE

        fine, coarse = (self._distances(inputs, units) for units in (1, COARSE))
        found: list[float] = []
        for count, (one, other) in enumerate(zip(fine, coarse, strict=True), start=1):
            found = [one[number] if other[number] >= one[number] * COARSE / 4 else 0.0 for number in numbers]
            is_discrete = count >= _DISCRETE and all(other[number] < 2 * one[number] for number in numbers)
            if (count >= enough and all(found)) or is_discrete:
                break
        return found

    def kernel_errors(self, inputs: Arrays, numbers: Sequence[int]) -> list[float]:
        """Returns for each float output how much kernels with ``AbsoluteAccuracy`` change an element at most.

        It is measured, and 0 for a model without such kernels.
        """
        from tmconvert.verification.rounding import AbsoluteErrors

        runs = [self.run(inputs, AbsoluteErrors(self.catalogue, seed)) for seed in (0, 1)]
        if are_equal(*runs):
            return [0.0] * len(numbers)  # there are no such kernels
        runs += [self.run(inputs, AbsoluteErrors(self.catalogue, seed)) for seed in range(2, _RUNS)]
        with np.errstate(invalid="ignore"):  # infinities have no distance
            apart = [
                np.ptp([np.asarray(run[number], np.float64) for run in runs], axis=0) for number in numbers
            ]
        return [float(np.max(each, initial=0)) for each in apart]

    def decided(self, inputs: Arrays, number: int) -> np.ndarray:
        """Returns which elements of an output are equal in runs with random rounding."""
        from tmconvert.verification.rounding import COARSE

        first, *others = (self._shaken(inputs, seed, COARSE)[number] for seed in range(_RUNS))
        return np.all([np.equal(each, first) for each in others], axis=0)

    def _distances(self, inputs: Arrays, units: int) -> Iterator[list[float]]:
        """Yields the spread of each output's elements over runs with random rounding, after each run."""
        first = self._shaken(inputs, 0, units)
        found = [0.0] * len(first)
        for seed in range(1, MOST_RUNS):
            if time.process_time() > self.deadline:
                raise OutOfBudget
            run = self._shaken(inputs, seed, units)
            for number, array in enumerate(first):
                if array.dtype.kind == "f":
                    apart = np.abs(np.asarray(run[number], np.float64) - array)
                    found[number] = max(found[number], float(np.max(apart, initial=0)))
            yield found

    def spread(self, inputs: Arrays, units: int) -> list[float]:
        """Returns how far rounding by ``units`` in the last place of float32 moves each output's elements."""
        *_, found = itertools.islice(self._distances(inputs, units), _SPREADS)
        return found

    def own_errors(self, inputs: Arrays) -> list[float]:
        """Returns how far each output's elements in float32 are off float64 at most, 0 where unknown."""
        from tmconvert.verification.rounding import Wide

        wide = self._of_original(inputs, 0, 0) or self.run(inputs, Wide(self.catalogue))
        errors = _errors(wide, self._plain(inputs))
        return [each if np.isfinite(each) else 0.0 for each in errors]

    def rounded_runs(self, inputs: Arrays) -> Iterator[list[np.ndarray]]:
        """Yields the outputs as they are, and then with random rounding, several times.

        Equal elements that are ranked get any order.
        """
        self.deadline = max(
            self.deadline, time.process_time() + ALLOWANCE
        )  # whether it is wrong must be known
        yield self._plain(inputs)
        for seed in range(_RUNS):
            yield self._shaken(inputs, seed, 1)

    def _plain(self, inputs: Arrays) -> list[np.ndarray]:
        """Returns the outputs of what runs with other rounding, as it is: the expected ones may be others."""
        is_theirs = self.original is not None and not (self.is_random or self.is_quantized())
        has_other = is_theirs and self._of_original(inputs, 0, 0) is not None
        made = self.original.run(inputs) if has_other and self.original is not None else None
        return self.run(inputs) if made is None else made

    def _shaken(self, inputs: Arrays, seed: int, units: int) -> list[np.ndarray]:
        """Returns the outputs of a run with random rounding: of the source itself, where it can do that."""
        from tmconvert.verification.rounding import Shaken

        made = self._of_original(inputs, seed, units)
        return self.run(inputs, Shaken(self.catalogue, seed, units)) if made is None else made

    def _of_original(self, inputs: Arrays, seed: int, units: int) -> list[np.ndarray] | None:
        if self.original is None or self.is_random or self.is_quantized():
            return None
        made = self.original.run_rounded(inputs, seed, units)
        is_alike = made is not None and len(made) == len(self.graph.outputs)
        return made if is_alike else None

    def _is_computed(self, example: Example) -> bool:
        """Whether the recorded outputs of the example are those of the graph."""
        return example.outputs is None or self.is_quantized()

    def is_quantized(self) -> bool:
        """Whether tensors have quantization parameters, or a file of the source has weights of blocks."""
        nodes = [*self.graph.inputs, *(node for expr in self.graph for node in expr.outputs)]
        if any(isinstance(node, TensorNode) and node.qparams is not None for node in nodes):
            return True
        stored = [expr.stored for expr in self.graph if isinstance(expr, Constant)]
        return self.original is not None and any(isinstance(each, RestoredArray) for each in stored)

    def _fits(self, example: Example) -> bool:
        given = [TensorType(array.dtype, array.shape) for array in example.inputs]
        count = len(self.graph.outputs)
        return given == self.input_types and (example.outputs is None or len(example.outputs) == count)

    def operand(self, call: Expr, inputs: Arrays) -> np.ndarray:
        """Returns the first operand of a call in a run on these inputs."""
        found: list[np.ndarray] = []
        self.run(inputs, watch=lambda expr, args: found.append(args[0]) if expr is call else None)
        return np.asarray(found[0])

    def run(
        self,
        inputs: Arrays,
        shaken: Shaken | None = None,
        watch: Callable[[Expr, tuple[Any, ...]], None] | None = None,
        rounding: Rounding | None = None,
    ) -> list[np.ndarray]:
        """Computes the outputs from inputs, both in order and in the layout of the source.

        ``watch`` is shown each call with its operands; ``rounding`` is applied to each result with QParams.
        """
        sizes: dict[str, int] = {}
        seed = _seed_of(inputs) if self.is_random else 0
        drawn = self._drawn.setdefault(seed, {})
        if shaken is not None:
            inputs = [shaken.moved(array) for array in inputs]

        def evaluate(expr: Expr, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
            op = self.catalogue[expr.function]  # type: ignore[attr-defined]
            kwargs = substituted(kwargs, sizes)
            if time.process_time() > self.deadline:
                raise OutOfBudget
            if watch is not None:
                watch(expr, args)
            if op.is_random:
                stream = kwargs["stream"]
                assert isinstance(stream, int)
                result = drawn[stream] = op.evaluate(args, {**kwargs, "seed": seed})
            else:
                result = op.evaluate(args, kwargs) if shaken is None else shaken.evaluated(op, args, kwargs)
            sizes.update(bound(expr, list(leaves(result))))
            return result if rounding is None else _with_rounding(expr, result, rounding)

        result = Interpreter(self.graph, evaluate=evaluate).run(*inputs)
        pairs = zip(leaves(self.graph.result), leaves(result), strict=True)
        return [np.asarray(value) for node, value in pairs if isinstance(node, TensorNode)]

    def drawn(self, inputs: Arrays) -> Mapping[int, np.ndarray]:
        """Returns the random numbers of a run on these inputs, by stream; other inputs have other numbers."""
        seed = _seed_of(inputs)
        if seed not in self._drawn:
            self.run(inputs)
        return self._drawn[seed]

    def stored_inputs(self, inputs: Arrays) -> list[np.ndarray]:
        """Converts inputs to the layout of the file."""
        return _permuted(inputs, self.nhwc_inputs, NCHW_TO_NHWC)

    def stored_outputs(self, outputs: Arrays) -> list[np.ndarray]:
        """Converts outputs of the source to the layout of the file."""
        return _permuted(outputs, self.nhwc_outputs, NCHW_TO_NHWC)

    def source_outputs(self, outputs: Arrays) -> list[np.ndarray]:
        """Converts outputs of the file to the layout of the source."""
        return _permuted(outputs, self.nhwc_outputs, NHWC_TO_NCHW)


def _with_rounding(expr: Expr, result: Any, rounding: Rounding) -> Any:
    """Returns the results of a call after ``rounding`` to the QParams of its nodes."""
    if isinstance(expr.result, TensorNode):
        qparams = expr.result.qparams
        return result if qparams is None or qparams.inferred else rounding(result, qparams)
    return result


def _errors(ones: Arrays, others: Arrays) -> list[float]:
    pairs = zip(ones, others, strict=True)
    return [
        max_error(one, other) * scale_of(other) if one.shape == other.shape else np.inf
        for one, other in pairs
    ]


def _seed_of(inputs: Arrays) -> int:
    return functools.reduce(lambda seed, array: zlib.crc32(array.tobytes(), seed), inputs, 0)


def _permuted(arrays: Arrays, flags: Sequence[bool], order: tuple[int, ...]) -> list[np.ndarray]:
    return [
        np.ascontiguousarray(array.transpose(order)) if flag and array.ndim == len(order) else array
        for array, flag in zip(arrays, flags, strict=True)
    ]


def matching_inputs(inputs: Arrays, types: Sequence[TensorType]) -> list[np.ndarray]:
    """Returns the inputs, after checks against the model's types."""
    if len(inputs) != len(types):
        raise UsageError("TM6003", f"the model takes {len(types)} inputs, got {len(inputs)}")
    from tmconvert.ir.arrays import as_array

    arrays = [as_array(array, f"input {number}") for number, array in enumerate(inputs)]
    for number, (array, type_) in enumerate(zip(arrays, types, strict=True)):
        if array.shape != type_.shape or array.dtype != type_.dtype:
            given = TensorType(array.dtype, array.shape)
            raise UsageError("TM6003", f"input {number} must be {type_}, got {given}")
    return arrays
