"""Prints graphs in MegEngine's format, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmconvert.errors.source import printable
from tmconvert.ir.expr import CallFunction, CallMethod, Constant, Expr, GetAttr, Input
from tmconvert.ir.inert import GlobalRef
from tmconvert.ir.node import ModuleNode, Node, TensorNode
from tmconvert.ir.tree import Tree, map_leaves

if TYPE_CHECKING:
    from tmconvert.ir.graph import InternalGraph
    from tmconvert.ir.traced_module import TracedModule

LONGEST_CELL = 60  # characters of a table's cell
# attributes that modules of MegEngine and PyTorch have besides their settings
NO_SETTINGS = frozenset({"name", "training", "quantize_disabled", "is_qat", "freeze"})
# settings that are shown only where they have another value
USUAL: dict[str, tuple[object, ...]] = {
    "stride": (1, (1,), (1, 1), (1, 1, 1)),
    "padding": (0, (0,), (0, 0), (0, 0, 0)),
    "dilation": (1, (1,), (1, 1), (1, 1, 1)),
    "output_padding": (0, (0,), (0, 0), (0, 0, 0)),
    "groups": (1,),
    "padding_mode": ("zeros",),
    "conv_mode": ("cross_correlation",),
    "compute_mode": ("default",),
    "transposed": (True, False),
    "inplace": (True, False),
}


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


# ---- tables and trees


def format_table(graph: InternalGraph) -> str:
    """Returns a table with a row for each node of ``graph.nodes``."""
    rows: list[tuple[str, ...]] = [("id", "op", "name", "target", "args", "kwargs", "type")]
    for node in graph.nodes:
        kind = _type(node) if isinstance(node, TensorNode) else ""
        number = str(node.id) if isinstance(node, Node) else ""
        cells = number, node.op, node.name, node.target, str(node.args), str(node.kwargs), kind
        rows.append(tuple(_cell(cell) for cell in cells))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(
        line.rstrip() for line in [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]
    )


def _type(node: TensorNode) -> str:
    return "" if node.shape is None or node.dtype is None else str(node.type)


def _cell(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= LONGEST_CELL else f"{shown[: LONGEST_CELL - 3]}..."


def format_tree(module: TracedModule) -> str:
    """Returns a module with its settings and those in it, indented. A shared module shows its children only
    at its first position.
    """
    lines: list[str] = []
    _add_tree(module, "", "", lines, set())
    return "\n".join(map(printable, lines))


def _add_tree(module: TracedModule, label: str, indent: str, lines: list[str], seen: set[int]) -> None:
    title = f"{indent}{label}{module.class_name.rpartition('.')[2] or 'TracedModule'}"
    settings = _settings(module)
    if not module.children or id(module) in seen:
        lines.append(f"{title}({settings})")
        return
    seen.add(id(module))
    lines.append(f"{title}(")
    if settings:
        lines.append(f"{indent}  {settings}")
    for name, child in module.children.items():
        _add_tree(child, f"({name}): ", f"{indent}  ", lines, seen)
    lines.append(f"{indent})")


def _settings(module: TracedModule) -> str:
    plain = (bool, int, float, str, tuple)
    shown = {
        name: value
        for name, value in module.attributes.items()
        if isinstance(value, plain)
        and not name.startswith("_")
        and name not in NO_SETTINGS
        and value not in USUAL.get(name, ())
    }
    return ", ".join(f"{name}={_short(value)}" for name, value in shown.items())


def _short(value: object) -> str:
    return _cell(repr(value))
