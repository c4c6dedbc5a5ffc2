"""Calls of ops with open sizes, written at the sizes of a sample and run at others in a real runtime.

An ``Opening`` names the open axes of the inputs of a sample. ``outcome_of`` converts a model of this one
call by the passes and the lowering of a target. It returns RIGHT, or the reason of a refusal. Other
exceptions than our refusals, messages with their words, codes that report a defect, and wrong results
raise AssertionError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tests.symbolics.ops.harness import op_graph, reference, run_lowered
from tests.symbolics.ops.samples import Sample
from tmconvert.errors import InternalError, TmconvertError
from tmconvert.ir import InternalGraph
from tmconvert.ir.symbolic.dims import Dim, dim, substituted, symbols_of
from tmconvert.ir.symbolic.journal import SizeJournal, SizesSpecialized
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.lowering.lower import Lowering
from tmconvert.passes.decompose import Undecomposed
from tmconvert.passes.manager import PassManager
from tmconvert.symbolics.op import Attribute
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TargetOptions
from tmconvert.targets.registry import target_named
from tmconvert.verification.compare import check

RIGHT = "right"
NO_OTHER = "no other sizes suit the op"
# an op, which the reason of a refusal is to name
OP = re.compile(r"\b(aten|tm|torchvision)::\w+")
# attributes that are sizes of a result: their numbers grow with the axes of the same extent
SIZES = ("shape", "size", "output_size", "sizes")
# what Python and NumPy say of an argument that they do not support
BARE = re.compile(
    r"does not support symbolic sizes|'Dim'|unsupported operand|object is not|has no attribute|zip\(\)"
    r"|cannot be interpreted|object arrays|NoneType|ufunc|dtype\('O'\)|broadcast together|index out of"
)
ATTEMPTS = 10


class Opening(NamedTuple):
    """Open axes: for each symbol its extent in the sample and the axes, as (number of the input, axis)."""

    groups: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]

    def __str__(self) -> str:
        return " ".join("=".join(f"{number}:{axis}" for number, axis in axes) for _, axes in self.groups)

    def sizes(self) -> dict[str, Any]:
        """Returns a symbol for each group, by name."""
        return {f"n{i}": dim(f"n{i}", extent) for i, (extent, _) in enumerate(self.groups)}

    def extent_at(self, number: int, axis: int, sizes: Mapping[str, Any], otherwise: int) -> Any:
        """Returns the size of an axis of an input: ``otherwise`` where it is not open."""
        for i, (_, axes) in enumerate(self.groups):
            if (number, axis) in axes:
                return sizes[f"n{i}"]
        return otherwise


def openings_of(sample: Sample) -> Iterator[Opening]:
    """Yields each axis alone, the axes of each extent together, and all together with a symbol an extent."""
    places: dict[int, list[tuple[int, int]]] = {}
    for number, array in enumerate(inputs_of(sample.args)):
        for axis, extent in enumerate(array.shape):
            if extent > 1:
                places.setdefault(extent, []).append((number, axis))
                yield Opening(((extent, ((number, axis),)),))
    groups = tuple((extent, tuple(axes)) for extent, axes in places.items())
    yield from (Opening((group,)) for group in groups if len(group[1]) > 1)
    if len(groups) > 1:
        yield Opening(groups)


def variants_of(name: str, sample: Sample) -> Iterator[Sample]:
    """Yields the sample, and one with each of its boolean attributes reversed."""
    yield sample
    for argument in catalogue()[name].args:
        if isinstance(argument, Attribute) and isinstance(argument.default, bool):
            value = sample.attributes.get(argument.name, argument.default)
            yield replace(sample, attributes={**sample.attributes, argument.name: not value})


def has_subgraphs(sample: Sample) -> bool:
    """Whether an attribute is a graph, whose types are those of the sample."""
    return any(isinstance(leaf, InternalGraph) for leaf in leaves(sample.attributes))


def inputs_of(args: Sequence[Any]) -> list[np.ndarray]:
    return [leaf for leaf in leaves(list(args)) if isinstance(leaf, np.ndarray)]


def outcome_of(target: str, version: int, name: str, sample: Sample, opening: Opening) -> str:
    """Returns RIGHT, or the reason why the call is refused with these open sizes."""
    sizes = opening.sizes()
    for _ in range(ATTEMPTS):
        with SizeJournal(sizes) as journal:
            try:
                result = _lowered(journal, TargetOptions(target, version), name, sample, opening, sizes)
            except SizesSpecialized:
                reasons = "; ".join(journal.reasons.values())
                assert not BARE.search(reasons), f"the words of an exception: {reasons}"
                sizes = substituted(sizes, journal.specialized)
                if not any(isinstance(size, Dim) for size in sizes.values()):
                    return reasons
                continue
            except TmconvertError as error:
                assert not isinstance(error, InternalError) or error.code == "TM3004", f"a defect: {error}"
                result = str(error)
        if isinstance(result, str):
            assert not BARE.search(result), f"the words of an exception: {result}"
            return result
        return _compared(result, journal, name, sample, opening, sizes)
    raise AssertionError(f"the sizes {sizes} cannot be resolved")


def _lowered(
    journal: SizeJournal,
    options: TargetOptions,
    name: str,
    sample: Sample,
    opening: Opening,
    sizes: Mapping[str, Any],
) -> Lowering | str:
    """Returns the lowered call, or the reason of a refusal."""
    journal.at(f"y ({name})")
    shapes = [
        tuple(opening.extent_at(number, axis, sizes, extent) for axis, extent in enumerate(array.shape))
        for number, array in enumerate(inputs_of(sample.args))
    ]
    graph = op_graph(name, sample.args, _attributes(sample, opening, sizes), shapes)
    journal.check()
    target = target_named(options.target)
    journal.in_passes = True
    try:
        PassManager(target.passes(options, catalogue()), catalogue()).run(graph)
        lowering = target.lower(graph, catalogue(), options)
    except Undecomposed as found:
        return found.unsupported.reason
    journal.check()
    if lowering.unsupported:
        return "; ".join(item.reason for item in lowering.unsupported)
    target.finish(lowering.graph, options)
    return lowering


def _compared(
    lowering: Lowering,
    journal: SizeJournal,
    name: str,
    sample: Sample,
    opening: Opening,
    sizes: Mapping[str, Any],
) -> str:
    """Compares the file with the reference at the first other sizes that both take."""
    for values in _other_sizes(journal, sizes):
        args = _grown(sample.args, opening, values)
        try:
            expected = reference(name, args, _attributes(sample, opening, values))
        except (ArithmeticError, IndexError, TypeError, ValueError, np.linalg.LinAlgError):
            continue  # such as a batch that the weights do not fit
        feeds = dict(zip(lowering.graph.input_names, inputs_of(args), strict=True))
        try:
            results = run_lowered(lowering, feeds)
            check(results, expected, [f"y{i}" for i in range(len(results))])
        except Exception as error:
            raise AssertionError(f"at {values}: {error} {journal.summary()}") from error
        return RIGHT
    return NO_OTHER


def _other_sizes(journal: SizeJournal, sizes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields other values of the sizes, by name, that the guards of the journal allow."""
    symbols = symbols_of(list(sizes.values()))
    for change in (lambda n: n + 1, lambda n: n + 2, lambda n: 2 * n, lambda n: 3 * n, lambda n: n - 1):
        numbers = {name: change(symbol.example) for name, symbol in symbols.items()}
        if all(
            symbol.least <= numbers[name] <= (symbol.most or numbers[name])
            for name, symbol in symbols.items()
        ):
            values = {name: numbers[name] * symbol.unit for name, symbol in symbols.items()}
            if all(guard.holds(values) for guard in journal.guards):
                yield substituted(dict(sizes), values)


def _grown(args: Sequence[Any], opening: Opening, sizes: Mapping[str, int]) -> list[Any]:
    """Returns the arguments with inputs of these sizes, which repeat the elements of the sample."""
    number = -1

    def leaf(each: Any) -> Any:
        nonlocal number
        if not isinstance(each, np.ndarray):
            return each
        number += 1
        grown = each
        for axis, extent in enumerate(each.shape):
            size = opening.extent_at(number, axis, sizes, extent)
            grown = np.take(grown, np.arange(size) % extent, axis)
        if each.dtype.kind == "f" and each.shape[-1:] == each.shape[-2:-1]:
            noise = np.sin(np.arange(grown.size)).reshape(grown.shape)  # a square matrix stays invertible
            grown = (grown + 0.25 * noise).astype(each.dtype)
        return np.asarray(grown)

    return [map_leaves(leaf, arg) for arg in args]


def _attributes(sample: Sample, opening: Opening, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the attributes of the sample; sizes of results are those of the open axes with their extent."""
    if all(len(axes) == 1 for _, axes in opening.groups) and len(opening.groups) == 1:
        return sample.attributes
    size_of = {extent: sizes[f"n{i}"] for i, (extent, _) in enumerate(opening.groups)}
    return {
        name: [size_of.get(each, each) for each in value]
        if name in SIZES and isinstance(value, list)
        else value
        for name, value in sample.attributes.items()
    }
