"""Prints graphs in MegEngine's format, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmconvert.errors.source import printable
from tmconvert.ir.expr import CallFunction, CallMethod, Constant, Expr, GetAttr, Input
from tmconvert.ir.inert import GlobalRef
from tmconvert.ir.node import ModuleNode, Node
from tmconvert.ir.tree import Tree, map_leaves

if TYPE_CHECKING:
    from tmconvert.ir.graph import InternalGraph


def format_graph(graph: InternalGraph, spec: str = "") -> str:
    """Returns ``Name.Graph (self, x) { ... }``, one expression a line, as ``print(graph)`` of MegEngine
    1.13. ``spec`` is how nodes are shown, see ``Node.__format__``.
    """
    title = printable(f"{graph.name}.Graph") if graph.name else ""
    inputs = ", ".join(format(node, spec) for node in graph.inputs)
    outputs = ", ".join(format(node, spec) for node in graph.outputs)
    body = "".join(f"\t{format_expr(expr, spec)}\n" for expr in graph)
    # MegEngine joins the lines of the body, so an empty body leaves an empty line
    return f"{title} ({inputs}) {{\n{body or chr(9) + chr(10)}\treturn {outputs}\n}}"


def format_expr(expr: Expr, spec: str = "") -> str:
    """Returns ``%7:\tout = nn.relu(x, )``; positional arguments of a call end with a comma."""
    return f"%{expr.id}:\t{printable(_Shown(spec).body(expr))}"


class _Shown:
    """Formats expressions with one way of showing nodes."""

    def __init__(self, spec: str) -> None:
        self.spec = spec

    def body(self, expr: Expr) -> str:
        output = self.text(expr.outputs[0]) if expr.outputs else ""
        if isinstance(expr, Input):
            return f"{output} = Input()"
        if isinstance(expr, GetAttr):
            return f'{output} = getattr({self.text(expr.args[0])}, "{expr.name}") -> ({_kind(expr)})'
        if isinstance(expr, Constant):
            kind = "Module" if isinstance(expr.outputs[0], ModuleNode) else "Tensor"
            return f"{output} = Constant({expr.name or ''}) -> ({kind})"
        if isinstance(expr, CallMethod):
            method = "" if expr.method == "__call__" else f".{expr.method}"
            arguments = self.arguments(expr.args[1:], expr.kwargs)
            return f"{self.result(expr)}{self.text(expr.args[0])}{method}({arguments})"
        assert isinstance(expr, CallFunction)
        if "." not in expr.label:  # a raw operator: MegEngine shows no attributes and no trailing comma
            outputs = ", ".join(map(self.text, expr.outputs))
            return f"{outputs} = {expr.label}({', '.join(map(self.text, expr.args))})"
        return f"{self.result(expr)}{expr.label}({self.arguments(expr.args, expr.kwargs)})"

    def result(self, expr: Expr) -> str:
        return f"{self.text(expr.result)} = " if expr.outputs else ""

    def arguments(self, args: tuple[Tree, ...], kwargs: dict[str, Tree]) -> str:
        positional = ", ".join(map(self.text, args))
        keywords = ", ".join(f"{key}={self.text(value)}" for key, value in kwargs.items())
        return f"{positional}, {keywords}"

    def text(self, value: Tree) -> str:
        if isinstance(value, GlobalRef):
            return f"<class '{value}'>"
        if not self.spec:
            return str(value)
        return str(map_leaves(self._leaf, value))

    def _leaf(self, leaf: object) -> object:
        return _Word(format(leaf, self.spec)) if isinstance(leaf, Node) else leaf


class _Word(str):
    """A text that shows itself without quotes in a list."""

    __slots__ = ()
    __repr__ = str.__str__


def _kind(expr: Expr) -> str:
    node = expr.outputs[0]
    return node.class_name.rpartition(".")[2] if isinstance(node, ModuleNode) else "Tensor"
