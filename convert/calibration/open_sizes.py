"""Dynamic sizes of a calibrated model, whose graph is built for the sizes of the example."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tmconvert.conversion.io_overrides import BoundModel
from tmconvert.ir import CallFunction, Constant, Expr, InternalGraph, TracedModule
from tmconvert.ir.symbolic.journal import SizeJournal
from tmconvert.ir.symbolic.open_sizes import not_dynamic
from tmconvert.ir.tree import map_leaves
from tmconvert.symbolics.op import Op

RESHAPE = "aten::reshape"
Work = Callable[[InternalGraph], None]


@dataclass(frozen=True)
class OpenSizes:
    """Dynamic sizes: ``axes`` by input and axis; and the dynamic axis of each reshape, by result."""

    axes: dict[str, dict[int, str]]
    places: dict[str, int]

    def leave(self, made: TracedModule) -> None:
        """Makes the sizes dynamic in ``made``, a graph for the sizes of the example."""
        assert made.graph is not None
        made.dynamic_shapes = self.axes
        for expr in list(made.graph):
            place = self.places.get(expr.outputs[0].name) if expr.outputs else None
            if isinstance(expr, CallFunction) and expr.function == RESHAPE and place is not None:
                shape = [-1 if i == place else extent for i, extent in enumerate(expr.kwargs["shape"])]
                made.graph.set_arguments(expr, expr.args, {**expr.kwargs, "shape": shape})


def open_sizes(opened: BoundModel, catalogue: Mapping[str, Op], work: Work) -> OpenSizes:
    """Returns the sizes on which no constant of the graph depends: the graph at another value of them is the
    same.

    A shape may contain such a size once, as it can be -1. ``work`` transforms graphs before they are
    measured. Raises UnsupportedError TM2031 for other sizes.
    """
    sizes = opened.example()
    free, places = list[str](), dict[str, int]()
    for name in sizes:
        found = _places(name, opened, catalogue, work)
        if found is not None and not found.keys() & places.keys():  # a shape has room for one -1
            free.append(name)
            places |= found
    axes = {
        input: {axis: str(extent) for axis, extent in enumerate(shape) if str(extent) in free}
        for input, shape in opened.shapes.items()
    }
    lost = [name for name in sizes if name not in free]
    if lost:
        raise not_dynamic(dict.fromkeys(lost, "constants of the calibrated model depend on it"), sizes)
    return OpenSizes({input: found for input, found in axes.items() if found}, places)


def _places(name: str, opened: BoundModel, catalogue: Mapping[str, Op], work: Work) -> dict[str, int] | None:
    """Returns the reshapes with the size, by result, and the axis; None where other constants use it."""
    graphs: list[list[Expr]] = []
    for sizes in (opened.example(), {**opened.example(), name: opened.other()[name]}):
        with SizeJournal():
            normalized = opened.normalized(catalogue, sizes)
            if normalized.unsupported:
                return None
            work(normalized.graph)
        graphs.append(list(normalized.graph))
    found: dict[str, int] = {}
    if len(graphs[0]) != len(graphs[1]):
        return None
    for one, other in zip(*graphs, strict=True):
        if isinstance(one, Constant) and isinstance(other, Constant):
            if not _is_same(np.asarray(one.value), np.asarray(other.value)):
                return None
        elif isinstance(one, CallFunction) and isinstance(other, CallFunction):
            place = _differing(one, other)
            if place is None and _call(one) != _call(other):
                return None
            if place is not None:
                found[one.outputs[0].name] = place
    return found


def _is_same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _call(expr: CallFunction) -> tuple[str, str, str]:
    names = map_leaves(lambda leaf: getattr(leaf, "name", leaf), list(expr.args))
    return expr.function, repr(names), repr(expr.kwargs)


def _differing(one: CallFunction, other: CallFunction) -> int | None:
    """Returns the axis of the only size in which the shapes of two reshapes differ, or None.

    In their shapes -1 can then replace that size.
    """
    if one.function != RESHAPE or other.function != RESHAPE:
        return None
    shapes = one.kwargs["shape"], other.kwargs["shape"]
    if len(shapes[0]) != len(shapes[1]) or -1 in shapes[0]:
        return None
    places = [place for place, (a, b) in enumerate(zip(*shapes, strict=True)) if a != b]
    return places[0] if len(places) == 1 else None
