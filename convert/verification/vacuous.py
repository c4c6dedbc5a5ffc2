"""Finds outputs whose comparison is not informative: constant, NaN, or empty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tmconvert.ir import Expr, InternalGraph
from tmconvert.ir.subgraphs import subgraphs_of
from tmconvert.ir.symbolic.data_dependent import data_symbols
from tmconvert.verification.compare import Comparison


def vacuous_outputs(cases: Sequence[Sequence[np.ndarray]], names: Sequence[str]) -> dict[str, str]:
    """Returns a description for each output that is constant, NaN or empty in all test cases, by name."""
    found = {}
    for name, *arrays in zip(names, *cases, strict=True):
        what = untold_output(arrays)
        if what:
            found[name] = what
    return found


def shown_outputs(comparisons: Sequence[Comparison], expected: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns the expected outputs of a case; zeros for those whose comparison is not informative."""
    pairs = zip(comparisons, expected, strict=True)
    return [np.zeros_like(array) if each.is_noise else array for each, array in pairs]


def with_noise(vacuous: dict[str, str], cases: Sequence[Sequence[Comparison]]) -> dict[str, str]:
    """Returns the descriptions, and why outputs are vacuous that are noise in all comparisons."""
    noise = set.intersection(*({each.output for each in case if each.is_noise} for case in cases))
    return vacuous | dict.fromkeys(sorted(noise & vacuous.keys()), "zero but for rounding")


def vacuous_notes(vacuous: dict[str, str]) -> list[str]:
    return [
        f"the output {name} is {what} for all inputs tried, so that its comparison shows nothing"
        for name, what in vacuous.items()
    ]


def untold_output(arrays: Sequence[np.ndarray]) -> str:
    """Describes an output that is uninformative in all cases; a non-zero single element is informative."""
    elements = np.concatenate([np.asarray(array).reshape(-1) for array in arrays])
    if not elements.size:
        return "empty"
    if elements.dtype.kind == "f" and not np.isfinite(elements).any():
        return "NaN" if np.isnan(elements).all() else "NaN or infinite"
    if (elements == elements[0]).all() and (elements.size > 1 or not elements[0]):
        first = elements[0]
        return f"constant ({first:.6g})" if elements.dtype.kind == "f" else f"constant ({first})"
    return ""


def independent_outputs(
    graphs: Iterable[InternalGraph], cases: Sequence[Sequence[np.ndarray]], names: Sequence[str]
) -> list[str]:
    """Returns the names of outputs that no input reaches in ``graphs``, and that are equal in all cases.

    An output that depends on a dynamic size only is reached by none either, but is not equal.
    """
    reached = [_reached(graph) for graph in graphs]
    return [
        name
        for number, name in enumerate(names)
        if not any(each[number] for each in reached)
        and all(np.array_equal(case[number], cases[0][number]) for case in cases)
    ]


def independent_notes(names: Sequence[str]) -> list[str]:
    return [f"the output {name} depends on no input: it is a constant of the file" for name in names]


def _with_subgraphs(graph: InternalGraph) -> Iterator[Expr]:
    for expr in graph:
        yield expr
        for inner in subgraphs_of(expr):
            yield from _with_subgraphs(inner)


def _reached(graph: InternalGraph) -> list[bool]:
    """Returns for each output whether it depends on an input."""
    found, sizes = set(graph.inputs), set[str]()
    for expr in _with_subgraphs(graph):
        if any(node in found for node in expr.inputs) or not sizes.isdisjoint(data_symbols(expr.kwargs)):
            found.update(expr.outputs)
            sizes.update(data_symbols([getattr(node, "shape", None) or () for node in expr.outputs]))
    return [node in found for node in graph.outputs]
