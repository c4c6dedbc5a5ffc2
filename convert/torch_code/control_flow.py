"""Calls with subgraphs as statements of Python: ``if``, ``while`` and ``for``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tmconvert.ir import Node
from tmconvert.torch_code.call_expressions import Call

if TYPE_CHECKING:
    from tmconvert.torch_code.function_writer import FunctionWriter


def _texts(writer: FunctionWriter, nodes: Sequence[Node]) -> list[str]:
    return [writer.scope.node(node) for node in nodes]


def _assign(writer: FunctionWriter, names: Sequence[str], values: Sequence[str]) -> None:
    """Writes an assignment inside of a block; one to itself is left out."""
    pairs = [pair for pair in zip(names, values, strict=True) if pair[0] != pair[1]]
    if pairs:
        left, right = (", ".join(side) for side in zip(*pairs, strict=True))
        writer.line(f"    {left} = {right}")
    else:
        writer.line("    pass")


def _cond(writer: FunctionWriter, call: Call) -> None:
    arguments = _texts(writer, call.values["inputs"])
    names = [writer.names.new(node.name) for node in call.expr.outputs]
    for word, branch in ((f"if {call.text('pred')}", "then"), ("else", "otherwise")):
        writer.line(f"{word}:")
        _assign(writer, names, writer.body(call.values[branch], arguments))
    _define(writer, call.expr.outputs, names)


def _loop(writer: FunctionWriter, call: Call) -> None:
    arguments, carried = _texts(writer, call.values["inputs"]), call.values["carried"]
    goes_on = writer.names.new("goes_on")
    names = [goes_on, *(writer.names.new(node.name) for node in call.expr.outputs)]
    for name, value in zip(names, (call.text("goes_on"), *arguments[:carried]), strict=True):
        writer.line(f"{name} = {value}")
    writer.line(f"while {goes_on}:")
    results = writer.body(call.values["step"], [*names[1:], *arguments[carried:]])
    _assign(writer, names, results)
    _define(writer, call.expr.outputs, names[1:])


def _scan(writer: FunctionWriter, call: Call) -> None:
    arguments, carried = _texts(writer, call.values["inputs"]), call.values["carried"]
    scanned = arguments[carried : carried + call.values["scanned"]]
    names = [writer.names.new(node.name) for node in call.expr.outputs]
    rows = [writer.names.new(f"{name}_rows") for name in names[carried:]]
    step = writer.names.new("step")
    for name, value in zip(names, arguments[:carried], strict=False):
        writer.line(f"{name} = {value}")
    for row in rows:
        writer.line(f"{row}: list[Tensor] = []")
    writer.line(f"for {step} in range({scanned[0]}.shape[0]):")
    slices = [f"{text}[{step}]" for text in scanned]
    around = arguments[carried + len(scanned) :]
    results = writer.body(call.values["step"], [*names[:carried], *slices, *around])
    for row, value in zip(rows, results[carried:], strict=True):
        writer.line(f"    {row}.append({value})")
    _assign(writer, names[:carried], results[:carried])
    for name, row in zip(names[carried:], rows, strict=True):
        writer.line(f"{name} = torch.stack({row})")
    _define(writer, call.expr.outputs, names)


def _function(writer: FunctionWriter, call: Call) -> None:
    """Writes what a function with its own ONNX symbolic computes."""
    writer.indentation -= 1
    results = writer.body(call.values["body"], _texts(writer, call.values["inputs"]))
    writer.indentation += 1
    _define(writer, call.expr.outputs, results)


def _define(writer: FunctionWriter, nodes: Sequence[Node], names: Sequence[str]) -> None:
    for node, name in zip(nodes, names, strict=True):
        writer.scope.define(node, name)


STATEMENTS: dict[str, Callable[[Any, Call], None]] = {
    "tm::cond": _cond,
    "tm::loop": _loop,
    "tm::scan": _scan,
    "tm::function": _function,
}
