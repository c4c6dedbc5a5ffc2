"""Texts of a model's graph, to compare graphs that were traced at different places."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, Constant, InternalGraph, Node, TensorNode, TracedModule
from tmconvert.ir.text import digest, expr_to_text
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.normalize import normalize
from tmconvert.passes.rewriting import emitter_before
from tmconvert.symbolics.registry import catalogue

_NODE = re.compile(r"%([\w.]+)")
DIMS = {"dim", "dims", "dim1", "dim2"}


def exact(module: TracedModule) -> str:
    """The text form of the normalized graph without places, with values and constants by what they are.

    Results are numbered in the order of the calls; a constant stands as its digest and type where it is used.
    """
    graph = normalize(module.flatten(), catalogue()).graph
    EliminateDeadCode().run(graph)
    names = {node.name: f"input {place}" for place, node in enumerate(graph.inputs)}
    lines: list[str] = []
    for expr in graph:
        if isinstance(expr, Constant):
            names[expr.output.name] = f"<{digest(np.asarray(expr.value))} {expr.output.type}>"
            continue
        text = expr_to_text(expr).partition("   loc(")[0].partition(" = ")[2]
        lines.append(_NODE.sub(lambda match: names.get(match[1], match[0]), text))
        names.update((node.name, f"%{len(lines)}.{place}") for place, node in enumerate(expr.outputs))
    return "\n".join([*lines, f"return {[names[node.name] for node in graph.outputs]}"])


def canonical(module: TracedModule) -> str:
    """Like ``exact``, for graphs in the words of two frameworks.

    Negative axes count from the front, numbers are floats, what is cast to int64 and back, as PyTorch's
    indices are in a graph of int32, is not cast, and what has no function in PyTorch is the operations of its
    helper.
    """
    graph = normalize(module.flatten(), catalogue()).graph
    _expand(graph)
    EliminateDeadCode().run(graph)
    texts: dict[Node, str] = {node: f"input {place}" for place, node in enumerate(graph.inputs)}
    lines: list[str] = []
    for expr in graph:
        if isinstance(expr, Constant):
            texts[expr.output] = f"{digest(np.asarray(expr.value))} {expr.output.type}"
            continue
        assert isinstance(expr, CallFunction)
        if expr.function == "aten::to" and _is_detour(expr):
            texts[expr.output] = texts[expr.args[0]]
            continue
        arguments = [_text(arg, texts) for arg in expr.args]
        first = next((arg for arg in expr.args if isinstance(arg, TensorNode)), None)
        rank = len(first.shape or ()) if first is not None else 0
        settings = {name: _positive(name, value, rank) for name, value in expr.kwargs.items()}
        lines.append(f"{expr.function}({', '.join(arguments)}) {settings}")
        for number, node in enumerate(expr.outputs):
            texts[node] = f"%{len(lines)}.{number}"
    return "\n".join([*lines, f"return {[_text(node, texts) for node in graph.outputs]}"])


def _expand(graph: InternalGraph) -> None:
    """Replaces rounding halves away from zero by what ``_round_half_away`` of generated code does."""
    for expr in list(graph):
        if isinstance(expr, CallFunction) and expr.function == "tm::round_half_away":
            g = emitter_before(expr, catalogue(), "test")
            (x,) = expr.args
            whole, sign = g.call("aten::trunc", x), g.call("aten::sign", x)
            rest = g.call("aten::abs", g.call("aten::sub", x, whole))
            half = g.constant(0.5, x.dtype)
            is_far = g.call("aten::to", g.call("aten::ge", rest, half), dtype=x.dtype.name)
            graph.replace_uses(expr.output, g.call("aten::add", whole, g.call("aten::mul", sign, is_far)))
            graph.remove(expr)


def _is_detour(expr: CallFunction) -> bool:
    return all(type_.dtype in (np.int32, np.int64) for type_ in (expr.args[0].type, expr.output.type))


def _text(arg: Any, texts: dict[Node, str]) -> str:
    if isinstance(arg, (list, tuple)):
        return f"[{', '.join(_text(item, texts) for item in arg)}]"
    return texts[arg] if isinstance(arg, Node) else str(arg)


def _positive(name: str, value: Any, rank: int) -> Any:
    if isinstance(value, (list, tuple)):
        return [_positive(name, item, rank) for item in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value % rank if name in DIMS and rank and value < 0 else value)
    return value
