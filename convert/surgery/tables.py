"""Prints graphs as tables, and modules as trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmconvert.errors.source import printable
from tmconvert.ir import Node, TensorNode, TracedModule

if TYPE_CHECKING:
    from tmconvert.surgery.graph import InternalGraph

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
    """Returns a module with its settings and children, indented; a shared module's once."""
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
