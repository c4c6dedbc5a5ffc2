"""Data-dependent sizes, such as the number of true elements of a mask.

A type rule returns such an extent as ``found(most)``, a placeholder: the emitter of the call replaces each
one by a new symbol (``named``); the verifier (``agree``) and decompositions (``taken_over``) match them.
These symbols cannot be specialized, and may be 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tmconvert.errors import TmconvertError
from tmconvert.ir.expr import CallFunction, Expr
from tmconvert.ir.node import TensorNode
from tmconvert.ir.symbolic.dims import Dim, Size, Symbol, example, of, sole_symbol, substituted, symbols_of
from tmconvert.ir.symbolic.journal import SizeJournal
from tmconvert.ir.tree import map_leaves
from tmconvert.ir.types import TensorType

if TYPE_CHECKING:
    from tmconvert.ir.emitter import OpDefinition
    from tmconvert.ir.graph import InternalGraph

STAND_IN = "?"


def found(most: Size) -> Dim:
    """Returns a new data-dependent size of at most ``most`` (for estimates), as an extent of a result."""
    return of(Symbol(STAND_IN, example(most), from_data=True))


def data_symbols(tree: object) -> dict[str, Symbol]:
    """Returns the data-dependent symbols among the leaves, by name."""
    return {name: symbol for name, symbol in symbols_of(tree).items() if symbol.from_data}


def depends_on_data(graph: InternalGraph) -> bool:
    """Whether the graph has a data-dependent size."""
    return bool(data_symbols(_shapes(graph)))


def named(types: list[TensorType], graph: InternalGraph, equal: Size | None = None) -> list[TensorType]:
    """Replaces the placeholder in types by the size that it is ``equal`` to, or a symbol new to ``graph``."""
    stand_in = symbols_of([type_.shape for type_ in types]).get(STAND_IN)
    if stand_in is None:
        return types
    if equal is not None:
        return [_with_sizes(type_, {STAND_IN: equal}) for type_ in types]
    taken, number = symbols_of(_shapes(graph)), 1
    while f"found_{number}" in taken:
        number += 1
    symbol = of(Symbol(f"found_{number}", stand_in.example, from_data=True))
    return [_with_sizes(type_, {STAND_IN: symbol}) for type_ in types]


def agree(expected: list[TensorType], actual: list[TensorType]) -> bool:
    """Whether inferred types equal those of the nodes; the placeholder matches any symbol."""
    if not any(isinstance(size, Dim) for each in expected for size in each.shape):
        return expected == actual
    if [(each.dtype, each.rank) for each in expected] != [(each.dtype, each.rank) for each in actual]:
        return False
    for size, extent in _extents(expected, actual):
        symbol = sole_symbol(size)
        if symbol is not None and symbol.name == STAND_IN:
            return [_with_sizes(each, {STAND_IN: extent}) for each in expected] == actual
    return expected == actual


def taken_over(
    graph: InternalGraph, old: list[TensorType], new: list[TensorType], catalogue: Mapping[str, OpDefinition]
) -> None:
    """Replaces data-dependent symbols of ``old`` by the sizes of ``new``, in the whole graph.

    The types of later calls may become static: a slice of a tensor that is now known to have 15 rows has a
    static size.
    """
    next_ones: tuple[list[TensorType], list[TensorType]] | None = (old, new)
    while next_ones is not None:
        old, new = next_ones
        if [each.rank for each in old] != [each.rank for each in new]:
            return
        symbols = ((sole_symbol(was), size) for was, size in _extents(old, new))
        sizes = {symbol.name: size for symbol, size in symbols if symbol is not None and symbol.from_data}
        if not sizes:
            return
        for expr in graph:
            expr.kwargs = _within_axis(expr, substituted(expr.kwargs, sizes))
            for node in expr.outputs:
                if isinstance(node, TensorNode) and node.shape is not None:
                    node.shape = substituted(node.shape, sizes)
        next_ones = next(_outdated(graph, catalogue), None)


def _within_axis(expr: Expr, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Clamps the bounds of a slice to its axis, whose size was data-dependent and is known by now."""
    if not isinstance(expr, CallFunction) or expr.function != "aten::slice":
        return kwargs
    shape = getattr(expr.inputs[0], "shape", None) or ()
    extent, start, end = shape[kwargs["dim"]], kwargs["start"], kwargs["end"]
    if not all(isinstance(each, int) for each in (extent, start, end)) or end <= extent:
        return kwargs
    return {**kwargs, "start": min(start, extent), "end": extent}


def _outdated(
    graph: InternalGraph, catalogue: Mapping[str, OpDefinition]
) -> Iterator[tuple[list[TensorType], list[TensorType]]]:
    """Yields results whose types have data-dependent symbols that are now known, with the new types."""
    for expr in graph:
        op = catalogue.get(expr.function) if isinstance(expr, CallFunction) else None
        actual = [node.type for node in expr.outputs if isinstance(node, TensorNode)]
        if op is None or not data_symbols([each.shape for each in actual]):
            continue
        given = map_leaves(lambda leaf: None if leaf is None else leaf.type, list(expr.args))
        try:
            with SizeJournal():  # what is compared here is nothing that the conversion relies on
                expected = op.infer(given, expr.kwargs)
        except TmconvertError:  # sizes that have to be equal, which only the data tells
            continue
        left = set(symbols_of([each.shape for each in expected]))
        if STAND_IN not in left and left != set(symbols_of([each.shape for each in actual])):
            yield actual, expected


def bound(expr: Expr, arrays: Sequence[Any]) -> dict[str, int]:
    """Binds the symbols in the result types of ``expr`` to extents of its arrays."""
    sizes = {}
    for node, array in zip(expr.outputs, arrays, strict=True):
        for extent, size in zip(getattr(node, "shape", None) or (), array.shape, strict=False):
            symbol = sole_symbol(extent)
            if symbol is not None:
                sizes[symbol.name] = size
    return sizes


def anonymous(types: list[TensorType]) -> list[TensorType]:
    """Renames data-dependent symbols in types by order of appearance, for comparisons."""
    symbols = data_symbols([type_.shape for type_ in types])
    sizes = {name: of(Symbol(f"{STAND_IN}{i}", 0, from_data=True)) for i, name in enumerate(symbols)}
    return [_with_sizes(type_, sizes) for type_ in types]


def _extents(first: list[TensorType], second: list[TensorType]) -> Iterator[tuple[Size, Size]]:
    for one, other in zip(first, second, strict=True):
        yield from zip(one.shape, other.shape, strict=True)


def _with_sizes(type_: TensorType, sizes: Mapping[str, Size]) -> TensorType:
    return TensorType(type_.dtype, substituted(type_.shape, sizes))


def _shapes(graph: InternalGraph) -> list[Any]:
    nodes = [*graph.inputs, *(node for expr in graph for node in expr.outputs)]
    return [node.shape for node in nodes if isinstance(node, TensorNode) and node.shape is not None]
