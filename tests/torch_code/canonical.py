"""A text of a model's graph in which differences of spelling do not show."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, Constant, Node, TensorNode, TracedModule
from tmconvert.ir.text import digest
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.normalize import normalize
from tmconvert.symbolics.registry import catalogue

DIMS = {"dim", "dims", "dim1", "dim2"}


def canonical(module: TracedModule) -> str:
    """The calls of the normalized graph: values are numbered, constants stand where they are used.

    Negative axes count from the front, and what is cast to int64 and back, as PyTorch's indices are in a
    graph of int32, is not cast.
    """
    graph = normalize(module.flatten(), catalogue()).graph
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
