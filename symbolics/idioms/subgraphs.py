"""Shared by ops with subgraphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tmconvert.errors import UnsupportedError
from tmconvert.ir import Expr, InternalGraph, TensorType
from tmconvert.ir.interpreter import Interpreter
from tmconvert.ir.node import TensorNode
from tmconvert.ir.symbolic.data_dependent import bound, data_symbols
from tmconvert.ir.symbolic.dims import substituted
from tmconvert.ir.tree import leaves
from tmconvert.symbolics.registry import catalogue

MOST_STEPS = 20_000  # of a loop that is run by the reference kernels


def run(body: InternalGraph, inputs: Sequence[Any]) -> list[Any]:
    """Computes the results of a subgraph on arrays, by the reference kernels."""

    sizes = sizes_of(body, inputs)

    def evaluate(expr: Expr, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        op = catalogue()[expr.function]  # type: ignore[attr-defined]
        result = op.evaluate(args, substituted(kwargs, sizes))
        sizes.update(bound(expr, list(leaves(result))))
        return result

    return list(Interpreter(body, evaluate=evaluate).run(*inputs))


def sizes_of(body: InternalGraph, inputs: Sequence[Any]) -> dict[str, int]:
    """Returns the open sizes of a subgraph that its inputs show, by name."""
    sizes: dict[str, int] = {}
    for node, array in zip(body.inputs, inputs, strict=True):
        assert node.expr is not None
        sizes.update(bound(node.expr, [array]))
    return sizes


def limited_steps() -> Iterator[int]:
    """Counts the steps of a loop. Raises UnsupportedError TM2008 for one that a file can make endless."""
    yield from range(MOST_STEPS)
    help = "--no-verify (verify=False) writes a file without running the model"
    raise UnsupportedError("TM2008", f"a loop takes more than {MOST_STEPS:,} steps", notes=[("help", help)])


def one_or_all(results: list[Any]) -> Any:
    """Returns a kernel's results: a list, where it has several."""
    return results[0] if len(results) == 1 else results


def types_of(body: InternalGraph, what: str) -> list[TensorType]:
    """Returns the types of a subgraph's results. Raises ValueError for a data-dependent size."""
    types = [node.type for node in body.outputs if isinstance(node, TensorNode)]
    given = data_symbols([node.type.shape for node in body.inputs if isinstance(node, TensorNode)])
    if set(data_symbols([type_.shape for type_ in types])) - set(given):
        raise ValueError(f"{what} returns a tensor whose size depends on the data")
    return types
