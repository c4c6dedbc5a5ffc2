"""Selects the tensors of a float graph to quantize, and those that share QParams."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Literal

import numpy as np

from tmconvert.ir import CallFunction, Constant, Expr, Input, InternalGraph, TensorNode
from tmconvert.passes.patterns.matching import integer_weights
from tmconvert.symbolics.registry import has_trait, trait_of
from tmconvert.symbolics.traits import Average, BoundedByOther, Clamp, Concatenates, KeepsQparams

# what a tensor is to be in: the user's rules name the first three; "places" are int16 with as many steps as a
# lookup table has entries, "narrow" is int8 with measured parameters where kernels have fixed ones
Kind = Literal["int8", "int16", "float", "places", "narrow"]
KindOf = Callable[[Expr], Kind]


def kinds(graph: InternalGraph, rules: list[tuple[str, Kind]], default: Kind = "int8") -> KindOf:
    """Returns the type of each call by the last rule whose pattern matches one of its modules or the name of
    its result.

    A clamp is part of the call before it, whose type it gets.
    """

    def kind(expr: Expr) -> Kind:
        names = [name for each in fused_calls(graph, expr) for name in names_of_call(each)]
        found: list[Kind] = [
            kind for pattern, kind in rules if any(fnmatchcase(name, pattern) for name in names)
        ]
        return found[-1] if found else default

    return kind


def fused_calls(graph: InternalGraph, expr: Expr) -> Iterator[Expr]:
    """Returns a call, and those before it whose results do not exist in integer files."""
    yield expr
    operand = expr.args[0] if isinstance(expr, CallFunction) and _is_clamp(expr) else None
    if isinstance(operand, TensorNode) and is_clamped(graph, operand) and operand.expr is not None:
        yield from fused_calls(graph, operand.expr)


def names_of_call(expr: Expr) -> Iterator[str]:
    """Returns the names by which a rule matches a call: its modules and its results."""
    yield from _modules(expr)
    yield from (node.name for node in expr.outputs)


def _modules(expr: Expr) -> Iterator[str]:
    """Returns the paths of the modules of a call: where it was called, and whose parameters it uses."""
    paths = {expr.source.scope if expr.source else ""}
    for node in expr.inputs:
        if isinstance(node.expr, Constant) and node.expr.name:
            paths.add(node.expr.name.rpartition(".")[0])
    for path in paths:
        while path:
            yield path
            path = path.rpartition(".")[0]


def unused_patterns(graph: InternalGraph, rules: list[tuple[str, Kind]]) -> list[str]:
    """Returns the patterns that match nothing."""
    return [pattern for pattern, _ in rules if not _fitting(graph, pattern)]


def patterns_without_effect(graph: InternalGraph, rules: list[tuple[str, Kind]]) -> list[tuple[str, Expr]]:
    """Returns the patterns that match only calls whose results keep their operands' scales, or inputs that
    are to be in float, each with one of these.
    """
    found = []
    for pattern, kind in rules:
        fitting = _fitting(graph, pattern)
        if not any(_is_affected(graph, expr, kind) for expr in fitting):
            found.append((pattern, fitting[0]))
    return found


def _is_affected(graph: InternalGraph, expr: Expr, kind: Kind) -> bool:
    """Whether a rule for an input or call changes a tensor."""
    if isinstance(expr, Input):
        return kind != "float"  # what integer layers use has a scale
    return isinstance(expr, CallFunction) and any(_is_observed(graph, expr, node) for node in expr.outputs)


def _fitting(graph: InternalGraph, pattern: str) -> list[Expr]:
    kind_of = kinds(graph, [(pattern, "int8")], "float")
    inputs = [node.expr for node in graph.inputs if isinstance(node.expr, Input)]
    return [expr for expr in (*inputs, *graph) if kind_of(expr) == "int8"]


def observed_nodes(graph: InternalGraph, kind_of: KindOf) -> list[TensorNode]:
    """Returns the tensors to measure, in order: inputs, and results of calls to be quantized."""
    nodes = [node for node in graph.inputs if isinstance(node, TensorNode) and _is_float(node)]
    nodes = [node for node in nodes if any(kind_of(user) != "float" for user in node.users)]
    for expr in graph:
        if isinstance(expr, CallFunction) and kind_of(expr) != "float":
            outputs = [node for node in expr.outputs if isinstance(node, TensorNode)]
            nodes += [node for node in outputs if _is_observed(graph, expr, node)]
    return nodes


def _is_observed(graph: InternalGraph, expr: CallFunction, node: object) -> bool:
    if not isinstance(node, TensorNode) or not _is_float(node):
        return False
    # averages are kept by the runtimes, but measured they are finer
    if has_trait(expr, KeepsQparams) and not has_trait(expr, Average):
        return False
    return not is_clamped(graph, node)


def is_clamped(graph: InternalGraph, node: TensorNode) -> bool:
    """Whether only clamps use the tensor."""
    return bool(node.users) and all(map(_is_clamp, node.users)) and not graph.is_output(node)


def _is_clamp(user: Expr) -> bool:
    """Whether integer kernels fuse the clamp into the op that computes its operand."""
    return has_trait(user, Clamp) or upper_bounds(user) is not None


def computed_kind(graph: InternalGraph, expr: Expr, kind_of: KindOf) -> Kind:
    """Returns the integer type of a call: that of its result, or of the clamps after it."""
    (node,) = expr.outputs
    if not isinstance(node, TensorNode) or not is_clamped(graph, node):
        return kind_of(expr)
    found = {computed_kind(graph, user, kind_of) for user in node.users}
    return "int16" if "int16" in found else kind_of(expr)


def upper_bounds(expr: Expr) -> np.ndarray | None:
    """Returns the bounds of a minimum with constants."""
    if not isinstance(expr, CallFunction) or not has_trait(expr, BoundedByOther):
        return None
    if not isinstance(expr.args[1], TensorNode):
        return None
    other = expr.args[1].expr
    return np.asarray(other.value) if isinstance(other, Constant) else None


def result_bounds(expr: Expr) -> tuple[float, float]:
    """Returns the ends of what a clamp or a minimum with constants can give; infinite ones of others."""
    minimum, clamp = upper_bounds(expr), trait_of(expr, Clamp)
    if minimum is not None:
        return -math.inf, float(minimum.min())
    if clamp is None or not isinstance(expr, CallFunction):
        return -math.inf, math.inf
    low, high = clamp.bounds(expr.kwargs)
    return -math.inf if low is None else float(low), math.inf if high is None else float(high)


def _is_float(node: TensorNode) -> bool:
    return node.dtype == np.float32


def shared_qparams(graph: InternalGraph, nodes: list[TensorNode]) -> Iterator[tuple[TensorNode, TensorNode]]:
    """Returns pairs of an operand and the result of a concatenation that must have the same QParams."""
    known = set(nodes)
    for expr in graph:
        if isinstance(expr, CallFunction) and has_trait(expr, Concatenates):
            result = expr.outputs[0]
            for operand in expr.inputs:
                alone = operand in known and len(operand.users) == 1 and operand not in graph.inputs
                if alone and result in known and isinstance(operand, TensorNode):
                    assert isinstance(result, TensorNode)
                    yield operand, result


def weights(graph: InternalGraph, kind_of: KindOf) -> Iterator[tuple[Constant, int | None]]:
    """Returns constant weights of calls to be quantized, with the channel axis, if any.

    Weights with other users, such as a recurrent layer next to its decomposition, have no QParams.
    """
    for expr in graph:
        trait = integer_weights(expr)
        if not isinstance(expr, CallFunction) or trait is None or kind_of(expr) == "float":
            continue
        weight = expr.args[1]
        is_shared = any(integer_weights(user) is None for user in weight.users)
        if isinstance(weight, TensorNode) and isinstance(weight.expr, Constant) and not is_shared:
            is_mixed = trait.is_transposed and expr.kwargs["groups"] > 1  # a channel is one of each group
            yield weight.expr, None if is_mixed else trait.output_axis
