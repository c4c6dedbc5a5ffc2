"""Prints graphs in MegEngine's format, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmconvert.errors.source import printable
from tmconvert.ir.expr import CallFunction, CallMethod, Constant, Expr, GetAttr, Input
from tmconvert.ir.inert import GlobalRef
from tmconvert.ir.node import ModuleNode

if TYPE_CHECKING:
    from tmconvert.ir.graph import InternalGraph


def format_graph(graph: InternalGraph) -> str:
    """Returns ``Name.Graph (self, x) { ... }``, one expression a line, as ``print(graph)`` of MegEngine
    1.13.
    """
    title = printable(f"{graph.name}.Graph") if graph.name else ""
    inputs = ", ".join(map(str, graph.inputs))
    body = "".join(f"\t{format_expr(expr)}\n" for expr in graph.exprs())
    # MegEngine joins the lines of the body, so an empty body leaves an empty line
    return (
        f"{title} ({inputs}) {{\n{body or chr(9) + chr(10)}\treturn {', '.join(map(str, graph.outputs))}\n}}"
    )


def format_expr(expr: Expr) -> str:
    """Returns ``%7:\tout = nn.relu(x, )``; positional arguments of a call end with a comma."""
    return f"%{expr.id}:\t{printable(_body(expr))}"


def _body(expr: Expr) -> str:
    if isinstance(expr, Input):
        return f"{expr.outputs[0]} = Input()"
    if isinstance(expr, GetAttr):
        return f'{expr.outputs[0]} = getattr({expr.args[0]}, "{expr.name}") -> ({_kind(expr)})'
    if isinstance(expr, Constant):
        kind = "Module" if isinstance(expr.outputs[0], ModuleNode) else "Tensor"
        return f"{expr.outputs[0]} = Constant({expr.name or ''}) -> ({kind})"
    if isinstance(expr, CallMethod):
        method = "" if expr.method == "__call__" else f".{expr.method}"
        return f"{_result(expr)}{_shown(expr.args[0])}{method}({_arguments(expr.args[1:], expr.kwargs)})"
    assert isinstance(expr, CallFunction)
    if "." not in expr.label:  # a raw operator: MegEngine shows no attributes and no trailing comma
        return f"{', '.join(map(str, expr.outputs))} = {expr.label}({', '.join(map(str, expr.args))})"
    return f"{_result(expr)}{expr.label}({_arguments(expr.args, expr.kwargs)})"


def _kind(expr: Expr) -> str:
    node = expr.outputs[0]
    return node.class_name.rpartition(".")[2] if isinstance(node, ModuleNode) else "Tensor"


def _result(expr: Expr) -> str:
    return f"{expr.result} = " if expr.outputs else ""


def _arguments(args: tuple[object, ...], kwargs: dict[str, object]) -> str:
    positional = ", ".join(map(_shown, args))
    keywords = ", ".join(f"{key}={_shown(value)}" for key, value in kwargs.items())
    return f"{positional}, {keywords}"


def _shown(value: object) -> str:
    return f"<class '{value}'>" if isinstance(value, GlobalRef) else str(value)
