"""The typed text form of a flat graph, one expression a line; ``parser.py`` reads it back.

    graph head(%x: f32[2,3,5,7]) -> (%y) {
      %w = aten::constant() {digest="9f2c...", name="head.weight"} : f32[10,3,1,1]
      %y = aten::conv2d(%x, %w, none) {stride=[1,2], ...} : f32[2,10,5,4]   loc("net.py":57, "head", "Head")
    }

Symbolic sizes print as expressions; the name is followed by their symbols with the sizes of the example and,
for a size that is a multiple of a number, that number: ``graph head{batch=2, height=64/32}(...)``. Constants
of up to 16 elements print their values, larger ones a digest of their bytes.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.errors import UsageError
from tmconvert.errors.source import Source
from tmconvert.ir.expr import CallFunction, Constant, Expr
from tmconvert.ir.node import Node, TensorNode
from tmconvert.ir.symbolic.dims import Dim, symbols_of
from tmconvert.ir.types import QParams

if TYPE_CHECKING:
    from tmconvert.ir.graph import InternalGraph

INLINE_ELEMENTS = 16
_NAME = re.compile(r"[A-Za-z_0-9.]+")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9.]*")


def graph_to_text(graph: InternalGraph) -> str:
    """Prints the whole graph. Raises UsageError for a graph that still has modules or methods."""
    inputs = ", ".join(f"{_value(node)}: {_type(node)}{_place(node.expr)}" for node in graph.inputs)
    name = graph.name or "main"
    title = name if _WORD.fullmatch(name) else _string(name)
    lines = [f"graph {title}{_symbols(graph)}({inputs}) -> {_result(graph.result)} {{"]
    lines += [f"  {expr_to_text(expr)}" for expr in graph]
    return "\n".join([*lines, "}"]) + "\n"


def _symbols(graph: InternalGraph) -> str:
    """Prints name and example of each symbol; a question mark follows the example of a data-dependent one."""
    nodes = [*graph.inputs, *(node for expr in graph for node in expr.outputs)]
    shapes = [node.shape for node in nodes if isinstance(node, TensorNode)]
    parts = [
        f"{name}={symbol.example * symbol.unit}"
        + (f"/{symbol.unit}" if symbol.unit > 1 else "")
        + ("?" if symbol.from_data else "")
        for name, symbol in symbols_of(shapes).items()
    ]
    return f"{{{', '.join(parts)}}}" if parts else ""


def expr_to_text(expr: Expr) -> str:
    """Prints one expression, without indentation."""
    results = ", ".join(map(_value, expr.outputs))
    types = ", ".join(map(_type, expr.outputs))
    if len(expr.outputs) != 1:
        types = f"({types})"
    if isinstance(expr, Constant) and isinstance(expr.value, np.ndarray):
        call = f"aten::constant() {_attributes(_constant_attributes(expr))}"
    elif isinstance(expr, CallFunction):
        call = f"{expr.function}({', '.join(map(_argument, expr.args))})"
        if expr.kwargs:
            call += f" {_attributes(expr.kwargs)}"
    else:
        raise UsageError("TM6005", "only a flat, normalized graph has a typed text form", excerpt=repr(expr))
    return f"{results} = {call} : {types}{_place(expr)}"


def describe(expr: Expr) -> str:
    """Prints one expression for a message: typed, where that exists, else as MegEngine; without location."""
    try:
        return expr_to_text(expr).partition("   loc(")[0]
    except UsageError:
        return repr(expr).replace("\t", " ")


def digest(array: np.ndarray) -> str:
    """Returns 16 hexadecimal digits that identify type, shape and bytes of an array."""
    import hashlib

    state = hashlib.blake2b(f"{array.dtype.str}{array.shape}".encode(), digest_size=8)
    state.update(np.ascontiguousarray(array).data)
    return state.hexdigest()


def graph_constants(graph: InternalGraph) -> dict[str, np.ndarray]:
    """Returns digest -> array of all constants that the text form does not print in full."""
    from tmconvert.ir.subgraphs import nested

    graphs = nested(graph)
    values = [expr.value for each in graphs for expr in each if isinstance(expr, Constant)]
    return {digest(value): value for value in values if value.size > INLINE_ELEMENTS}


def _constant_attributes(expr: Constant) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    if expr.value.size <= INLINE_ELEMENTS:
        attributes["value"] = [_scalar(item) for item in expr.value.reshape(-1)]
    else:
        attributes["digest"] = digest(expr.value)
    if expr.name is not None:
        attributes["name"] = expr.name
    return attributes


class _Literal(str):
    """Text that is printed unchanged."""

    __slots__ = ()


def _scalar(item: np.generic) -> Any:
    # str() of a NumPy float is the shortest text that reads back as the same float of that width
    return _Literal(str(item)) if isinstance(item, np.floating) else item.item()


def _attributes(attributes: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{key}={_attribute(value)}" for key, value in attributes.items()) + "}"


def _attribute(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, _Literal, Dim)):
        return str(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_attribute, value)) + "]"
    if hasattr(value, "to_text"):  # a graph inside of the call
        return str(value.to_text()).rstrip("\n").replace("\n", "\n  ")
    raise UsageError("TM6005", f"an attribute of type {type(value).__name__} has no text form")


def _value(node: Node) -> str:
    """Returns ``%x``, or ``%"x:0"`` for a name with other characters."""
    return f"%{node.name if _NAME.fullmatch(node.name) else _string(node.name)}"


def _argument(tree: Any) -> str:
    if isinstance(tree, Node):
        return _value(tree)
    if isinstance(tree, list):
        return "[" + ", ".join(map(_argument, tree)) + "]"
    return _attribute(tree)


def _result(tree: Any) -> str:
    return f"({_argument(tree)})" if isinstance(tree, Node) else _result_tree(tree)


def _result_tree(tree: Any) -> str:
    if isinstance(tree, tuple):
        return "(" + "".join(f"{_result_tree(child)}, " for child in tree).strip() + ")"
    if isinstance(tree, list):
        return "[" + ", ".join(map(_result_tree, tree)) + "]"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{_key(key)}: {_result_tree(tree[key])}" for key in tree) + "}"
    return _argument(tree)


def _key(key: Any) -> str:
    if not isinstance(key, (str, int)) or isinstance(key, bool):
        raise UsageError("TM6005", f"a result with a key of type {type(key).__name__} has no text form")
    return _attribute(key)


def _string(text: str) -> str:
    """A JSON string; characters that no file can hold (half a surrogate pair) are escaped."""
    is_plain = text.isascii() or text.encode("utf-8", "replace").decode() == text
    return json.dumps(text, ensure_ascii=not is_plain)


def _type(node: Node) -> str:
    if not isinstance(node, TensorNode):
        raise UsageError("TM6005", "only a flat, normalized graph has a typed text form", excerpt=str(node))
    text = str(node.type) if node.shape is not None and node.dtype is not None else "?"
    if node.layout is not None:
        text += f" {node.layout}"
    return text if node.qparams is None else f"{text} {_qparams(node.qparams)}"


def _qparams(qparams: QParams) -> str:
    fields: dict[str, Any] = {
        "dtype": qparams.dtype,
        "scale": list(qparams.scale),
        "zero_point": list(qparams.zero_point),
        "range": [qparams.quant_min, qparams.quant_max],
        "channel_axis": qparams.channel_axis,
    }
    if qparams.symmetric:
        fields["symmetric"] = True
    if qparams.source:
        fields["source"] = qparams.source
    return f"q{_attributes(fields)}"


def _place(expr: Expr | None) -> str:
    if expr is None:
        return ""
    text = f"   {_location(expr.source)}" if expr.source is not None else ""
    return f"{text} by({_string(expr.made_by)})" if expr.made_by else text


def _location(source: Source) -> str:
    place = _string(source.file)
    if source.line is not None:
        place += f":{source.line}"
    if source.scope or source.class_name:
        place += f", {_string(source.scope)}"
    if source.class_name:
        place += f", {_string(source.class_name)}"
    return f"loc({place})"
